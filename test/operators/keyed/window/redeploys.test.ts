/** A deployment with another grace or emission, while windows are open (slices.ts 3, sliced-windows.ts 3). */
import fc from 'fast-check'
import { milliseconds } from '../../../../lib/core/duration.ts'
import { count } from '../../../../lib/operators/aggregators/count.ts'
import type { TimeWindows } from '../../../../lib/operators/keyed/window/window.ts'
import { windowed } from '../../../../lib/operators/keyed/window/window.ts'
import type { WindowEmission, WindowResult } from '../../../../lib/operators/keyed/window/window-result.ts'
import type { KeyItem } from '../../../../lib/state/state-store.ts'
import { calendarDays } from '../../../../lib/time/windows/calendar-days.ts'
import { hopping, tumbling } from '../../../../lib/time/windows/hopping.ts'
import { session } from '../../../../lib/time/windows/session.ts'
import { sliding } from '../../../../lib/time/windows/sliding.ts'
import { TimedWorld } from '../timed-world.ts'
import {
  type Arrival,
  aligned,
  type Contents,
  idsBy,
  naiveFixed,
  naiveSessions,
  naiveSliding,
} from './naive-windows.ts'

const ms = milliseconds
const dayMs = 86_400_000

/** What a release says of its windows; the grace is in tenths of a window. */
interface Release {
  readonly emit: WindowEmission
  readonly grace: number
}

interface Kind {
  /** A tenth of a window. */
  readonly unitMs: number
  readonly windows: (graceMs: number) => TimeWindows
  readonly contents: (arrivals: readonly Arrival[]) => { readonly windows: Contents }
}

const kinds: Readonly<Record<string, Kind>> = {
  tumbling: {
    unitMs: 1,
    windows: (graceMs) => tumbling(ms(10), { grace: ms(graceMs) }),
    contents: (arrivals) => naiveFixed(arrivals, 0, aligned(10, 10)),
  },
  hopping: {
    unitMs: 1,
    windows: (graceMs) => hopping(ms(10), { every: ms(4), grace: ms(graceMs) }),
    contents: (arrivals) => naiveFixed(arrivals, 0, aligned(10, 4)),
  },
  sliding: {
    unitMs: 1,
    windows: (graceMs) => sliding(ms(10), { grace: ms(graceMs) }),
    contents: (arrivals) => naiveSliding(arrivals, 0, 10),
  },
  'calendar days': {
    unitMs: dayMs / 10,
    windows: (graceMs) => calendarDays('UTC', { grace: ms(graceMs) }),
    contents: (arrivals) => naiveFixed(arrivals, 0, aligned(dayMs, dayMs)),
  },
  sessions: {
    unitMs: 1,
    windows: (graceMs) => session(ms(10), { grace: ms(graceMs) }),
    contents: (arrivals) => naiveSessions(arrivals, 0, 10),
  },
  'sessions that are cut': {
    unitMs: 1,
    windows: (graceMs) => session(ms(10), { grace: ms(graceMs), longest: ms(15) }),
    contents: (arrivals) => naiveSessions(arrivals, 0, 10, 15),
  },
}

type Result = WindowResult<string, readonly number[]>

/** One release after the other, on one table. */
class Releases {
  readonly #kind: Kind
  readonly #arrivals: Arrival[] = []
  #world: TimedWorld<number, Result>
  readonly #results: Result[] = []

  constructor(kind: Kind, release: Release) {
    this.#kind = kind
    this.#world = new TimedWorld(this.#operator(release))
  }

