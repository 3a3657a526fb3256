/**
 * A stage's steps, linked once into plain function calls that end in the lanes of its sinks and of the stages it feeds.
 *
 * The program is shared by the invocations of an execution environment, which may overlap. Whatever belongs to one
 * invocation (lanes, tables) is handed in with every run, and a run never awaits.
 */
import { invariant, TerminalError, thrownBy } from '../core/errors.ts'
import type { RecordInfo, SourceRecord } from '../core/record.ts'
import { linkBranch } from '../operators/branch.ts'
import type { TableView } from '../operators/enrich/table.ts'
import type { KeyedLink, KeyedLinkContext, StepTimes } from '../operators/keyed/keyed-operator.ts'
import { lateSide } from '../operators/keyed/window/window.ts'
import type { Emit } from '../operators/operator.ts'
import type { StagePlan } from '../plan/plan.ts'
import type { KeyDraft } from '../state/key-draft.ts'
import { keyOfText } from '../state/key-encoding.ts'
import type { StateValue } from '../state/state-store.ts'
import { consumersOf, type GraphNode, type KeyedNode, labelOf, pathTo, type ToNode } from '../topology/graph.ts'
import type { FiredTimer } from './dead-letter.ts'
import type { FeedLane, StepPlace } from './feed-lane.ts'
import type { Lane } from './lane.ts'
import type { Trace } from './purity.ts'
import type { BatchTables } from './tables.ts'

/** What one run of the program works on. */
export interface RunTarget {
  readonly lanes: readonly Lane[]
  readonly tables: BatchTables
  /** The record's place in the batch. */
  ordinal: number
  /** Items in all lanes. */
  pending: number
  /** How many outputs one record may have in one lane. */
  readonly maxPerRecord: number
  /** Where records go that feed keyed stages: one lane for each of the stage's feeds. Missing where it has none. */
  readonly feeds?: readonly FeedLane[]
  /** What the record at hand tells its outputs to keyed stages. */
  place?: StepPlace
  /** The state that keyed steps see; missing in a stage that keeps none. */
  keyed?: KeyedTarget
  /** The operator whose outputs the later ones of a batch replace, while it emits. */
  latest?: string | undefined
  /** How often each such operator has emitted in the step at hand; missing until one does. */
  emissions?: Map<string, number>
  /** Records that the step at hand found too late for their windows. */
  late?: number
  /** Where everything that any step hands on is noted, to compare two runs of one record. */
  trace?: Trace | undefined
}

/** What the steps of one record see in a keyed stage. */
export interface KeyedTarget {
  readonly draft: KeyDraft
  readonly operatorStates: { readonly [storedName: string]: StateValue }
  times: StepTimes
  /** The timer that is firing, in the step of a record too. */
  timer: DueTimer | undefined
  /** What a result carries on. */
  resultOf(eventTimeMs: number): RecordInfo
  /** What names the step's outputs to sinks: it is not the record that the steps see. */
  outputRecord(): RecordInfo
}

/** A timer whose time has come. */
export type DueTimer = FiredTimer

export class StageProgram {
  readonly #stage: StagePlan
  readonly #steps: Emit<unknown>
  readonly #lookups: Emit<unknown>
  readonly #traces: boolean
  /** What the timers of keyed operators call, by the operator's name. */
  readonly #timers = new Map<string, { readonly link: KeyedLink<unknown>; readonly step: string }>()
  #target: RunTarget | undefined

