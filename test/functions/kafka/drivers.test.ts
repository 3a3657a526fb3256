/** The driver state of the demo on Kafka: the same books as on Kinesis, and what only Kafka does to a topic. */
import { booksOf, driverEventsOf } from '../../../bin/demos/drivers/events.ts'
import { type DriverEvent, driversApp } from '../../../functions/drivers/topology.ts'
import { partitionOf } from '../../../lib/emulator/kafka/index.ts'
import { readKeyedProgress } from '../../../lib/runtime/progress/progress-format.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import { KafkaApplication, type Mode } from './kafka-application.ts'

const modes: readonly Mode[] = ['on-demand', 'provisioned']
const nowMs = Date.UTC(2026, 2, 1, 13)
const { signal } = new AbortController()
const source = 'driver-events'

const recordsOf = (events: readonly DriverEvent[], partitions = 3) =>
  events.map((event) => {
    const key = Buffer.from(event.driver)
    return { partition: partitionOf(key, partitions), key, value: Buffer.from(JSON.stringify(event)) }
  })

async function keptBy(app: KafkaApplication, drivers: readonly string[]) {
  const kept = await app.memory.state('by-driver')?.readKeys([...drivers], signal)
  return new Map(
    drivers.map((driver) => {
      const states = kept?.get(driver)?.states as Record<string, unknown> | undefined
      const earnings = states?.['driver.earnings'] as { fromMs: number; cents: number } | undefined
      return [
        driver,
        {
          position: states?.['driver.position'],
          load: states?.['driver.load'] ?? 0,
          fromMs: earnings?.fromMs,
          cents: earnings?.cents ?? 0,
          updatedAtMs: states?.['driver.updatedAtMs'],
        },
      ]
    }),
  )
}

const expected = (events: readonly DriverEvent[], drivers: readonly string[]) =>
  new Map(drivers.map((driver) => [driver, booksOf(events, driver)]))

const driversOf = (events: readonly DriverEvent[]) => [...new Set(events.map(({ driver }) => driver))]

test.each(modes.flatMap((mode) => [1, 2, 3, 4].map((seed) => [mode, seed] as const)))(
  'each driver has what a plain loop comes to: %s, seed %d',
  async (mode, seed) => {
    const app = new KafkaApplication(driversApp, { mode, seed, nowMs })
    const events = driverEventsOf(new Random(seed), 300, 12)
    app.produce(source, recordsOf(events))
    await app.start()
    await app.settle()
    await app.stop()
    const drivers = driversOf(events)
    expect(await keptBy(app, drivers)).toEqual(expected(events, drivers))
    expect(app.memory.deadLettered).toEqual([])
    expect(app.met.kills).toBeGreaterThan(0)
  },
)

test('each partition of the stage holds the slots of its remainder, and keeps its progress under its number', async () => {
  const app = new KafkaApplication(driversApp, { mode: 'provisioned', seed: 1, nowMs, isDisturbed: false })
  app.produce(source, recordsOf(driverEventsOf(new Random(1), 100, 40)))
  await app.start()
  await app.settle()
  await app.stop()
  for (const partition of [0, 1, 2, 3]) {
    const stored = await app.memory.state('by-driver')?.readProgress(`by-driver/${partition}`, signal)
    const { held, log } = readKeyedProgress(stored?.value ?? null)
    expect(held).toEqual(Array.from({ length: 16 }, (_, i) => partition + 4 * i))
    expect(log).toBe(app.kafka.describeTopic('by-driver').topicId)
  }
})

test.each(modes)('a partition that is added to the source joins as an upstream without a parent: %s', async (mode) => {
  const app = new KafkaApplication(driversApp, { mode, seed: 5, nowMs, partitions: 2 })
  const events = driverEventsOf(new Random(5), 200, 10)
  app.produce(source, recordsOf(events.slice(0, 100), 2))
  await app.start()
  await app.settle()
  app.kafka.createPartitions(source, 3)
  app.produce(source, recordsOf(events.slice(100), 3))
  await app.settle()
  await app.pass(120_000)
  await app.stop()
  const drivers = driversOf(events)
  expect(await keptBy(app, drivers)).toEqual(expected(events, drivers))
  const stored = await app.memory.state('by-driver')?.readProgress('by-driver/0', signal)
  const { upstreams } = readKeyedProgress(stored?.value ?? null)
  expect([...upstreams.values()].map(({ upstream, state }) => [upstream.partition, state])).toEqual(
    expect.arrayContaining([['2', 'open']]),
  )
})

test.each(modes)('a topic that was made again is refused: nothing of it passes for done: %s', async (mode) => {
  const app = new KafkaApplication(driversApp, { mode, seed: 6, nowMs, isDisturbed: false })
  const events = driverEventsOf(new Random(6), 60, 5)
  app.produce(source, recordsOf(events))
  await app.start()
  await app.settle()
  app.kafka.deleteTopic(source)
  app.kafka.createTopic(source, { partitions: 3, retentionMs: -1 })
  const later = driverEventsOf(new Random(7), 60, 5)
  app.produce(source, recordsOf(later))
  const { invocations } = app.met
  await app.pass(60_000)
  expect(app.met.invocations).toBeGreaterThan(invocations)
  expect(
    app.mappings
      .get(source)
      ?.status()
      .pollers.map(({ reason }) => reason),
  ).toEqual(expect.arrayContaining([expect.stringContaining('it was deleted and made again')]))
  expect(app.kafka.committedOffsets(source, source)).toEqual(new Map())
  const drivers = driversOf(events)
  expect(await keptBy(app, drivers)).toEqual(expected(events, drivers))
  await app.stop()
})

test('gaps in the offsets of a source are normal: the ends of transactions, and records that were deleted', async () => {
  const app = new KafkaApplication(driversApp, { mode: 'provisioned', seed: 8, nowMs, isDisturbed: false })
  const events = driverEventsOf(new Random(8), 60, 5)
  app.kafka.appendControl(source, 0)
  for (const record of recordsOf(events)) {
    app.produce(source, [record])
    app.kafka.appendControl(source, record.partition)
  }
  await app.start()
  await app.settle()
  await app.pass(120_000)
  const drivers = driversOf(events)
  expect(await keptBy(app, drivers)).toEqual(expected(events, drivers))
  await app.stop()
})