  #operator({ emit, grace }: Release) {
    return windowed<number>(
      'w',
      this.#kind.windows(grace * this.#kind.unitMs),
      idsBy<number>((id) => id),
      emit,
    ) as never
  }

  deploy(release: Release, read?: (stored: KeyItem) => KeyItem): void {
    this.#world = this.#world.redeployed(this.#operator(release), read)
  }

  /** A record at a time, by what no release takes for late. */
  take(time: number, watermark: number): void {
    const { unitMs } = this.#kind
    const id = this.#arrivals.length
    this.#arrivals.push({ id, timeMs: time * unitMs, limitMs: Number.NEGATIVE_INFINITY })
    this.#results.push(...this.#world.take({ value: id, timeMs: time * unitMs }, watermark * unitMs))
  }

  advance(watermark: number): void {
    this.#results.push(...this.#world.advance(watermark * this.#kind.unitMs))
  }

  /** All results, as `[start, end)` to its revisions. */
  get results(): ReadonlyMap<string, readonly Result[]> {
    return Map.groupBy(this.#results, ({ window }) => `${window.startMs}-${window.endMs}`)
  }

  /** Nothing is late or left; the last revision of each window is what a batch makes of all records; none comes twice. */
  check(): void {
    expect(this.#world.late).toEqual([])
    expect(this.#world.stored()).toEqual({})
    const kept = new Map<string, readonly number[]>()
    for (const [window, results] of this.results) {
      expect(results.map(({ revision }) => revision)).toEqual([...results.keys()])
      expect(results.slice(0, -1).filter(({ isFinal }) => isFinal)).toEqual([])
      const last = results.at(-1) as Result
      if (!last.isRetracted) kept.set(window, last.value)
    }
    const { windows } = this.#kind.contents(this.#arrivals)
    expect([...kept].sort()).toEqual([...windows].sort())
  }

  /** Each window has said that nothing follows. */
  checkFinal(): void {
    expect([...this.results.values()].filter((results) => !results.at(-1)?.isFinal)).toEqual([])
  }
}

const saysFinal = ({ emit, grace }: Release, kind: string) =>
  emit === 'final' || (emit === 'on-close' && grace === 0 && !kind.startsWith('sessions'))

const changes: readonly (readonly [Release, Release])[] = (
  [
    ['final 60', 'final 2'],
    ['final 60', 'final 0'],
    ['final 60', 'on-close 60'],
    ['final 60', 'on-close 0'],
    ['final 60', 'on-update 60'],
    ['on-close 60', 'on-close 2'],
    ['on-close 60', 'on-close 0'],
    ['on-close 60', 'final 60'],
    ['on-close 60', 'final 2'],
    ['on-close 60', 'on-update 60'],
    ['on-update 60', 'on-close 60'],
    ['on-update 60', 'on-close 2'],
    ['on-update 60', 'on-close 0'],
    ['on-update 60', 'final 60'],
    ['on-update 60', 'final 2'],
    ['final 2', 'final 60'],
    ['final 2', 'on-close 60'],
    ['on-close 2', 'final 60'],
    ['on-update 2', 'on-close 60'],
  ] as const
).map(([before, after]) => [releaseOf(before), releaseOf(after)])

function releaseOf(text: string): Release {
  const [emit, grace] = text.split(' ') as [WindowEmission, string]
  return { emit, grace: Number(grace) }
}

const named = ({ emit, grace }: Release) => `${emit} ${grace}`

describe.each(Object.entries(kinds))('%s', (name, kind) => {
  const rows = changes.map(([before, after]) => [named(before), named(after), before, after] as const)

  test.each(rows)(
    '%s to %s: what is open has its result, and nothing comes twice',
    (_before, _after, before, after) => {
      const releases = new Releases(kind, before)
      releases.take(1, 0)
      releases.take(8, 0)
      releases.deploy(after)
      releases.advance(1_000)
      releases.check()
      if (saysFinal(after, name)) releases.checkFinal()
    },
  )

  test.each(rows)('%s to %s: what comes in a window that is open counts', (_before, _after, before, after) => {
    const releases = new Releases(kind, before)
    releases.take(1, 0)
    releases.take(8, 0)
    releases.deploy(after)
    releases.take(3, 0)
    releases.take(8, 0)
    releases.advance(1_000)
    releases.check()
    if (saysFinal(after, name)) releases.checkFinal()
  })

  test.each(rows)('%s to %s within the grace', (_before, _after, before, after) => {
    const releases = new Releases(kind, before)
    releases.take(1, 0)
    releases.take(8, 0)
    releases.advance(11)
    releases.deploy(after)
    releases.take(12, 11)
    releases.advance(1_000)
    releases.check()
    if (saysFinal(after, name) && before.grace === 60) releases.checkFinal()
  })

  test('releases that come and go, with records in any order within the least grace', () => {
    const graces = [2, 7, 30]
    const release = fc.record({
      emit: fc.constantFrom<WindowEmission[]>('on-close', 'final', 'on-update'),
      grace: fc.constantFrom(...graces),
    })
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ ahead: fc.integer({ min: -2, max: 12 }), by: fc.integer({ min: 0, max: 6 }) }),
      },
      { weight: 1, arbitrary: release },
    )
    fc.assert(
      fc.property(release, fc.array(step, { minLength: 3, maxLength: 25 }), (first, steps) => {
        const releases = new Releases(kind, first)
        let watermark = 0
        for (const next of steps) {
          if ('emit' in next) releases.deploy(next)
          else {
            releases.take(watermark + next.by + next.ahead, watermark + next.by)
            watermark += next.by
          }
        }
        releases.advance(watermark + 1_000)
        releases.check()
      }),
      { numRuns: 150 },
    )
  })

  test('what the release before wrote is read as it is: nothing is lost and nothing comes again', () => {
    const emits = fc.constantFrom<WindowEmission[]>('on-close', 'final', 'on-update')
    const moves = fc.record({ ahead: fc.integer({ min: -5, max: 12 }), by: fc.integer({ min: 0, max: 6 }) })
    fc.assert(
      fc.property(
        fc.record({ emit: emits, grace: fc.constantFrom(0, 5) }),
        fc.array(moves, { minLength: 2, maxLength: 20 }),
        fc.nat({ max: 19 }),
        (release, steps, at) => {
          const [releases, undisturbed] = [new Releases(kind, release), new Releases(kind, release)]
          let watermark = 0
          for (const [i, { ahead, by }] of steps.entries()) {
            if (i === at) releases.deploy(release, ofReleaseBefore)
            const time = watermark + by + Math.max(ahead, -release.grace)
            for (const world of [releases, undisturbed]) world.take(time, watermark + by)
            watermark += by
          }
          for (const world of [releases, undisturbed]) world.advance(watermark + 1_000)
          expect(releases.results).toEqual(undisturbed.results)
          releases.check()
        },
      ),
      { numRuns: 150 },
    )
  })
})

