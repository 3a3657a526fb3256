/** What follows from the source alone: own marks, what is late, and what each window amounts to in the end. */
import type { Simulation } from './simulation.ts'
import { slidingOf } from './sliding-oracle.ts'
import { type Gathered, sessionsOf, startsOf } from './timed-oracle.ts'
import { farMs, type Hit, type TimedEntry, timedNames, type WindowSpec } from './timed-workload.ts'

/** A hit that reaches the keyed stage, with its time and its own mark. */
export interface SourceHit extends Hit {
  readonly eventTimeMs: number
  readonly ownMarkMs: number
}

export interface TimedBySource {
  /** By name of the hit. */
  readonly hits: ReadonlyMap<string, SourceHit>
  /** Records that the first stage gives up, as their bytes in base64. */
  readonly dead: ReadonlySet<string>
  /** By name of the windows, the hits that are late for all of them. */
  readonly late: ReadonlyMap<string, ReadonlySet<string>>
  /** By name of the windows, by user and bounds, count and cents. */
  readonly outcomes: ReadonlyMap<string, ReadonlyMap<string, string>>
}

export const windowName = (user: string, startMs: number, endMs: number): string => `${user} [${startMs}, ${endMs})`
export const amountOf = ({ count, cents }: Pick<Gathered, 'count' | 'cents'>): string => `${count} of ${cents}`

export function timedBySource(
  run: Simulation,
  entries: readonly TimedEntry[],
  windows: readonly WindowSpec[],
): TimedBySource {
  const hits = new Map<string, SourceHit>()
  const dead = new Set<string>()
  const sentAt = new Map(run.sent.map(({ shard, sequenceNumber, index }) => [`${shard}/${sequenceNumber}`, index]))
  const largest = new Map<string, number>()
  for (const shard of run.streams.stream(timedNames.source).shards.values()) {
    const had = shard.parents.map((parent) => largest.get(parent) as number).filter(Number.isFinite)
    let largestMs = had.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...had)
    for (const { sequenceNumber, arrivalMs } of shard.records) {
      const { visit, bytes } = entries[sentAt.get(`${shard.id}/${sequenceNumber}`) as number] as TimedEntry
      if (visit === undefined || visit.fails !== 'never') dead.add(Buffer.from(bytes).toString('base64'))
      if (visit === undefined) continue
      // What is too far ahead of its arrival is late for every window, and moves no time.
      const isAhead = visit.atMs - arrivalMs > farMs
      const ownMarkMs = isAhead ? Number.POSITIVE_INFINITY : largestMs - timedNames.disorderMs
      const times = { eventTimeMs: visit.atMs, ownMarkMs }
      if (visit.fails === 'never') for (const hit of visit.hits) hits.set(hit.hit, { ...hit, ...times })
      if (!isAhead) largestMs = Math.max(largestMs, visit.atMs)
    }
    largest.set(shard.id, largestMs)
  }
  const good = [...hits.values()].filter(({ fails }) => fails === 'never')
  const late = new Map<string, ReadonlySet<string>>()
  const outcomes = new Map<string, ReadonlyMap<string, string>>()
  for (const spec of windows) {
    if (!followsFromSource(spec)) continue
    const { inTime, isLate } = followsFrom(spec, good)
    late.set(spec.name, new Set(good.filter(isLate).map(({ hit }) => hit)))
    outcomes.set(spec.name, inTime)
  }
  return { hits, dead, late, outcomes }
}

/**
 * Whether the source alone says what windows amount to. Which records share a window of so many depends on the order in which they
 * come, and whether a timer fires, or is set anew before, on how far other partitions were read.
 */
export const followsFromSource = ({ count, isBehindTimers }: WindowSpec): boolean =>
  count === undefined && isBehindTimers === undefined

function followsFrom(spec: WindowSpec, hits: readonly SourceHit[]) {
  if (spec.slides) return bySliding(spec, hits)
  return spec.everyMs === undefined ? bySession(spec, hits) : byWindow(spec, hits)
}

function byWindow(spec: WindowSpec, hits: readonly SourceHit[]) {
  const { sizeMs, graceMs } = spec
  const open = ({ eventTimeMs, ownMarkMs }: SourceHit) =>
    startsOf(eventTimeMs, spec).filter((startMs) => startMs + sizeMs + graceMs > ownMarkMs)
  const amounts = new Map<string, { count: number; cents: number }>()
  for (const hit of hits) {
    for (const startMs of open(hit)) {
      const name = windowName(hit.user, startMs, startMs + sizeMs)
      const amount = amounts.get(name) ?? { count: 0, cents: 0 }
      amounts.set(name, amount)
      amount.count += 1
      amount.cents += hit.cents
    }
  }
  const inTime = new Map([...amounts].map(([name, amount]) => [name, amountOf(amount)]))
  return { inTime, isLate: (hit: SourceHit) => open(hit).length === 0 }
}

function bySession({ sizeMs, graceMs }: WindowSpec, hits: readonly SourceHit[]) {
  const isLate = ({ eventTimeMs, ownMarkMs }: SourceHit) => eventTimeMs + sizeMs + graceMs <= ownMarkMs
  const users = Map.groupBy(
    hits.filter((hit) => !isLate(hit)),
    ({ user }) => user,
  )
  const inTime = new Map(
    [...users].flatMap(([user, own]) =>
      sessionsOf(own, sizeMs).map(
        (session) => [windowName(user, session.startMs, session.endMs), amountOf(session)] as const,
      ),
    ),
  )
  return { inTime, isLate }
}

function bySliding({ sizeMs, graceMs }: WindowSpec, hits: readonly SourceHit[]) {
  const isLate = ({ eventTimeMs, ownMarkMs }: SourceHit) => eventTimeMs + sizeMs + graceMs <= ownMarkMs
  const users = Map.groupBy(
    hits.filter((hit) => !isLate(hit)),
    ({ user }) => user,
  )
  const inTime = new Map(
    [...users].flatMap(([user, own]) => {
      const records = own.map((hit) => ({ ...hit, overMs: hit.ownMarkMs - graceMs }))
      return slidingOf(records, sizeMs).map(
        (window) => [windowName(user, window.startMs, window.endMs), amountOf(window)] as const,
      )
    }),
  )
  return { inTime, isLate }
}
