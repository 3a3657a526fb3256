/**
 * The application with time: windows of several kinds, timers, and what is sent to them.
 *
 * ```text
 * visits -> hits of a visit -> by-visitor: finals (and two more kinds of windows) -> results, late
 *                                          watch: timers of both kinds of time -> (watched), in some runs windows
 *                              finals -> by-group: totals, windows of windows -> (totals)
 * ```
 */
import { milliseconds } from '../../core/duration.ts'
import { TerminalError } from '../../core/errors.ts'
import { type Format, json } from '../../core/format.ts'
import { count } from '../../operators/aggregators/count.ts'
import { sum } from '../../operators/aggregators/sum.ts'
import { sideOutput } from '../../operators/keyed/side-output.ts'
import { eventTimer, processingTimer } from '../../operators/keyed/timers.ts'
import type { WindowResult } from '../../operators/keyed/window/window-result.ts'
import { mapState, valueState } from '../../state/states.ts'
import { epochMs } from '../../time/event-time.ts'
import { calendarDays } from '../../time/windows/calendar-days.ts'
import { countWindow } from '../../time/windows/count-window.ts'
import { hopping, tumbling } from '../../time/windows/hopping.ts'
import { session } from '../../time/windows/session.ts'
import { sliding } from '../../time/windows/sliding.ts'
import type { KeyedStream, Stream } from '../../topology/stream.ts'
import { Topology } from '../../topology/topology.ts'
import type { Random } from './random.ts'
import type { SourceItem, Variant } from './variant.ts'

export interface Hit {
  readonly hit: string
  readonly user: string
  readonly cents: number
  /** What it does to the timers of its user. */
  readonly does: 'watch' | 'clear' | 'poll soon' | 'poll later'
  readonly fails: 'never' | 'always' | 'for good' | 'kills'
}

export interface Visit {
  readonly visit: string
  readonly atMs: number
  readonly fails: 'never' | 'always'
  readonly hits: readonly Hit[]
}

/** What a window amounted to. */
export interface WindowOutput {
  readonly user: string
  readonly startMs: number
  readonly endMs: number
  readonly revision: number
  readonly isFinal: boolean
  readonly isRetracted: boolean
  readonly count: number
  readonly cents: number
}

/** What a kind of windows is, for the topology and for the oracle. */
export interface WindowSpec {
  readonly name: string
  /** Undefined for sessions, and for windows that slide. */
  readonly everyMs: number | undefined
  /** Of a session, the gap. */
  readonly sizeMs: number
  readonly graceMs: number
  readonly emit: 'on-close' | 'final' | 'on-update'
  /** True for windows that move with the records. */
  readonly slides?: true
  /** True for windows of what the watch says: they stand behind its timers, in one stage with them. */
  readonly isBehindTimers?: true
  /** Of windows of so many records; they have no size. */
  readonly count?: number
  /** Of calendar days, the time zone: one whose days are those of UTC while a run lasts, so that the oracle needs no calendar. */
  readonly zone?: string
}

export const timedNames = {
  topology: 'simulated-time',
  source: 'visits',
  keyed: 'by-visitor',
  second: 'by-group',
  disorderMs: 15_000,
  /** A user is idle so long after the last hit, in event time. */
  idleMs: 90_000,
  /** Where windows stand behind the watch, what a hit sets in the past of its own time. */
  echoMs: 40_000,
  pollSoonMs: 500,
  pollLaterMs: 40_000,
} as const

export const visitorSlots = 8
export const groupSlots = 4

/** Its results go on to the second keyed stage, so it is always there. */
export const finals: WindowSpec = { name: 'finals', everyMs: 60_000, sizeMs: 60_000, graceMs: 20_000, emit: 'final' }