test('a longer grace opens no window again that is settled while its key has others: what comes for it is late', () => {
  const operator = (graceMs: number) =>
    windowed<number>('w', hopping(ms(10), { every: ms(4), grace: ms(graceMs) }), count(), 'final') as never
  const before = new TimedWorld<number, WindowResult<string, number>>(operator(2))
  const results = [1, 8].flatMap((timeMs) => before.take({ value: timeMs, timeMs }, 0))
  results.push(...before.advance(11))
  const after = before.redeployed(operator(60))
  // One for windows that are settled alone, and one that is in another one, too.
  for (const timeMs of [-1, 3]) results.push(...after.take({ value: timeMs, timeMs }, 11))
  results.push(...after.advance(1_000))
  expect(after.late).toEqual([-1])
  expect(results.map(({ window, revision, value }) => [window.endMs, revision, value])).toEqual([
    [2, 0, 1],
    [6, 0, 1],
    [10, 0, 3],
    [14, 0, 1],
    [18, 0, 1],
  ])
})

describe('new rules of a time zone, while a day is open', () => {
  const hourMs = 3_600_000
  const [march, october] = [Date.UTC(2026, 2, 29), Date.UTC(2026, 9, 25)]
  /** Zones whose days begin at one moment and end at two, or the other way round: as one zone before and after a law. */
  test.each<[what: string, dayMs: number, before: string, after: string, expected: readonly string[]]>([
    ['its end is moved earlier', march, 'Africa/Algiers', 'Europe/Berlin', ['-1-22 n1', '-1-23 n2', '22-46 n1']],
    ['its end is moved later', march, 'Europe/Berlin', 'Africa/Algiers', ['-1-22 n2', '-1-23 n2']],
    ['its start is moved later', october, 'Europe/Berlin', 'Africa/Algiers', ['-2-23 n4']],
    ['its start is moved earlier', october, 'Africa/Algiers', 'Europe/Berlin', ['-1-23 n4']],
  ])('%s: what it holds is put out, with the bounds that it began with', (_what, dayMs, before, after, expected) => {
    for (const emit of ['on-close', 'final', 'on-update'] as const) {
      for (const graceHours of [0, 5]) {
        const operator = (zone: string) =>
          windowed<number>('w', calendarDays(zone, { grace: ms(graceHours * hourMs) }), count(), emit) as never
        const first = new TimedWorld<number, WindowResult<string, number>>(operator(before))
        const at = (hour: number) => ({ value: 0, timeMs: dayMs + hour * hourMs })
        const results = [10, 11].flatMap((hour) => first.take(at(hour), dayMs))
        const then = first.redeployed(operator(after))
        for (const hour of [12, 22.5]) results.push(...then.take(at(hour), dayMs))
        // In steps, as each hour of another key would.
        for (let hour = 1; hour < 60; hour += 1) results.push(...then.advance(dayMs + hour * hourMs))
        const last = new Map(
          results.map(({ window, value }) => {
            const [start, end] = [window.startMs, window.endMs].map((timeMs) => (timeMs - dayMs) / hourMs)
            return [`${start}-${end}`, value]
          }),
        )
        expect([...last].map(([window, n]) => `${window} n${n}`).sort()).toEqual(expected)
        expect(then.stored()).toEqual({})
      }
    }
  })
})

/** It did not write how far windows were settled that share slices. */
function ofReleaseBefore(stored: KeyItem): KeyItem {
  const states = Object.entries(stored.states).map(([name, state]) => {
    if (typeof state !== 'object' || state === null || Array.isArray(state)) return [name, state]
    const { over: _, ...rest } = state as { readonly over?: number | null }
    return [name, rest]
  })
  return { ...stored, states: Object.fromEntries(states) }
}
