/**
 * Each kind of window and each emission over random records, lateness, watermarks and interleavings of firings, written to the
 * table and read again, steps taken back and repeated: late records, final results and what a consumer that applies revisions
 * blindly ends with equal the naive computation.
 */
import fc from 'fast-check'
import { milliseconds } from '../../../../lib/core/duration.ts'
import { count } from '../../../../lib/operators/aggregators/count.ts'
import { type Windows, windowed } from '../../../../lib/operators/keyed/window/window.ts'
import type { WindowEmission, WindowResult } from '../../../../lib/operators/keyed/window/window-result.ts'
import { calendarDays } from '../../../../lib/time/windows/calendar-days.ts'
import { countWindow } from '../../../../lib/time/windows/count-window.ts'
import { hopping, tumbling } from '../../../../lib/time/windows/hopping.ts'
import { session } from '../../../../lib/time/windows/session.ts'
import { sliding } from '../../../../lib/time/windows/sliding.ts'
import { TimedWorld } from '../timed-world.ts'
import {
  type Arrival,
  aligned,
  idsBy,
  localDays,
  type Naive,
  naiveFixed,
  naiveSessions,
  naiveSliding,
} from './naive-windows.ts'

const ids = idsBy((id: number) => id)

interface Event {
  readonly key: string
  readonly time: number
  /** By how much the record's own mark is ahead of the watermark; below 0 where the upstream was told idle. */
  readonly ahead: number
  readonly watermarkStep: number
  /** The watermark moves in a number of its own, between two records. */
  readonly movesAlone: boolean
}

const events = fc.array(
  fc.record({
    key: fc.constantFrom('a', 'a', 'b'),
    time: fc.integer({ min: -40, max: 90 }),
    ahead: fc.oneof(fc.constant(0), fc.integer({ min: -10, max: 40 })),
    watermarkStep: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 40 })),
    movesAlone: fc.boolean(),
  }),
  { maxLength: 40 },
)
/** The watermark starts before, among or behind the records. */
const starts = fc.constantFrom(Number.NEGATIVE_INFINITY, -60, -20, 10)
const chances = fc.array(fc.boolean(), { minLength: 8, maxLength: 8 })

interface Value {
  readonly ids: readonly number[]
  readonly n: number
}
type Result = WindowResult<string, Value>

/** What the drawn times count: milliseconds around 1970 unless a kind of window says otherwise. */
interface Scale {
  readonly originMs: number
  readonly unitMs: number
}
const ms: Scale = { originMs: 0, unitMs: 1 }

const nameOf = ({ window }: Result) => `${window.startMs}-${window.endMs}`

/** One run, with what must hold of every single result on the way. */
function run(
  windows: Windows & { readonly graceMs: number },
  emit: WindowEmission,
  list: readonly Event[],
  start: number,
  chance: readonly boolean[],
  { originMs, unitMs }: Scale,
) {
  const at = (time: number) => originMs + time * unitMs
  let asked = 0
  const next = () => chance[asked++ % chance.length] === true
  const operator = windowed<number>('w', windows, { ids, n: count() }, emit)
  const world = new TimedWorld<number, Result>(operator as never, { reloads: next, repeats: next })
  const arrivals: (Arrival & { readonly key: string })[] = []
  const check = (results: readonly Result[]) => {
    for (const { window, value } of results) {
      expect(value.n).toBe(value.ids.length)
      if (emit === 'on-close') expect(window.endMs).toBeLessThanOrEqual(world.watermarkMs)
      if (emit === 'final') expect(window.endMs + windows.graceMs).toBeLessThanOrEqual(world.watermarkMs)
    }
  }
  if (start > Number.NEGATIVE_INFINITY) world.advance(at(start))
  for (const [id, event] of list.entries()) {
    const { key } = event
    const timeMs = at(event.time)
    const watermarkMs = Math.max(world.watermarkMs, at(-60)) + event.watermarkStep * unitMs
    if (event.movesAlone) check(world.advance(watermarkMs))
    const ownMarkMs = watermarkMs + event.ahead * unitMs
    check(world.take({ key, value: id, timeMs, ownMarkMs }, watermarkMs))
    arrivals.push({ id, key, timeMs, limitMs: Math.max(ownMarkMs, world.watermarkMs) })
  }
  check(world.advance(at(10_000)))
  for (const key of ['a', 'b']) {
    expect(world.stored(key)).toEqual({})
    expect(world.nextTimerMs(key)).toBeUndefined()
  }
  return { world, arrivals }
}

