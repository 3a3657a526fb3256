/**
 * The announcer: each minute it compares the partitions that feed a keyed stage with what each partition of the stage knows
 * of them, and says what is missing. It writes no state and fires nothing.
 *
 * Invariants (cited by test/runtime/announcer/announcer.test.ts)
 * 1. It says a thing again and again until progress shows it, so a lost word, or one said twice, does no harm.
 * 2. The first set comes whole: until it is known the stage's watermark stays where it is. Children are opened with or before
 *    the close of their parents, in one control frame.
 * 3. A close comes when the partition is drained, and names the last position that was sent to each slot. One that its stream
 *    no longer knows is closed as well.
 * 4. A source partition that is truly caught up, with nothing behind what was processed, gets an idle mark: its largest event
 *    time and the time since that record arrived, less the disorder. One that never had a record, nor a parent that had, is
 *    idle without a mark.
 * 5. Marks are said only while something is due in the stage or in a stage below it, and only from where they reach it: a
 *    silent application wakes no stage. That includes marks that were stored and never told.
 * 6. What is known is read before the partitions are listed, from the last stage to the first. So no partition is taken for
 *    gone that began in between.
 * 7. An upstream of a stage that feeds this one no longer holds nothing back, and is not closed: the deployment that took it
 *    away may be rolled back.
 * 8. A partition with a processing-time timer that is due gets a tick: a control frame, with or without news, whose arrival is
 *    the time. So does one that begins with something due, as what it follows had come to different times.
 * 9. Upstreams are named with the generation of their stage, and nothing is said while stages are of several.
 */
import { type FeedingStage, type KeyedStage, type Plan, stageNamed } from '../../plan/plan.ts'
import type { EncodedFrame, UpstreamNews } from '../frames/frame.ts'
import { encodeControl } from '../frames/frame-format.ts'
import { upstreamKey } from '../frames/upstream-memory.ts'
import { upstreamName } from '../progress/generation.ts'
import type { KeyedProgress } from '../progress/progress.ts'
import {
  type AnnouncerPorts,
  type FeederKnowledge,
  KeyedKnowledge,
  SourceKnowledge,
  type UpstreamFacts,
} from './knowledge.ts'

export interface AnnouncerOptions {
  readonly planned: Plan
  readonly ports: AnnouncerPorts
  readonly signal: AbortSignal
  /**
   * How much time has passed since a record arrived that was the last of a partition that is caught up, in ms; undefined says
   * nothing of such partitions. @default the time on the clock since then
   */
  readonly idleMs?: ((arrivedAtMs: number) => number) | undefined
}

/** What one round said to one partition of a keyed stage; without news it was a tick. */
export interface Announced {
  readonly stage: string
  readonly partition: string
  readonly news: readonly UpstreamNews[]
}

/**
 * One round for every keyed stage of a topology. A stage that cannot be told keeps no other from being told; the round then
 * rejects at its end, with the first failure.
 */
