/**
 * The three systems, each with what is sent, in two parts, and what a plain loop over it comes to: those that the tests on Kinesis and on
 * the model of Kafka use.
 */
import { batchOf, windowKey } from '../../../bin/demos/bookings/batch.ts'
import { roundsOf, type SentBooking } from '../../../bin/demos/bookings/rounds.ts'
import { booksOf, driverEventsOf } from '../../../bin/demos/drivers/events.ts'
import { Books } from '../../../bin/demos/payments/books.ts'
import { type Booking, bookingsApp, type HotelBookings } from '../../../functions/bookings/topology.ts'
import { type DriverEvent, type DriverStatus, driverState, driversApp } from '../../../functions/drivers/topology.ts'
import { paymentsApp } from '../../../functions/payments/topology.ts'
import type { KafkaMessage } from '../../../lib/aws/kafka/kafka-port.ts'
import { readState, stateView } from '../../../lib/aws/state-table/reader.ts'
import { partitionOf } from '../../../lib/core/kafka-partitioner.ts'
import { deadLetterOutput } from '../../../lib/local/run/resources.ts'
import { localDynamoDBClient } from '../../../lib/local/run/tables.ts'
import { tableNameOf } from '../../../lib/plan/plan.ts'
import type { DeadLetter } from '../../../lib/runtime/dead-letter.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import type { Topology } from '../../../lib/topology/topology.ts'
import { text } from '../broker.ts'
import { appliedOnce } from './applied-once.ts'
import { type BrokerApplication, sourcePartitions } from './broker-application.ts'

export interface System {
  readonly topology: Topology
  readonly entry: string
  readonly source: string
  /** Its sinks, where outputs appear while it runs. */
  readonly sinks: readonly string[]
  /** What is sent: the second part may use partitions that are added in between. */
  readonly parts: readonly [readonly KafkaMessage[], readonly KafkaMessage[]]
  /** Compares what came of it in the end with a plain loop. */
  check(application: BrokerApplication): Promise<void>
}

const messageOf = (partition: number, key: string, value: unknown): KafkaMessage => ({
  partition,
  key: Buffer.from(key),
  value: Buffer.from(JSON.stringify(value)),
})

const outputs = async (application: BrokerApplication, sink: string) =>
  appliedOnce(await application.records(sink)).values

/** Dead letters have their id for an identity. */
async function deadLetters(application: BrokerApplication): Promise<readonly DeadLetter[]> {
  const records = await application.records(deadLetterOutput)
  return [...new Map(records.map(({ key, value }) => [text(key), JSON.parse(text(value))])).values()]
}

/** 400 payments, with one among them that is none. */
export function payments(seed: number, partitions = sourcePartitions): System {
  const random = new Random(seed)
  const books = new Books()
  // From 1,000 on: one of a thousand is no payment, and that one is to be among them.
  books.sent = 1_000
  const sent = books.next(400)
  books.sent = sent.length
  const [first, second] = [sent.slice(0, 200), sent.slice(200)]
  const onAnyOf = (most: number, records: typeof sent) =>
    records.map(({ partitionKey, value }) => messageOf(random.integer(0, most - 1), partitionKey, value))
  return {
    topology: paymentsApp,
    entry: 'functions/payments/handler.ts',
    source: 'payments',
    sinks: ['payments-validated', 'payments-rejected'],
    parts: [onAnyOf(sourcePartitions, first), onAnyOf(partitions, second)],
    async check(application) {
      const bytes = (values: readonly unknown[]) =>
        values.map((value) => ({ data: Buffer.from(JSON.stringify(value)) }))
      for (const sink of this.sinks) books.take(sink, bytes(await outputs(application, sink)))
      books.take(deadLetterOutput, bytes(await deadLetters(application)))
      const { lost, repeats, misplaced, counts } = books
      expect({ lost, repeats, misplaced }).toEqual({ lost: 0, repeats: 0, misplaced: 0 })
      expect(counts['dead letter']).toBe(1)
    },
  }
}