  constructor(stage: StagePlan, options: { readonly traces?: boolean } = {}) {
    this.#stage = stage
    this.#traces = options.traces === true
    this.#steps = this.#link(
      () => true,
      (node) => this.#toLane(stage.sinks.indexOf(node.sink.name), pathTo(node)),
    )
    const leads = this.#leadingToLookups()
    this.#lookups = this.#link(
      (node) => leads.has(node),
      () => nothing,
    )
  }

  /** Runs a record through all steps. Throws what a step throws; what it emitted until then stays in the lanes. */
  run(value: unknown, record: RecordInfo, target: RunTarget): void {
    this.#target = target
    this.#steps(value, record)
  }

  /** Fires a timer of that stored name: of the operator, or `<operator>.<timer>`. Throws what its steps throw. */
  fire({ domain, name, timeMs }: DueTimer, target: RunTarget): void {
    this.#target = target
    // A timer of an operator that is no more fires into the void.
    const operator = this.#timers.get(operatorOf(name))
    try {
      operator?.link.fire?.(domain, name, timeMs)
    } catch (error) {
      throw thrownBy(`${operator?.step} > timer "${name}"`, error)
    }
  }

  /** Lets a timer pass whose firing was given up. */
  skip({ domain, name, timeMs }: DueTimer, target: RunTarget): void {
    this.#target = target
    this.#timers.get(operatorOf(name))?.link.skip?.(domain, name, timeMs)
  }

  /** Lets a timer pass where even `skip` throws: its operator begins anew. */
  drop({ name }: DueTimer, target: RunTarget): void {
    this.#target = target
    this.#timers.get(operatorOf(name))?.link.drop?.()
  }

  /** Runs a record as far as the lookups, so that they learn its keys. */
  runToLookups(value: unknown, record: SourceRecord, target: RunTarget): void {
    this.#target = target
    this.#lookups(value, record)
  }

  #link(keep: (node: GraphNode) => boolean, toSink: (node: ToNode) => Emit<unknown>): Emit<unknown> {
    const consumers = consumersOf(this.#stage)
    const linked = new Map<GraphNode, Emit<unknown>>()
    const context = this.#context()
    const contextOf = (node: GraphNode): KeyedLinkContext => ({ ...context, step: stepOf(node) })
    const ends = new Map<GraphNode, number>(this.#stage.feeds.map(({ keyBy }, index) => [keyBy, index]))
    const after = (node: GraphNode): Emit<unknown> =>
      this.#traced(
        node,
        toAll((consumers.get(node) ?? []).filter((next) => next.type !== 'side' && keep(next)).map(link)),
      )
    const link = (node: GraphNode): Emit<unknown> => {
      const known = linked.get(node)
      if (known) return known
      const emit = build(node)
      linked.set(node, emit)
      return emit
    }
    const build = (node: GraphNode): Emit<unknown> => {
      if (node.type === 'to') return toSink(node)
      const feed = ends.get(node)
      if (feed !== undefined) return this.#toFeed(feed, pathTo(node))
      if (node.type === 'keyed')
        return this.#linkKeyed(node, this.#afterKeyed(node, after), sideOf(node), contextOf(node))
      if (node.type === 'branch') return linkBranch(this.#armsOf(node, consumers, keep, after), contextOf(node))
      if (node.type === 'operator' || node.type === 'enrich') return node.operator.link(after(node), contextOf(node))
      return after(node)
    }
    const sideOf = (node: KeyedNode) => (name: string) => {
      const side = (consumers.get(node) ?? []).find((next) => next.type === 'side' && next.name === name)
      if (side === undefined || !keep(side)) return nothing
      return node.operator.window && name === lateSide ? this.#countingLate(after(side)) : after(side)
    }
    return after(this.#stage.entry)
  }

  /** What keyed steps ask for is that of whichever record is running. */
  #context(): Omit<KeyedLinkContext, 'step'> {
    const keyed = (): KeyedTarget => {
      const target = (this.#target as RunTarget).keyed
      invariant(target, 'a keyed step runs in a stage without state')
      return target
    }
    return {
      table: (name) => this.#view(name),
      draft: () => keyed().draft,
      key: () => keyOfText(keyed().draft.key),
      operatorState: (storedName) => keyed().operatorStates[storedName],
      times: () => keyed().times,
      result: (eventTimeMs) => keyed().resultOf(eventTimeMs),
    }
  }

  #linkKeyed(
    node: KeyedNode,
    next: Emit<unknown>,
    side: (name: string) => Emit<unknown>,
    context: KeyedLinkContext,
  ): Emit<unknown> {
    const link = node.operator.link(next, side, context)
    this.#timers.set(node.name, { link, step: context.step })
    return (value, record) => {
      try {
        link.record(value, record)
      } catch (error) {
        throw thrownBy(context.step, error)
      }
    }
  }

  /** Side outputs leave by their own nodes; of an operator that emits per batch each output is marked as one of those. */
  #afterKeyed(node: KeyedNode, after: (node: GraphNode) => Emit<unknown>): Emit<unknown> {
    const next = after(node)
    if (node.operator.emits === 'each') return next
    return (value, record) => {
      const target = this.#target as RunTarget
      const outer = target.latest
      target.latest = node.name
      target.emissions ??= new Map()
      target.emissions.set(node.name, (target.emissions.get(node.name) ?? 0) + 1)
      try {
        next(value, record)
      } finally {
        target.latest = outer
      }
    }
  }

  #countingLate(next: Emit<unknown>): Emit<unknown> {
    return (value, record) => {
      const target = this.#target as RunTarget
      target.late = (target.late ?? 0) + 1
      next(value, record)
    }
  }

  #traced(node: GraphNode, next: Emit<unknown>): Emit<unknown> {
    if (!this.#traces) return next
    const label = labelOf(node)
    return (value, record) => {
      this.#target?.trace?.note(label, value)
      next(value, record)
    }
  }

  #toFeed(index: number, step: string): Emit<unknown> {
    return (value, record) => {
      const target = this.#target as RunTarget
      const lane = target.feeds?.[index]
      invariant(lane && target.place, 'a stage that feeds another runs without its lanes')
      if (lane.items.length - lane.mark >= target.maxPerRecord) refuseMore(`stage "${lane.stage}"`, target.maxPerRecord)
      noteLatest(lane, target)
      try {
        lane.push(value, record, target.place)
      } catch (error) {
        throw thrownBy(step, error)
      }
      target.trace?.note(`the key function of keyBy "${lane.stage}"`, lane.items.at(-1)?.record.key)
      target.pending++
    }
  }

  #armsOf(
    branch: GraphNode & { readonly type: 'branch' },
    consumers: ReadonlyMap<GraphNode, readonly GraphNode[]>,
    keep: (node: GraphNode) => boolean,
    after: (node: GraphNode) => Emit<unknown>,
  ) {
    const nodes = consumers.get(branch) ?? []
    return branch.arms.map((arm) => {
      const node = nodes.find((candidate) => candidate.type === 'arm' && candidate.name === arm.name)
      invariant(node, `arm "${arm.name}" has no node`)
      return { ...arm, next: keep(node) ? after(node) : nothing }
    })
  }

  #toLane(index: number, step: string): Emit<unknown> {
    return (value, record) => {
      const target = this.#target as RunTarget
      const lane = target.lanes[index] as Lane
      try {
        putInLane(lane, value, record, target)
      } catch (error) {
        throw thrownBy(step, error)
      }
      target.pending++
    }
  }

  /** The view of a table that belongs to whichever batch is running. */
  #view(name: string): TableView<unknown> {
    const view = () => (this.#target as RunTarget).tables.view(name)
    return { get: (key) => view().get(key), freshness: (key) => view().freshness(key) }
  }

  #leadingToLookups(): ReadonlySet<GraphNode> {
    const consumers = consumersOf(this.#stage)
    const leads = new Set<GraphNode>()
    for (const node of this.#stage.nodes.toReversed()) {
      const isLookup = node.type === 'enrich' && node.table.kind === 'lookup'
      if (isLookup || (consumers.get(node) ?? []).some((next) => leads.has(next))) leads.add(node)
    }
    return leads
  }
}