export async function announce(options: AnnouncerOptions): Promise<readonly Announced[]> {
  const { planned, ports, signal } = options
  // Before anything is read: what arrives while the round runs is not counted as silence.
  const nowMs = ports.clock.nowMs()
  const knowledge = new Map<string, KeyedKnowledge>()
  for (const stage of planned.stages.toReversed()) {
    if (stage.kind === 'keyed') knowledge.set(stage.name, await KeyedKnowledge.read(stage, ports, signal))
  }
  const sources = new Map<string, SourceKnowledge>()
  for (const stage of planned.stages) {
    if (stage.kind === 'feeding') sources.set(stage.name, await SourceKnowledge.read(stage, ports, signal))
  }
  const said: Announced[] = []
  const failures: unknown[] = []
  for (const stage of planned.stages) {
    if (stage.kind !== 'keyed') continue
    try {
      said.push(...(await new Round(options, stage, nowMs, knowledge, sources).run()))
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
  return said
}

/** One round for one keyed stage. */
class Round {
  readonly #options: AnnouncerOptions
  readonly #stage: KeyedStage
  readonly #nowMs: number
  readonly #own: KeyedKnowledge
  readonly #feeders: ReadonlyMap<string, FeederKnowledge>
  /** The least time that is due here or below, in ms since 1970 UTC; Infinity where nothing is. */
  readonly #dueMs: number

  constructor(
    options: AnnouncerOptions,
    stage: KeyedStage,
    nowMs: number,
    keyed: ReadonlyMap<string, KeyedKnowledge>,
    sources: ReadonlyMap<string, SourceKnowledge>,
  ) {
    this.#options = options
    this.#stage = stage
    this.#nowMs = nowMs
    this.#own = keyed.get(stage.name) as KeyedKnowledge
    this.#feeders = new Map(
      stage.fedBy.map((name) => [name, (sources.get(name) ?? keyed.get(name)) as FeederKnowledge]),
    )
    this.#dueMs = earliestDueMs(options.planned, stage, keyed)
  }

  async run(): Promise<readonly Announced[]> {
    const { ports, signal } = this.#options
    const { name } = this.#stage
    const listed: UpstreamFacts[] = []
    for (const feeder of this.#feeders.values()) listed.push(...(await feeder.facts(name)))
    const said: Announced[] = []
    const frames: EncodedFrame[] = []
    const { generation } = this.#own
    // While stages are being reset nothing is said: what was read is of several generations.
    if (generation === undefined || [...this.#feeders.values()].some((feeder) => feeder.generation !== generation))
      return said
    for (const { partition, progress } of this.#own.open) {
      const news = await this.#news(progress, listed)
      const [slot] = progress.held
      if (slot === undefined || (news.length === 0 && !needsTick(progress, this.#nowMs))) continue
      frames.push(encodeControl({ kind: 'control', from: 'announcer', slot, news: named(news, generation) }))
      said.push({ stage: name, partition, news })
    }
    if (frames.length > 0) await ports.frames?.(name)?.publish(frames, signal)
    return said
  }

  /** What a partition of the stage does not know yet. */
  async #news(progress: KeyedProgress, listed: readonly UpstreamFacts[]): Promise<readonly UpstreamNews[]> {
    const news: UpstreamNews[] = []
    for (const facts of listed) news.push(...(await this.#newsOf(progress, facts)))
    const names = new Set(listed.map(({ upstream }) => upstreamKey(upstream)))
    for (const [key, { upstream, state }] of progress.upstreams) {
      const feeder = this.#feeders.get(upstream.name)
      if (state === 'closed' || feeder === undefined || names.has(key)) continue
      const facts = await feeder.lost(upstream.partition, this.#stage.name)
      if (facts) news.push(closed(facts))
    }
    return [...news, ...this.#released(progress, news)]
  }

  async #newsOf(progress: KeyedProgress, facts: UpstreamFacts): Promise<readonly UpstreamNews[]> {
    const { upstream, markMs } = facts
    const known = progress.upstreams.get(upstreamKey(upstream))
    if (known?.state === 'closed') return []
    const isNew = known === undefined || !progress.known
    const first = isNew ? [opened(upstream, markMs)] : []
    if (await facts.isOver()) return [...first, closed(facts)]
    if (this.#dueMs === Number.POSITIVE_INFINITY) return first
    const idleMs = this.#idleMs()
    const idle = idleMs && (await facts.idle())
    if (idle && idle.sinceMs === undefined) return known?.state === 'idle' ? first : [...first, idleOf(upstream)]
    const reachedMs = idle?.sinceMs === undefined || !idleMs ? markMs : markMs + idleMs(idle.sinceMs)
    const toldMs = Math.max(known?.markMs ?? Number.NEGATIVE_INFINITY, isNew ? markMs : Number.NEGATIVE_INFINITY)
    return reachedMs > toldMs && reachedMs >= this.#dueMs ? [...first, opened(upstream, reachedMs)] : first
  }

  #idleMs(): AnnouncerOptions['idleMs'] {
    return 'idleMs' in this.#options ? this.#options.idleMs : (arrivedAtMs) => this.#nowMs - arrivedAtMs
  }

  /** Marks of upstreams whose stage feeds this one no longer: as far as the least of those that do. */
  #released({ upstreams }: KeyedProgress, news: readonly UpstreamNews[]): readonly UpstreamNews[] {
    const open = [...upstreams.values()].filter(({ state }) => state === 'open')
    const retired = open.filter(({ upstream }) => !this.#feeders.has(upstream.name))
    if (retired.length === 0) return []
    const marks = new Map<string, number>()
    for (const { upstream, state, markMs } of [...open, ...news]) {
      const key = upstreamKey(upstream)
      if (state !== 'open') marks.delete(key)
      else if (this.#feeders.has(upstream.name)) marks.set(key, Math.max(markMs, marks.get(key) ?? markMs))
    }
    const leastMs = Math.min(Number.POSITIVE_INFINITY, ...marks.values())
    if (leastMs === Number.POSITIVE_INFINITY || leastMs < this.#dueMs) return []
    return retired.flatMap(({ upstream, markMs }) => (leastMs > markMs ? [opened(upstream, leastMs)] : []))
  }
}

/** The least time that any key waits for in a stage, or in one that it feeds. */
function earliestDueMs(
  planned: Plan,
  stage: FeedingStage | KeyedStage,
  keyed: ReadonlyMap<string, KeyedKnowledge>,
): number {
  const below = stage.feeds.map((feed) => earliestDueMs(planned, stageNamed(planned, feed.stage) as KeyedStage, keyed))
  return Math.min(keyed.get(stage.name)?.earliestDueMs ?? Number.POSITIVE_INFINITY, ...below)
}

/** News as frames carry it: upstreams are named with their generation. */
const named = (news: readonly UpstreamNews[], generation: number): readonly UpstreamNews[] =>
  news.map(({ upstream, ...rest }) => ({
    ...rest,
    upstream: { ...upstream, name: upstreamName(upstream.name, generation) },
  }))

type NamedUpstream = UpstreamNews['upstream']

const opened = (upstream: NamedUpstream, markMs: number): UpstreamNews => ({
  upstream,
  state: 'open',
  markMs,
  lastSent: new Map(),
})

const idleOf = (upstream: NamedUpstream): UpstreamNews => ({
  upstream,
  state: 'idle',
  markMs: Number.NEGATIVE_INFINITY,
  lastSent: new Map(),
})

const closed = ({ upstream, markMs, lastSent }: UpstreamFacts): UpstreamNews => ({
  upstream,
  state: 'closed',
  markMs,
  lastSent,
})

const needsTick = ({ earliest, openingMarkMs }: KeyedProgress, nowMs: number): boolean =>
  openingMarkMs !== undefined || [...earliest.processing.values()].some((timeMs) => timeMs <= nowMs)
