/** What docs/primitives.md says: the two primitives together, and Powertools' batch processor on the same batches. */
import { BatchProcessor, EventType, processPartialResponse } from '@aws-lambda-powertools/batch'
import type { KinesisStreamEvent, KinesisStreamRecord } from 'aws-lambda'
import { processInOrder, upsertOnce } from '../../../lib/index.ts'
import { kinesisEvent, lambdaContext } from '../../../lib/testing/index.ts'
import { UpsertWorld } from './upsert-world.ts'

interface Log {
  readonly log: readonly string[]
}

const nameOf = ({ kinesis }: KinesisStreamRecord): string => Buffer.from(kinesis.data, 'base64').toString()
const batchOf = (names: readonly string[]): KinesisStreamEvent => kinesisEvent(names, { partitionKey: () => 'a' })

/** Delivers a batch as Lambda does: from the first record that is reported on, until none is. */
async function deliver(
  event: KinesisStreamEvent,
  handler: (event: KinesisStreamEvent) => Promise<{ batchItemFailures: readonly { itemIdentifier: string }[] }>,
): Promise<void> {
  let { Records } = event
  while (Records.length > 0) {
    const { batchItemFailures } = await handler({ Records })
    const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier))
    const first = Records.findIndex(({ kinesis }) => failed.has(kinesis.sequenceNumber))
    Records = first < 0 ? [] : Records.slice(first)
  }
}

/** Fails the first time that it is called for that name. */
function failingOnce(name: string) {
  let isToFail = true
  return (own: string) => {
    if (own !== name || !isToFail) return
    isToFail = false
    throw new Error('not now')
  }
}

// C15 of the cases from the field.
test.each([1, 4])(
  'a record that fails once is never overtaken by a later one of its key, and each counts once, %i at a time',
  async (concurrency) => {
    const { table, row } = worldOf()
    const check = failingOnce('a2')
    await deliver(batchOf(['a1', 'a2', 'a3']), (event) =>
      processInOrder(
        event,
        async (record, { key, position, signal }) => {
          check(nameOf(record))
          const next = (current: Log | undefined) => ({ log: [...(current?.log ?? []), nameOf(record)] })
          await upsertOnce(table, { user: key }, position, next, { signal })
        },
        { context: lambdaContext(), deadLetter: () => undefined, logger: { warn: () => undefined }, concurrency },
      ),
    )
    expect(row('a')?.log).toEqual({ L: [{ S: 'a1' }, { S: 'a2' }, { S: 'a3' }] })
  },
)

test('a batch that comes again as a whole, after its answer was lost, changes nothing', async () => {
  const { table, row } = worldOf()
  const handler = (event: KinesisStreamEvent) =>
    processInOrder(
      event,
      async (_, { key, position }) => {
        await upsertOnce(table, { user: key }, position, (current: { n: number } | undefined) => ({
          n: (current?.n ?? 0) + 1,
        }))
      },
      { context: lambdaContext(), deadLetter: () => undefined, logger: { warn: () => undefined } },
    )
  const event = batchOf(['a1', 'a2', 'a3'])
  await handler(event)
  await handler(event)
  expect(row('a')?.n).toEqual({ N: '3' })
})

test.each([true, false])(
  "Powertools' batch processor goes on behind a failure (in parallel: %s), so a later record of the key comes first, and again",
  async (processInParallel) => {
    const done: string[] = []
    const check = failingOnce('a2')
    const processor = new BatchProcessor(EventType.KinesisDataStreams)
    await deliver(batchOf(['a1', 'a2', 'a3']), (event) =>
      processPartialResponse(
        event,
        async (record: KinesisStreamRecord) => {
          check(nameOf(record))
          done.push(nameOf(record))
        },
        processor,
        { context: lambdaContext(), processInParallel },
      ),
    )
    expect(done).toEqual(['a1', 'a3', 'a2', 'a3'])
  },
)

function worldOf() {
  const world = new UpsertWorld()
  return { table: world.table, row: (user: string) => world.row(user) }
}