/** What a consumer that applies every result blindly ends with; revisions of a window are counted on the way. */
function applied(results: readonly Result[]): Map<string, readonly number[]> {
  const table = new Map<string, readonly number[]>()
  const revisions = new Map<string, number>()
  for (const result of results) {
    const name = nameOf(result)
    expect(result.revision).toBe((revisions.get(name) ?? -1) + 1)
    revisions.set(name, result.isFinal ? Number.NaN : result.revision)
    if (result.isRetracted) {
      expect(table.get(name)).toEqual(result.value.ids)
      expect(result.isFinal).toBe(true)
      table.delete(name)
    } else table.set(name, result.value.ids)
  }
  return table
}

const sorted = (list: readonly number[]) => [...list].sort((a, b) => a - b)

const kinds: readonly [
  name: string,
  make: (graceMs: number) => Windows & { readonly graceMs: number },
  naive: (arrivals: readonly Arrival[], graceMs: number) => Naive,
  scale: Scale,
][] = [
  ['tumbling', (g) => tumbling(milliseconds(10), grace(g)), (all, g) => naiveFixed(all, g, aligned(10, 10)), ms],
  ['hopping 10 every 4', (g) => hop(10, 4, g), (all, g) => naiveFixed(all, g, aligned(10, 4)), ms],
  ['hopping 12 every 3', (g) => hop(12, 3, g), (all, g) => naiveFixed(all, g, aligned(12, 3)), ms],
  ['sliding', (g) => sliding(milliseconds(10), grace(g)), (all, g) => naiveSliding(all, g, 10), ms],
  ['session', (g) => session(milliseconds(7), grace(g)), (all, g) => naiveSessions(all, g, 7), ms],
  [
    'session of at most 20',
    (g) => session(milliseconds(7), { ...grace(g), longest: milliseconds(20) }),
    (all, g) => naiveSessions(all, g, 7, 20),
    ms,
  ],
  days('Europe/Berlin, with one of 23 hours', 'Europe/Berlin', Date.UTC(2026, 2, 28)),
  days('Europe/Berlin, with one of 25 hours', 'Europe/Berlin', Date.UTC(2026, 9, 24)),
  days('Australia/Lord_Howe, with one of 24.5 hours', 'Australia/Lord_Howe', Date.UTC(2026, 3, 4)),
]
function days(name: string, zone: string, originMs: number): (typeof kinds)[number] {
  const boundsOf = localDays(zone)
  return [
    `calendar days of ${name}`,
    (g) => calendarDays(zone, grace(g)),
    (all, g) => naiveFixed(all, g, boundsOf),
    { originMs, unitMs: 3_600_000 },
  ]
}
const grace = (ms: number) => ({ grace: milliseconds(ms) })
const hop = (size: number, every: number, g: number) =>
  hopping(milliseconds(size), { every: milliseconds(every), ...grace(g) })

describe.each(kinds)('%s', (_name, make, naive, scale) => {
  test.each<WindowEmission>(['on-close', 'final', 'on-update'])('%s', (emit) => {
    fc.assert(
      fc.property(events, starts, fc.constantFrom(0, 3, 15), chances, (list, start, graceOfUnits, chance) => {
        const graceMs = graceOfUnits * scale.unitMs
        const { world, arrivals } = run(make(graceMs), emit, list, start, chance, scale)
        const late: number[] = []
        for (const key of ['a', 'b']) {
          const expected = naive(
            arrivals.filter((one) => one.key === key),
            graceMs,
          )
          late.push(...expected.late)
          const own = world.results.filter((result) => result.key === key)
          expect(new Map([...applied(own)].sort())).toEqual(new Map([...expected.windows].sort()))
          if (emit === 'final') {
            expect(own.every((result) => result.isFinal && !result.isRetracted && result.revision === 0)).toBe(true)
            expect(own.map(nameOf).sort()).toEqual([...expected.windows.keys()].sort())
          }
        }
        expect(sorted(world.late)).toEqual(sorted(late))
        expect(world.resultTimes).toEqual(world.results.map(({ window }) => window.endMs - 1))
      }),
      { numRuns: 150 },
    )
  })
})

