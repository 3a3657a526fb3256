/**
 * The demo of booking windows. Each round sends half an hour of bookings and waits until their windows are closed; then it sends
 * bookings that are late, some within the grace and some after it. What a blind consumer holds in the end is compared with a
 * batch computation over the same bookings.
 */
import type { Figure } from '../../../bench/figures.ts'
import { bookingsApp, hotelBookings } from '../../../functions/bookings/topology.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { grouped, table } from '../../../lib/local/display/run-display.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import { until } from '../../flights/processing.ts'
import { KeyedRun } from '../tables/keyed-run.ts'
import { type BatchResult, batchOf, type HotelWindow } from './batch.ts'
import { BlindConsumer } from './blind-consumer.ts'
import { type Round, type RoundSettings, roundsOf, type SentBooking } from './rounds.ts'

export interface BookingsSettings extends RoundSettings {
  readonly seed: number
}

/** What was seen of one round. */
interface Seen {
  readonly round: Round
  /** Windows of the corrected start with a result before the late ones came, and results that corrected them. */
  readonly closed: number
  readonly corrected: number
  readonly late: number
}

/** Where a result does not come, the round ends without it. */
const mostWaitMs = 15_000

export async function runBookings(settings: BookingsSettings, signal: AbortSignal): Promise<readonly Figure[]> {
  const rounds = roundsOf(new Random(settings.seed), settings)
  const count = rounds.reduce((sum, { inTime }) => sum + inTime.length, 0)
  console.log(
    [
      `${grouped(count)} bookings of ${grouped(settings.hotels)} hotels over ${grouped(settings.rounds)} half hours, drawn from the seed ${settings.seed}, on ${settings.shards} shards, in windows of five minutes with two minutes of grace.`,
      `A consumer of "${hotelBookings.name}" writes each result over the one before of that hotel and window, whatever it is.`,
      '',
    ].join('\n'),
  )
  const run = await KeyedRun.open({
    topology: bookingsApp,
    entry: 'functions/bookings/handler.ts',
    directory: '.millrace/demo-bookings',
    shards: settings.shards,
  })
  const consumer = new BlindConsumer()
  try {
    await run.start({ fresh: true, input: 'bounded', onOutput: consumer.take })
    const seen: Seen[] = []
    for (const round of rounds) {
      if (signal.aborted) break
      seen.push(await play(run, consumer, round, signal))
    }
    if (!signal.aborted) await run.end()
    const sent = seen.flatMap(({ round: { inTime, inGrace, tooLate } }) => [...inTime, ...inGrace, ...tooLate])
    console.log(['', ...roundLines(seen), '', ...exampleLines(consumer)].join('\n'))
    return [...figuresOf(seen, consumer, batchOf(sent)), run.deadLetterFigure]
  } finally {
    await run.close()
  }
}

async function play(run: KeyedRun, consumer: BlindConsumer, round: Round, signal: AbortSignal): Promise<Seen> {
  const { inTime, inGrace, tooLate, correctedMs } = round
  const expected = [...batchOf(inTime).windows.values()].filter(({ startMs }) => startMs === correctedMs).length
  await send(run, inTime)
  await within(() => consumer.closed(correctedMs) >= expected, signal)
  const closed = consumer.closed(correctedMs)
  const lateBefore = consumer.late.size
  await send(run, [...inGrace, ...tooLate])
  const isThere = () =>
    consumer.resultsFrom(1, correctedMs) >= inGrace.length && consumer.late.size >= lateBefore + tooLate.length
  await within(isThere, signal)
  const corrected = consumer.resultsFrom(1, correctedMs)
  const late = consumer.late.size - lateBefore
  console.log(
    `${clock(correctedMs)} is closed for ${closed} hotels, corrected for ${corrected}, and ${late} are too late`,
  )
  return { round, closed, corrected, late }
}

const send = (run: KeyedRun, sent: readonly SentBooking[]): Promise<void> =>
  run.send(
    'booking-requests',
    sent.map(({ booking, shard }) => ({ partitionKey: booking.hotelId, value: booking, shard })),
  )

async function within(isThere: () => boolean, signal: AbortSignal): Promise<void> {
  const endMs = systemClock.nowMs() + mostWaitMs
  await until(() => isThere() || systemClock.nowMs() > endMs, signal)
}

const clock = (ms: number): string => new Date(ms).toISOString().slice(11, 16)

function roundLines(seen: readonly Seen[]): readonly string[] {
  const rows = seen.map(({ round: { inTime, inGrace, tooLate, correctedMs }, closed, corrected, late }) => [
    ...[`until ${clock(correctedMs + 7 * 60_000)}`, grouped(inTime.length), grouped(closed)],
    ...[grouped(inGrace.length), grouped(corrected), grouped(tooLate.length), grouped(late)],
  ])
  const head = ['bookings', 'in time', 'results of the last window', 'in grace', 'corrected', 'too late', 'late output']
  return table([head, ...rows], [false, true, true, true, true, true, true])
}

/** What the consumer was given of one corrected window. */
function exampleLines({ results }: BlindConsumer): readonly string[] {
  const corrected = [...results.values()].find(({ revision }) => revision > 0)
  if (corrected === undefined) return []
  const { hotelId, startMs, endMs } = corrected
  return [...results.values()]
    .filter((row) => row.hotelId === hotelId && row.startMs === startMs)
    .map(
      ({ revision, count, revenue }) =>
        `${hotelId} ${clock(startMs)}-${clock(endMs)}  revision ${revision}: ${count} bookings, ${revenue.toFixed(2)}`,
    )
}

function figuresOf(seen: readonly Seen[], consumer: BlindConsumer, { windows, late }: BatchResult): Figure[] {
  const { rows } = consumer
  const sum = (of: (one: Seen) => number): number => seen.reduce((total, one) => total + of(one), 0)
  const keys = new Set([...windows.keys(), ...rows.keys()])
  const wrong = [...keys].filter((key) => differs(windows.get(key), rows.get(key)))
  const revenueOf = (list: Iterable<HotelWindow>): number =>
    [...list].reduce((total, { revenue }) => total + revenue, 0)
  const exactly = (name: string, value: number, unit: string, goal: number): Figure => ({
    ...{ name, value, unit, goal },
    better: 'exactly',
  })
  const planted = seen.flatMap(({ round }) => round.tooLate.map(({ booking }) => booking.bookingId))
  const misplaced = new Set([...consumer.late, ...planted]).size - planted.filter((id) => consumer.late.has(id)).length
  return [
    exactly('hotels and windows with a result', rows.size, 'windows', windows.size),
    exactly('windows that differ from a batch computation', wrong.length, 'windows', 0),
    exactly('revenue of all windows', revenueOf(rows.values()), '', revenueOf(windows.values())),
    exactly(
      'results that correct an earlier one',
      consumer.resultsFrom(1),
      'results',
      sum(({ round }) => round.inGrace.length),
    ),
    exactly('bookings in the late output', consumer.late.size, 'bookings', late.size),
    exactly('late bookings that are there but should not be, or should be and are not', misplaced, 'bookings', 0),
  ]
}

const differs = (expected: HotelWindow | undefined, row: HotelWindow | undefined): boolean =>
  expected?.count !== row?.count || expected?.revenue !== row?.revenue