/** A timer's stored name is its operator's, or goes on from it behind a dot. */
const operatorOf = (name: string): string => name.split('.', 1)[0] as string

const nothing: Emit<unknown> = () => undefined

/** What is pushed next comes of the last output of an operator that emits per batch, if one is emitting. */
function noteLatest({ latest, items }: Lane | FeedLane, target: RunTarget): void {
  if (target.latest === undefined) return
  latest.note(items.length, target.latest, target.emissions?.get(target.latest) ?? 0)
}

/** Hands a value to every consumer, in the order of declaration. */
function toAll(consumers: readonly Emit<unknown>[]): Emit<unknown> {
  const [first, second] = consumers
  if (!first) return nothing
  if (!second) return first
  return (value, record) => {
    for (const consumer of consumers) consumer(value, record)
  }
}

function putInLane(lane: Lane, value: unknown, record: RecordInfo, target: RunTarget): void {
  if (lane.items.length - lane.mark >= target.maxPerRecord) refuseMore(`sink "${lane.name}"`, target.maxPerRecord)
  noteLatest(lane, target)
  const key = lane.key === undefined ? undefined : keyOf(lane, value)
  target.trace?.note(`the key function of sink "${lane.name}"`, key)
  const { keyed } = target
  const output = { value, key, record: keyed?.outputRecord() ?? record, index: lane.items.length - lane.mark }
  lane.put(output, target.ordinal, target.place, keyed?.timer)
}

/** A branch has no name in the way to what is behind it: its arms have. */
const stepOf = (node: GraphNode): string => (node.type === 'branch' ? `${pathTo(node)} > branch` : pathTo(node))

function refuseMore(where: string, most: number): never {
  throw new TerminalError(
    `one record has more than ${most} outputs to ${where}: make fewer of it, or raise maxOutputsPerRecord`,
    { code: 'too-many-outputs' },
  )
}

function keyOf(lane: Lane, value: unknown): string {
  const key: unknown = lane.key?.(value)
  if (typeof key === 'string' && key.isWellFormed()) return key
  if (typeof key === 'string') {
    throw new TerminalError(
      `the key function of sink "${lane.name}" gave text with half a surrogate pair, which UTF-8 cannot hold: different keys would become one`,
      { code: 'key-not-text' },
    )
  }
  throw new TerminalError(
    `the key function of sink "${lane.name}" gave ${key === null ? 'null' : `a ${typeof key}`}, not a string`,
    { code: 'key-not-text' },
  )
}
