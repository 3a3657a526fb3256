import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DeadLetterEntry } from '../../../lib/aws/dead-letters/entry.ts'
import { HeldQueue, type SqsReadPort } from '../../../lib/aws/dead-letters/queue.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { QueueLetters } from '../../../lib/local/dead-letters/queue-log.ts'
import { redrive } from '../../../lib/local/dead-letters/redrive.ts'
import { SettlementFile } from '../../../lib/local/dead-letters/settlement.ts'
import { entryAt, scratchDirectory } from './dead-letter-world.ts'

let scratch: Awaited<ReturnType<typeof scratchDirectory>>
beforeEach(async () => {
  scratch = await scratchDirectory()
})
afterEach(() => scratch.remove())

/** A queue that hands out each message once; what is deleted is noted by its handle, which is its id. */
function queueOf(...bodies: (DeadLetterEntry | string)[]) {
  const messages = bodies.map((body, index) => ({
    MessageId: `m${index}`,
    ReceiptHandle: `m${index}`,
    Body: typeof body === 'string' ? body : JSON.stringify(body),
  }))
  const deleted: unknown[] = []
  const client = {
    // biome-ignore lint/suspicious/noExplicitAny: the port's signatures have different answers.
    async send({ input }: any) {
      if (input.MaxNumberOfMessages) return { Messages: messages.splice(0, input.MaxNumberOfMessages) }
      if (input.Entries[0].VisibilityTimeout !== 0) {
        deleted.push(...input.Entries.map(({ ReceiptHandle }: { ReceiptHandle: string }) => ReceiptHandle))
      }
      return {}
    },
  } as SqsReadPort
  return { letters: new QueueLetters(new HeldQueue({ client, queueUrl: 'q' })), deleted }
}

function run(log: QueueLetters, settlements: SettlementFile) {
  const none = async () => {
    throw new Error('nothing is read')
  }
  return redrive({
    ...{
      topology: 'orders-app',
      sources: ['orders'],
      generations: new Map(),
      letters: log.letters,
      log,
      settlements,
      clock: systemClock,
    },
    ...{ readSource: none, readObject: none, signal: new AbortController().signal, onOutcome: () => undefined },
    function: {
      refusal: () => undefined,
      invoke: async () => ({ kind: 'answered', payload: { batchItemFailures: [] } }),
    },
    streams: { slotsOf: () => ({ reason: 'there is none' }), publish: none },
  })
}

test('a dead letter of several messages is one, for which the one that was given up last speaks, wherever it stands', async () => {
  const { letters } = queueOf({ ...entryAt('1'), failedAtMs: 9_000 }, entryAt('1'), 'no letter', entryAt('2'))
  await letters.refresh()
  expect(letters.letters.map(({ entry, places }) => [entry.position, entry.failedAtMs, places])).toEqual([
    ['1', 9_000, ['m0', 'm1']],
    ['2', 2_000, ['m3']],
  ])
  expect(letters.unreadable).toEqual([{ place: 'm2', problem: 'it is not JSON' }])
})

test('all messages of a letter are deleted when it is settled, and none of what is no letter', async () => {
  const { letters, deleted } = queueOf(entryAt('1'), entryAt('1'), 'no letter')
  await letters.refresh()
  await run(letters, await SettlementFile.open(join(scratch.path, 'redriven.ndjson')))
  expect(deleted).toEqual(['m0', 'm1'])
})

test('where the settlement cannot be written, no message is deleted', async () => {
  const { letters, deleted } = queueOf(entryAt('1'))
  await letters.refresh()
  // Its directory is a file by the time of the write.
  const settlements = await SettlementFile.open(join(scratch.path, 'dir', 'redriven.ndjson'))
  await writeFile(join(scratch.path, 'dir'), '')
  await expect(run(letters, settlements)).rejects.toThrow()
  expect(deleted).toEqual([])
})
