/** The end of a bounded input closes what waits for event time. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { flightsApp } from '../../../functions/flights/topology.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { type LocalApplication, type LocalInput, startLocalApplication } from '../../../lib/local/run/application.ts'

const timeoutMs = 180_000
let directory: string
let app: LocalApplication | undefined
let received: unknown[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-bounded-'))
  received = []
})
afterEach(async () => {
  await app?.stop()
  await rm(directory, { recursive: true })
})

async function start(input?: LocalInput): Promise<LocalApplication> {
  app = await startLocalApplication({
    topology: flightsApp,
    entry: 'functions/flights/handler.ts',
    directory: join(directory, 'state'),
    workers: 1,
    shards: 2,
    ...(input === undefined ? {} : { input }),
    onOutput: (output, records) => {
      if (output !== 'hourly-delays') return
      for (const { data } of records) received.push(JSON.parse(Buffer.from(data).toString()))
    },
  })
  return app
}

async function until(condition: () => boolean): Promise<void> {
  const endMs = Date.now() + timeoutMs / 2
  while (!condition()) {
    if (Date.now() > endMs) throw new Error('the condition did not come true in time')
    await systemClock.sleep(20)
  }
}

const report = (flight: string, time: string, delayMinutes: number) => ({
  ...{ flight, scheduled: `2001-01-01T${time}:00`, delayMinutes, distanceMiles: 100 },
  ...{ origin: 'LAS', destination: 'PHL' },
})

test(
  'windows that are open at the end of the input close, also where a shard never had a record',
  async () => {
    const running = await start('bounded')
    await running.run()
    const reports = [report('a', '10:10', 4), report('b', '10:50', 8), report('c', '11:00', 0)]
    const Records = reports.map((value) => ({ PartitionKey: 'LAS', Data: Buffer.from(JSON.stringify(value)) }))
    await running.client.send(new PutRecordsCommand({ StreamName: running.streamOf('flights').streamName, Records }))
    const sentAtMs = systemClock.nowMs()
    await until(() => running.hasProcessed(sentAtMs))
    expect([running.hasEnded(), received]).toEqual([false, []])

    running.endInput()
    await until(() => running.hasEnded())

    const endedAtMs = systemClock.nowMs()
    await until(() => running.hasReadOutputs(endedAtMs))
    const hour = { airport: 'LAS', revision: 0 }
    expect(received).toEqual([
      { ...hour, hour: '2001-01-01T10:00:00.000Z', flights: 2, meanMinutes: 6, maxMinutes: 8, p90Minutes: 8 },
      { ...hour, hour: '2001-01-01T11:00:00.000Z', flights: 1, meanMinutes: 0, maxMinutes: 0, p90Minutes: 0 },
    ])
  },
  timeoutMs,
)

test(
  'a live input has no end',
  async () => {
    const running = await start()
    expect(() => running.endInput()).toThrow(
      new RangeError("a live input has no end: start the application with input: 'bounded'"),
    )
  },
  timeoutMs,
)