/** Of these each run has two. */
export const otherWindows: readonly WindowSpec[] = [
  { name: 'closing', everyMs: 60_000, sizeMs: 60_000, graceMs: 20_000, emit: 'on-close' },
  { name: 'strict', everyMs: 60_000, sizeMs: 60_000, graceMs: 0, emit: 'on-close' },
  { name: 'updates', everyMs: 60_000, sizeMs: 60_000, graceMs: 20_000, emit: 'on-update' },
  { name: 'hops', everyMs: 30_000, sizeMs: 120_000, graceMs: 10_000, emit: 'on-close' },
  { name: 'hop-finals', everyMs: 40_000, sizeMs: 90_000, graceMs: 20_000, emit: 'final' },
  { name: 'sessions', everyMs: undefined, sizeMs: 45_000, graceMs: 20_000, emit: 'on-close' },
  { name: 'session-finals', everyMs: undefined, sizeMs: 45_000, graceMs: 20_000, emit: 'final' },
]

export const dayMs = 86_400_000

/** Of these half of the sources have one. */
export const moreWindows: readonly WindowSpec[] = [
  { name: 'threes', everyMs: undefined, sizeMs: 0, graceMs: 0, emit: 'final', count: 3 },
  { name: 'fives', everyMs: undefined, sizeMs: 0, graceMs: 0, emit: 'on-close', count: 5 },
  { name: 'days', everyMs: dayMs, sizeMs: dayMs, graceMs: 20_000, emit: 'on-update', zone: 'Europe/London' },
  {
    name: 'day-closings',
    everyMs: dayMs,
    sizeMs: dayMs,
    graceMs: 20_000,
    emit: 'on-close',
    zone: 'Atlantic/Reykjavik',
  },
]

/** Of these a third of the sources have one. */
export const slidingWindows: readonly WindowSpec[] = [
  { name: 'slides', everyMs: undefined, slides: true, sizeMs: 60_000, graceMs: 20_000, emit: 'on-close' },
  { name: 'strict-slides', everyMs: undefined, slides: true, sizeMs: 45_000, graceMs: 0, emit: 'on-close' },
  { name: 'slide-finals', everyMs: undefined, slides: true, sizeMs: 60_000, graceMs: 20_000, emit: 'final' },
  { name: 'slide-updates', everyMs: undefined, slides: true, sizeMs: 30_000, graceMs: 10_000, emit: 'on-update' },
]

/** Of these a third of the sources have one. By their names they come first where a timer of the watch is due at the same time. */
export const windowsBehindTimers: readonly WindowSpec[] = [
  { name: 'silence-finals', everyMs: 60_000, sizeMs: 60_000, graceMs: 20_000, emit: 'final', isBehindTimers: true },
  { name: 'silence-strict', everyMs: 60_000, sizeMs: 60_000, graceMs: 0, emit: 'on-close', isBehindTimers: true },
  { name: 'silence-closing', everyMs: 60_000, sizeMs: 60_000, graceMs: 20_000, emit: 'on-close', isBehindTimers: true },
  { name: 'silence-hops', everyMs: 40_000, sizeMs: 90_000, graceMs: 20_000, emit: 'final', isBehindTimers: true },
  {
    name: 'silence-sessions',
    everyMs: undefined,
    sizeMs: 45_000,
    graceMs: 20_000,
    emit: 'final',
    isBehindTimers: true,
  },
]

/** What a redeploy adds: windows with sinks of their own, and a sink of the stage that reads the source. */
export const addedWindows: WindowSpec = {
  name: 'added',
  everyMs: 50_000,
  sizeMs: 50_000,
  graceMs: 10_000,
  emit: 'on-close',
}
export const auditedVisits = 'audited-visits'

/** Whether only one version of the application knows a sink. */
export const isAddedSink = (sink: string): boolean =>
  [addedWindows.name, `${addedWindows.name}-late`, auditedVisits].includes(sink)

/** What waits for longer than this after a run's beginning is never seen to come: the end of a day, the time of a wrong clock. */
export const farMs = 12 * 3_600_000

/** The windows of the second keyed stage, over the final results of the first. */
export const totals: WindowSpec = { name: 'totals', everyMs: 180_000, sizeMs: 180_000, graceMs: 0, emit: 'final' }