/** Two upstreams, each in its own order; how they are interleaved, and how far the watermark lags behind both, is chance. */
describe.each(kinds)(
  '%s: neither late records nor final results depend on reading speed',
  (_name, make, _naive, scale) => {
    const { originMs, unitMs } = scale
    test('final', () => {
      const upstream = fc.array(fc.integer({ min: 0, max: 90 }), { maxLength: 15 })
      const interleavings = fc.array(fc.record({ second: fc.boolean(), lag: fc.nat(30) }), {
        minLength: 40,
        maxLength: 40,
      })
      fc.assert(
        fc.property(upstream, upstream, interleavings, interleavings, chances, (one, two, first, second, chance) => {
          const runs = [first, second].map((order) => {
            const operator = windowed<number>('w', make(5 * unitMs), { ids, n: count() }, 'final')
            let asked = 0
            const reloads = () => chance[asked++ % chance.length] === true
            const world = new TimedWorld<number, Result>(operator as never, { reloads })
            const queues = [marked(one, 0, scale), marked(two, 100, scale)] as const
            for (const { second: takesSecond, lag } of order) {
              const [mine, other] = takesSecond ? [queues[1], queues[0]] : queues
              const queue = mine.length > 0 ? mine : other
              const record = queue.shift()
              if (record === undefined) break
              const marks = queues.map((waiting) => waiting[0]?.ownMarkMs ?? originMs + 1_000 * unitMs)
              world.take(record, Math.min(record.ownMarkMs, ...marks) - lag * unitMs)
            }
            world.advance(originMs + 10_000 * unitMs)
            const byName = world.results.map((result) => [nameOf(result), result.value.ids] as const)
            return { late: sorted(world.late), results: byName.sort(([a], [b]) => (a < b ? -1 : 1)) }
          })
          expect(runs[0]).toEqual(runs[1])
        }),
        { numRuns: 100 },
      )
    })
  },
)

/** Each record with its own mark: the largest time before it, less 3 for being out of order. */
function marked(times: readonly number[], firstId: number, { originMs, unitMs }: Scale) {
  let largestMs = originMs - 100 * unitMs
  return times.map((time, i) => {
    const timeMs = originMs + time * unitMs
    const record = { key: 'a', value: firstId + i, timeMs, ownMarkMs: largestMs - 3 * unitMs }
    largestMs = Math.max(largestMs, timeMs)
    return record
  })
}

describe('count windows of three', () => {
  test.each<WindowEmission>(['on-close', 'final'])(
    '%s: every third record of a key closes one, whatever time does',
    (emit) => {
      fc.assert(
        fc.property(events, chances, (list, chance) => {
          let asked = 0
          const next = () => chance[asked++ % chance.length] === true
          const operator = windowed<number>('w', countWindow(3), { ids, n: count() }, emit)
          const world = new TimedWorld<number, Result>(operator as never, { reloads: next, repeats: next })
          for (const [id, { key, time, watermarkStep, movesAlone }] of list.entries()) {
            const watermarkMs = Math.max(world.watermarkMs, -60) + watermarkStep
            if (movesAlone) world.advance(watermarkMs)
            world.take({ key, value: id, timeMs: time }, watermarkMs)
          }
          world.advance(10_000)
          for (const key of ['a', 'b']) {
            const own = [...list.entries()].filter(([, event]) => event.key === key)
            const full = Array.from({ length: Math.floor(own.length / 3) }, (_, i) => own.slice(3 * i, 3 * i + 3))
            const results = world.results.filter((result) => result.key === key)
            expect(results.map(({ window, value }) => [window.startMs, window.endMs, value.n, value.ids])).toEqual(
              full.map((three) => {
                const times = three.map(([, { time }]) => time)
                return [Math.min(...times), Math.max(...times) + 1, 3, three.map(([id]) => id)]
              }),
            )
            expect(results.every((one) => one.isFinal && one.revision === 0 && !one.isRetracted)).toBe(true)
            // What has not filled a window yet waits for its next record, and for no time.
            expect(Object.keys(world.stored(key)).length).toBe(own.length % 3 === 0 ? 0 : 1)
            expect(world.nextTimerMs(key)).toBeUndefined()
          }
          expect(world.late).toEqual([])
        }),
        { numRuns: 150 },
      )
    },
  )
})
