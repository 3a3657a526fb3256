import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { EventSourceMapping, kinesisFormat } from '../../../lib/emulator/event-source-mapping/index.ts'
import { stageTroubles } from '../../../lib/local/display/run-display.ts'
import { type FailureDestinationKind, failureFile, readFailureFile } from '../../../lib/local/files/failure-file.ts'
import { startLocalApplication } from '../../../lib/local/run/application.ts'
import { functionArn, MappingWorld, s0, streamArn } from '../../emulator/event-source-mapping/mapping-world.ts'
import { failed } from '../../emulator/event-source-mapping/memory-ports.ts'
import { neverApp } from '../fixtures/never.ts'

let folder: string
let path: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-failures-'))
  path = join(folder, 'run', 'on-failure.ndjson')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const message = (n: number) => ({ envelope: { n }, objectKey: `aws/lambda/${n}` })

/** Gives one batch of two up, into the file. */
async function giveUp(destination: FailureDestinationKind) {
  const world = new MappingWorld({ maximumRetryAttempts: 0 })
  world.stream.put(s0, 1)
  world.stream.put(s0, 2)
  world.invoker.answer = () => failed()
  const { stream: reader, invoker, checkpoints, clock, settings } = world
  const ports = { reader, invoker, checkpoints, clock, onFailure: failureFile(path, destination) }
  const mapping = new EventSourceMapping({ settings, format: kinesisFormat({ streamArn }), ...ports })
  await mapping.start()
  while (mapping.status().counters.onFailureDeliveredEvents < 2) await clock.advance(1_000)
  await mapping.stop()
  return world
}

test.each(['sqs', 'sns'] as const)(
  '[R] %s: a line is the exact message, without payload or key',
  async (destination) => {
    const world = await giveUp(destination)
    expect(await readFailureFile(path)).toEqual([
      {
        destination,
        message: {
          requestContext: {
            requestId: world.invoker.deliveries[0]?.info.requestId,
            functionArn,
            condition: 'RetryAttemptsExhausted',
            approximateInvokeCount: 1,
          },
          responseContext: { statusCode: 200, executedVersion: '$LATEST', functionError: 'Unhandled' },
          version: '1.0',
          timestamp: '2026-01-01T00:00:00.000Z',
          KinesisBatchInfo: {
            shardId: s0,
            startSequenceNumber: '1',
            endSequenceNumber: '2',
            approximateArrivalOfFirstRecord: '2026-01-01T00:00:00.000Z',
            approximateArrivalOfLastRecord: '2026-01-01T00:00:00.000Z',
            batchSize: 2,
            streamArn,
          },
        },
      },
    ])
  },
)

test('[D] s3: the object carries the whole event as text, and the line its key', async () => {
  const world = await giveUp('s3')
  const [line] = await readFailureFile(path)
  expect(JSON.parse(String(line?.message.payload))).toEqual(world.invoker.events[0])
  expect(line?.objectKey).toMatch(
    /^aws\/lambda\/.+\/shardId-000000000000\/2026\/01\/01\/2026-01-01T00\.00\.00-[0-9a-f-]{36}$/,
  )
})

test('messages sent at once are lines in their order, and the next run goes on behind them', async () => {
  const first = failureFile(path, 'sqs')
  // Written side by side, the small ones would overtake the large one.
  const large = { envelope: { n: 1, padding: 'x'.repeat(8_000_000) }, objectKey: '' }
  await Promise.all([first.send(large), ...[2, 3].map((n) => first.send(message(n)))])
  await failureFile(path, 'sqs').send(message(4))
  expect((await readFailureFile(path)).map((line) => line.message.n)).toEqual([1, 2, 3, 4])
})

test('a message that cannot be written rejects, and the next one is written', async () => {
  const destination = failureFile(join(folder, 'file', 'on-failure.ndjson'), 'sqs')
  await writeFile(join(folder, 'file'), '')
  await expect(destination.send(message(1))).rejects.toThrow(/EEXIST|ENOTDIR/)
  await rm(join(folder, 'file'))
  await destination.send(message(2))
  expect(await readFailureFile(join(folder, 'file', 'on-failure.ndjson'))).toMatchObject([{ message: { n: 2 } }])
})

test('no file is no message; a cut last line was never delivered; a damaged one is named', async () => {
  expect(await readFailureFile(path)).toEqual([])
  await failureFile(path, 'sqs').send(message(1))
  await appendFile(path, '{"destination":"sq')
  expect(await readFailureFile(path)).toHaveLength(1)
  await failureFile(path, 'sqs').send(message(2))
  expect((await readFailureFile(path)).map((line) => line.message)).toEqual([{ n: 1 }, { n: 2 }])
  await appendFile(path, 'oops\n')
  await expect(readFailureFile(path)).rejects.toThrow(`${path}:3 is not JSON`)
})

test('an application whose mapping gives up after its retries shows what went there, and where it is', async () => {
  const app = await startLocalApplication({
    topology: neverApp,
    entry: 'test/local/fixtures/never.ts',
    directory: folder,
    workers: 1,
    onFailure: 's3',
    mapping: { maximumRetryAttempts: 1, emulation: { backoff: { initialMs: 10, factor: 2, maxMs: 50 } } },
  })
  try {
    await app.run()
    const Data = Buffer.from('{"id":"o-1"}')
    await app.client.send(new PutRecordsCommand({ StreamName: 'orders', Records: [{ PartitionKey: 'k', Data }] }))
    const file = join(folder, 'on-failure', 'orders.ndjson')
    const troubles = () => stageTroubles(app.status())
    while (troubles().length === 0) await new Promise((go) => setTimeout(go, 10))
    expect(troubles()).toEqual([`orders: 1 record was given up and reported to ${file}`])
    const [line] = await readFailureFile(file)
    expect(line?.message).toMatchObject({
      requestContext: { condition: 'RetryAttemptsExhausted', approximateInvokeCount: 2 },
      responseContext: { functionError: null },
    })
    const [record] = JSON.parse(String(line?.message.payload)).Records
    expect(record.kinesis.data).toBe(Data.toString('base64'))
  } finally {
    await app.stop()
  }
}, 60_000)