/**
 * The application in one of two versions that are compatible with each other; the second has what the changes say. Steps are pure:
 * they may be run any number of times.
 */
export function timedTopology(
  version: 0 | 1,
  windows: readonly WindowSpec[],
  { hasThirdStage, changes, kill }: Variant,
): Topology {
  const isSecond = version === 1
  const app = new Topology(timedNames.topology)
  const visits = app.source(timedNames.source, json() as Format<Visit>, {
    eventTime: epochMs(({ atMs }: Visit) => atMs),
    outOfOrderness: milliseconds(timedNames.disorderMs),
    skewLimit: milliseconds(farMs),
  })
  const hits = visits.flatMap(({ fails, hits }) => {
    if (fails === 'always') throw new Error('this visit always fails')
    return hits
  })
  if (isSecond && changes.sink) {
    const audited = app.sink<{ visit: string }>(auditedVisits, { key: ({ visit }) => visit })
    visits.map(({ visit, hits }) => ({ visit, hits: hits.length })).to(audited)
  }
  const byVisitor = hits.keyBy(timedNames.keyed, ({ user }) => user, { slots: visitorSlots })
  const hasWindowsBehind = windows.some(({ isBehindTimers }) => isBehindTimers)
  const watched = addWatch(app, byVisitor, { kill, echoes: hasWindowsBehind })
  for (const spec of windows) {
    const results = spec.isBehindTimers
      ? addWindows(app, watched, spec, ({ seen }) => seen)
      : addWindows(app, byVisitor, spec, centsOf)
    // By name: a bundled release has its own copy of what is named here.
    if (spec.name === finals.name && hasThirdStage && (isSecond || !changes.stage)) addTotals(app, results)
  }
  if (isSecond && changes.operator) addWindows(app, byVisitor, addedWindows, centsOf)
  return app
}

const windowsOf = ({ sizeMs, everyMs, graceMs, zone, slides }: WindowSpec) => {
  const [size, grace] = [milliseconds(sizeMs), milliseconds(graceMs)]
  if (zone !== undefined) return calendarDays(zone, { grace })
  if (slides) return sliding(size, { grace })
  if (everyMs === undefined) return session(size, { grace })
  return everyMs === sizeMs ? tumbling(size, { grace }) : hopping(size, { every: milliseconds(everyMs), grace })
}

const centsOf = ({ cents }: Hit): number => cents

function addWindows<T extends { readonly user: string }>(
  app: Topology,
  byVisitor: KeyedStream<T>,
  spec: WindowSpec,
  amountOf: (value: T) => number,
): Stream<WindowOutput> {
  const { name, emit } = spec
  if (spec.count !== undefined) return addCountWindows(app, byVisitor, spec, spec.count, amountOf)
  const windowed = byVisitor
    .window(windowsOf(spec))
    .aggregate(`${name}-windows`, { count: count(), cents: sum(amountOf) }, { emit })
  const results = windowed.results.map(outputOf)
  results.to(app.sink<WindowOutput>(name, { key: ({ user }) => user }))
  windowed.late.to(app.sink<T>(`${name}-late`, { key: ({ user }) => user }))
  return results
}

function addCountWindows<T>(
  app: Topology,
  byVisitor: KeyedStream<T>,
  { name, emit }: WindowSpec,
  records: number,
  amountOf: (value: T) => number,
): Stream<WindowOutput> {
  const { results } = byVisitor
    .window(countWindow(records))
    .aggregate(
      `${name}-windows`,
      { count: count(), cents: sum(amountOf) },
      { emit: emit === 'final' ? 'final' : 'on-close' },
    )
  const outputs = results.map(outputOf)
  outputs.to(app.sink<WindowOutput>(name, { key: ({ user }) => user }))
  return outputs
}

const outputOf = ({
  key,
  window,
  revision,
  isFinal,
  isRetracted,
  value,
}: WindowResult<string, { readonly count: number; readonly cents: number | undefined }>): WindowOutput => ({
  user: key,
  ...window,
  revision,
  isFinal,
  isRetracted,
  count: value.count,
  cents: value.cents ?? 0,
})