/** 400 events of 16 drivers. Those of four of them begin with the second part, on the partition that was added where there is one. */
export function drivers(seed: number, partitions = sourcePartitions): System {
  const events = driverEventsOf(new Random(seed), 400, 16)
  const names = [...new Set(events.map(({ driver }) => driver))].sort()
  const newcomers = new Set(names.slice(0, 4))
  const placeOf = ({ driver }: DriverEvent) =>
    newcomers.has(driver) ? partitions - 1 : partitionOf(Buffer.from(driver), sourcePartitions)
  const headersOf = (event: DriverEvent) => [`event=${events.indexOf(event)}`, `event=of ${event.driver}`]
  const sent = (list: readonly DriverEvent[]) =>
    list.map((event) => {
      const headers = headersOf(event).map((header) => ({ name: 'event', value: Buffer.from(header.slice(6)) }))
      return { ...messageOf(placeOf(event), event.driver, event), headers }
    })
  const known = events.filter(({ driver }) => !newcomers.has(driver))
  const later = new Set(known.slice(known.length / 2))
  return {
    topology: driversApp,
    entry: 'functions/drivers/handler.ts',
    source: 'driver-events',
    sinks: ['driver-status'],
    parts: [
      sent(known.filter((event) => !later.has(event))),
      sent(events.filter((event) => later.has(event) || newcomers.has(event.driver))),
    ],
    async check(application) {
      const expected = new Map(names.map((driver) => [driver, booksOf(events, driver)]))
      expect(await keptOf(application, names)).toEqual(expected)
      // The last status that a reader applies is what is kept: none is missing behind it, and no older one comes after it.
      const { values, headers } = appliedOnce(await application.records('driver-status'))
      const statuses = values as readonly DriverStatus[]
      expect(statuses).toHaveLength(events.length)
      // Each status has the headers of its event, behind a keyBy.
      for (const name of names) {
        const own = headers.filter((_, i) => statuses[i]?.driver === name)
        expect(own).toEqual(events.filter(({ driver }) => driver === name).map(headersOf))
      }
      const last = new Map(statuses.map((status) => [status.driver, status]))
      for (const [driver, { load, updatedAtMs }] of expected)
        expect(last.get(driver)).toMatchObject({ load, updatedAtMs })
      expect(await deadLetters(application)).toEqual([])
    },
  }
}

/** What the table holds of every driver. */
async function keptOf({ dynamodb }: BrokerApplication, names: readonly string[]) {
  const client = localDynamoDBClient(dynamodb.url)
  const view = stateView(driversApp, 'by-driver', { driver: driverState })
  const kept = readState({ client, tableName: tableNameOf(driversApp.name, 'by-driver'), view })
  const books = new Map()
  for (const driver of names) {
    const { position, load = 0, earnings, updatedAtMs = 0 } = (await kept.get(driver))?.states.driver ?? {}
    const { fromMs, cents = 0 } = earnings ?? {}
    books.set(driver, { position: position && { ...position }, load, fromMs, cents, updatedAtMs })
  }
  client.destroy()
  return books
}

export interface BookingSystem extends System {
  readonly sent: readonly SentBooking[]
}

const message = ({ booking, shard }: SentBooking) => messageOf(shard, booking.hotelId, booking)

/** Two half hours of bookings in windows, with late ones: the second one on all partitions. */
export function bookings(seed: number, partitions = sourcePartitions): BookingSystem {
  const random = new Random(seed)
  const settings = { bookings: 300, hotels: 6, rounds: 2, late: 4 }
  const of = (shards: number, round: number) =>
    roundsOf(random, { ...settings, shards })
      .slice(round, round + 1)
      .flatMap(({ inTime, inGrace, tooLate }) => [...inTime, ...inGrace, ...tooLate])
  const [first, second] = [of(sourcePartitions, 0), of(partitions, 1)]
  const sent = [...first, ...second]
  return {
    topology: bookingsApp,
    entry: 'functions/bookings/handler.ts',
    source: 'booking-requests',
    sinks: ['hotel-bookings', 'late-bookings'],
    sent,
    parts: [first.map(message), second.map(message)],
    async check(application) {
      const { windows, late } = batchOf(sent)
      const results = (await outputs(application, 'hotel-bookings')) as readonly HotelBookings[]
      const last = new Map(
        results.map(({ hotelId, startMs, count, revenue }) => [
          windowKey(hotelId, startMs),
          { hotelId, startMs, count, revenue },
        ]),
      )
      expect(last).toEqual(windows)
      const identified = results.map(({ hotelId, startMs, revision }) => `${windowKey(hotelId, startMs)} ${revision}`)
      expect(new Set(identified).size).toBe(identified.length)
      const lateOnes = (await outputs(application, 'late-bookings')) as readonly Booking[]
      expect(lateOnes.map(({ bookingId }) => bookingId).sort()).toEqual([...late].sort())
      expect(late.size).toBeGreaterThan(0)
      expect(await deadLetters(application)).toEqual([])
    },
  }
}
