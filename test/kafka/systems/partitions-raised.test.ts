import { batchOf, windowKey } from '../../../bin/demos/bookings/batch.ts'
import type { HotelBookings } from '../../../functions/bookings/topology.ts'
import { DynamoDBStateStore } from '../../../lib/aws/state-table/store.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { localDynamoDBClient } from '../../../lib/local/run/tables.ts'
import { tableNameOf } from '../../../lib/plan/plan.ts'
import { readKeyedProgress } from '../../../lib/runtime/progress/progress-format.ts'
import { admin, never, withBroker } from '../broker.ts'
import { appliedOnce } from './applied-once.ts'
import { type BrokerApplication, sourcePartitions } from './broker-application.ts'
import { modes, produce, type Running, unfinished, untilCommitted, withSystems } from './running.ts'
import type { BookingSystem } from './systems.ts'
import { until } from './until.ts'

jest.setTimeout(600_000)

const added = sourcePartitions
const minuteMs = 60_000

/** What each partition of the keyed stage knows of the partition that was added. */
async function knownOf({ dynamodb, planned }: BrokerApplication): Promise<readonly unknown[]> {
  const stage = planned.stages.find(({ kind }) => kind === 'keyed')?.name ?? ''
  const client = localDynamoDBClient(dynamodb.url)
  const options = { client, tableName: tableNameOf(planned.topology, stage), stage, clock: systemClock }
  const store = new DynamoDBStateStore(options)
  const known = await Promise.all(
    [0, 1, 2, 3].map(async (partition) => {
      const stored = await store.readProgress(`${stage}/${partition}`, never())
      if (!stored) return undefined
      const { upstreams } = readKeyedProgress(stored?.value ?? null)
      return [...upstreams.values()].find(({ upstream }) => upstream.partition === String(added))?.state
    }),
  )
  client.destroy()
  return known
}

const isOpen = async (application: BrokerApplication) => (await knownOf(application)).every((state) => state === 'open')

/**
 * The watermark waits for an added partition from its first record on, and what comes before that may make others late (P4): so that
 * one is sent ahead, as a producer does that wants the same of every run.
 */
async function sendSecondPart({ system, application }: Running): Promise<void> {
  const [, messages] = system.parts
  const first = messages.findIndex(({ partition }) => partition === added)
  await application.produce(system.source, messages.slice(first, first + 1))
  if ('sent' in system)
    await until(
      () => isOpen(application),
      () => application.status(),
    )
  await application.produce(system.source, messages.toSpliced(first, 1))
}

/** Waits until the windows are closed that the mark of the last bookings has passed, the partition that was added among them. */
async function untilClosed({ sent }: BookingSystem, application: BrokerApplication): Promise<void> {
  const markMs = Math.max(...sent.map(({ booking }) => booking.bookedAt)) - minuteMs
  const due = [...batchOf(sent).windows.values()].filter(({ startMs }) => startMs + 5 * minuteMs <= markMs)
  const isClosed = async () => {
    const results = appliedOnce(await application.records('hotel-bookings')).values as readonly HotelBookings[]
    const closed = new Set(results.map(({ hotelId, startMs }) => windowKey(hotelId, startMs)))
    return due.every(({ hotelId, startMs }) => closed.has(windowKey(hotelId, startMs)))
  }
  await until(isClosed, () => application.status())
}

withBroker('a source that gets a partition while it is read', () => {
  test.each(modes)('has it as an upstream without a parent, and windows close with it: %s', async (mode) => {
    await withSystems(
      [mode],
      async (running) => {
        await produce(running, 0)
        await untilCommitted(running)
        expect(await unfinished(running)).toBeGreaterThan(0)
        for (const { system, application } of running)
          await admin().addPartitions(application.topicOf(system.source), added + 1, never())
        await Promise.all(running.map(sendSecondPart))
        for (const { system, application } of running) {
          if ('sent' in system) await untilClosed(system, application)
          await application.settle()
          const { committed, ends } = await application.offsets(application.topicOf(system.source))
          expect(ends[added]).toBeGreaterThan(1n)
          expect(committed.get(added)).toBe(ends[added])
          if (application.stages.length > 1) expect(await knownOf(application)).toContain('open')
        }
      },
      added + 1,
    )
  })
})