/** What the second keyed stage is sent. */
export interface GroupResult {
  readonly user: string
  readonly group: string
  readonly endMs: number
  readonly cents: number
}

/** Users fall into three groups. */
export const groupOf = (user: string): string => `group-${Number(user.slice('user-'.length)) % 3}`

function addTotals(app: Topology, results: Stream<WindowOutput>): void {
  const windowed = results
    .map(({ user, endMs, cents }): GroupResult => ({ user, group: groupOf(user), endMs, cents }))
    .keyBy(timedNames.second, ({ group }) => group, { slots: groupSlots })
    .window(windowsOf(totals))
    .aggregate(
      `${totals.name}-windows`,
      { count: count(), cents: sum(({ cents }: GroupResult) => cents) },
      { emit: 'final' },
    )
  windowed.results.map(outputOf).to(app.sink<WindowOutput>(totals.name, { key: ({ user }) => user }))
  windowed.late.to(app.sink<GroupResult>(`${totals.name}-late`, { key: ({ group }) => group }))
}

/** What the watch says: of a hit, or of a timer. */
export interface Watched {
  readonly user: string
  readonly what: string
  readonly seen: number
  readonly byCents: readonly string[] | null
}

/** Whether the step of an idle timer throws: its firing is a dead letter. */
export const timerFails = (timeMs: number): boolean => Math.floor(timeMs / 1_000) % 13 === 5

/** How far in the past of an idle timer the one lies that it sets: where windows stand behind the watch, some are over. */
export const echoBehindMs = (seen: number): number => (seen % 3) * 60_000

/** Hits of a user are counted in a map, by what they are worth. */
export const bucketOf = (cents: number): string => `bucket-${cents % 4}`

function addWatch(
  app: Topology,
  byVisitor: KeyedStream<Hit>,
  { kill, echoes }: Pick<Variant, 'kill'> & { readonly echoes: boolean },
): KeyedStream<Watched> {
  const watch = byVisitor.process('watch', {
    state: { seen: valueState<number>(), buckets: mapState<number>() },
    timers: { idle: eventTimer(), echo: eventTimer(), poll: processingTimer() },
    // Polls go past the windows: their time is that on the wall, to which event time would have to come first.
    sides: { polled: sideOutput<Watched>() },
    // Some entries are loaded with the batch; the others are missed by the step, loaded, and the step runs again.
    prefetch: ({ cents }: Hit) => (cents % 2 === 0 ? { buckets: [bucketOf(cents)] } : {}),
    step: (hit: Hit, { key, record, state, timers }): Watched[] => {
      if (hit.fails === 'always') throw new Error('this hit always fails')
      if (hit.fails === 'for good') throw new TerminalError('this hit fails for good')
      if (hit.fails === 'kills') kill()
      const seen = (state.seen.get() ?? 0) + 1
      state.seen.set(seen)
      const bucket = bucketOf(hit.cents)
      state.buckets.set(bucket, (state.buckets.get(bucket) ?? 0) + 1)
      if (hit.does === 'clear') timers.idle.clear()
      else timers.idle.set(record.eventTimeMs + timedNames.idleMs)
      if (echoes && hit.does.startsWith('poll')) timers.echo.set(record.eventTimeMs - timedNames.echoMs)
      if (hit.does === 'poll soon') timers.poll.set(record.arrivalTimeMs + timedNames.pollSoonMs)
      if (hit.does === 'poll later') timers.poll.set(record.arrivalTimeMs + timedNames.pollLaterMs)
      return [{ user: key, what: hit.hit, seen, byCents: null }]
    },
    onTimer: {
      idle: (timeMs, { key, state, timers }): Watched[] => {
        if (timerFails(timeMs)) throw new Error('this timer fails')
        const seen = state.seen.get() ?? 0
        if (echoes) timers.echo.set(timeMs - echoBehindMs(seen))
        const byCents = [...state.buckets.entries()].map(([bucket, count]) => `${bucket}=${count}`)
        state.seen.clear()
        for (const entry of byCents) state.buckets.delete(entry.slice(0, entry.indexOf('=')))
        return [{ user: key, what: `idle ${timeMs}`, seen, byCents }]
      },
      echo: (timeMs, { key, state }): Watched[] => [
        { user: key, what: `echo ${timeMs}`, seen: state.seen.get() ?? 0, byCents: null },
      ],
      poll: (timeMs, { key, state, sides, timers }): Watched[] => {
        if (echoes) timers.echo.set(timeMs - dayMs)
        sides.polled.emit({ user: key, what: `poll ${timeMs}`, seen: state.seen.get() ?? 0, byCents: null })
        return []
      },
    },
  })
  const sink = app.sink<Watched>('watched', { key: ({ user }) => user })
  watch.to(sink)
  watch.sides.polled.to(sink)
  return watch
}

export interface TimedEntry extends SourceItem {
  /** Undefined for bytes that no decoder reads. */
  readonly visit: Visit | undefined
}

const users = Array.from({ length: 10 }, (_, i) => `user-${i}`)
const accounts = ['acme', 'bell', 'corp', 'dune', 'echo', 'fern']

/** The records that are sent to the source. They depend on the random numbers alone, never on the schedule. */
export function timedRecords(random: Random, startMs: number): readonly TimedEntry[] {
  const count = random.integer(40, 80)
  const hasPoison = random.chance(0.5)
  const killer = random.chance(0.1) ? random.integer(0, count - 1) : -1
  // In one source of four the last record is about an hour behind the first, so partitions are read an hour apart.
  const spacingMs = random.pick([2_000, 4_000, 8_000, 45_000])
  // A few accounts leave partitions empty; one that falls silent leaves its partition behind.
  const active = accounts.slice(0, random.pick([1, 2, 4, 6, 6]))
  const silent = random.chance(0.5) ? random.pick(active) : undefined
  const silentFrom = random.integer(0, count)
  const silentUntil = random.chance(0.5) ? count : random.integer(silentFrom, count)
  // In one source of four some clocks are days or years ahead.
  const clocks = random.fork('clocks')
  const aheadShare = clocks.chance(0.25) ? 0.08 : 0
  const sent: TimedEntry[] = []
  for (let i = 0; i < count; i++) {
    const isSilent = i >= silentFrom && i < silentUntil
    const drawn = random.pick(active)
    const account = isSilent && drawn === silent ? (active.find((other) => other !== silent) ?? drawn) : drawn
    const hits = Array.from({ length: random.pick([0, 1, 1, 1, 2]) }, (_, at): Hit => {
      const fails = i === killer && at === 0 ? 'kills' : hasPoison && random.chance(0.03) ? poisonOf(random) : 'never'
      return {
        hit: `${i}.${at}`,
        user: users[Math.floor(random.next() ** 2 * users.length)] as string,
        cents: random.integer(1, 999),
        does: random.pick(['watch', 'watch', 'watch', 'clear', 'poll soon', 'poll later'] as const),
        fails,
      }
    })
    const aheadMs = clocks.chance(aheadShare) ? clocks.pick([2, 30, 4_000]) * dayMs : 0
    const visit: Visit = {
      visit: `visit-${i}`,
      atMs: startMs + i * spacingMs - random.pick([0, 0, 0, 2_000, 10_000, 14_000, 30_000, 60_000, 150_000]) + aheadMs,
      fails: hasPoison && random.chance(0.015) ? 'always' : 'never',
      hits,
    }
    const isBroken = hasPoison && random.chance(0.01)
    const bytes = Buffer.from(isBroken ? `{"visit":"visit-${i}"` : JSON.stringify(visit))
    sent.push({ account, visit: isBroken ? undefined : visit, bytes })
  }
  return sent
}

const poisonOf = (random: Random): 'always' | 'for good' => random.pick(['always', 'for good'] as const)
