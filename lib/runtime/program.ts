/**
 * A stage's steps, linked once into plain function calls that end in the lanes of its sinks.
 *
 * The program is shared by the invocations of an execution environment, which may overlap. Whatever belongs to one
 * invocation (lanes, tables) is handed in with every run, and a run never awaits.
 */
import { invariant, TerminalError } from '../core/errors.ts'
import type { SourceRecord } from '../core/record.ts'
import { linkBranch } from '../operators/branch.ts'
import type { TableView } from '../operators/enrich/table.ts'
import type { Emit } from '../operators/operator.ts'
import type { StagePlan } from '../plan/plan.ts'
import { consumersOf, type GraphNode, type ToNode } from '../topology/graph.ts'
import type { Sink } from './sink.ts'
import type { BatchTables } from './tables.ts'

/** What waits to be delivered to one sink, and which record of the batch each item came from. */
export class Lane {
  readonly name: string
  readonly sink: Sink
  readonly key: ((value: unknown) => string) | undefined
  items: unknown[] = []
  ordinals: number[] = []
  /** How many items there were before the record at hand. */
  mark = 0

  constructor(name: string, sink: Sink, key?: (value: unknown) => string) {
    this.name = name
    this.sink = sink
    this.key = key
  }

  /** Takes back what the record at hand has added, and says how many items that were. */
  rewind(): number {
    const added = this.items.length - this.mark
    this.items.length = this.mark
    this.ordinals.length = this.mark
    return added
  }
}

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
}

export class StageProgram {
  readonly #stage: StagePlan
  readonly #steps: Emit<unknown>
  readonly #lookups: Emit<unknown>
  #target: RunTarget | undefined

  constructor(stage: StagePlan) {
    this.#stage = stage
    this.#steps = this.#link(
      () => true,
      (node) => this.#toLane(stage.sinks.indexOf(node.sink.name)),
    )
    const leads = this.#leadingToLookups()
    this.#lookups = this.#link(
      (node) => leads.has(node),
      () => nothing,
    )
  }

  /** Runs a record through all steps. Throws what a step throws; what it emitted until then stays in the lanes. */
  run(value: unknown, record: SourceRecord, target: RunTarget): void {
    this.#target = target
    this.#steps(value, record)
  }

  /** Runs a record as far as the lookups, so that they learn its keys. */
  runToLookups(value: unknown, record: SourceRecord, target: RunTarget): void {
    this.#target = target
    this.#lookups(value, record)
  }

  #link(keep: (node: GraphNode) => boolean, toSink: (node: ToNode) => Emit<unknown>): Emit<unknown> {
    const consumers = consumersOf(this.#stage)
    const linked = new Map<GraphNode, Emit<unknown>>()
    const context = { table: (name: string) => this.#view(name) }
    const after = (node: GraphNode): Emit<unknown> => toAll((consumers.get(node) ?? []).filter(keep).map(link))
    const link = (node: GraphNode): Emit<unknown> => {
      const known = linked.get(node)
      if (known) return known
      const emit = build(node)
      linked.set(node, emit)
      return emit
    }
    const build = (node: GraphNode): Emit<unknown> => {
      if (node.type === 'to') return toSink(node)
      if (node.type === 'branch') return linkBranch(this.#armsOf(node, consumers, keep, after))
      if (node.type === 'operator' || node.type === 'enrich') return node.operator.link(after(node), context)
      return after(node)
    }
    return after(this.#stage.source)
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

  #toLane(index: number): Emit<unknown> {
    return (value, record) => {
      const target = this.#target as RunTarget
      const lane = target.lanes[index] as Lane
      if (lane.items.length - lane.mark >= target.maxPerRecord) refuseMore(lane, target.maxPerRecord)
      const key = lane.key === undefined ? undefined : keyOf(lane, value)
      lane.items.push(lane.sink.prepare({ value, key, record, index: lane.items.length - lane.mark }))
      lane.ordinals.push(target.ordinal)
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

const nothing: Emit<unknown> = () => undefined

/** Hands a value to every consumer, in the order of declaration. */
function toAll(consumers: readonly Emit<unknown>[]): Emit<unknown> {
  const [first, second] = consumers
  if (!first) return nothing
  if (!second) return first
  return (value, record) => {
    for (const consumer of consumers) consumer(value, record)
  }
}

function refuseMore(lane: Lane, most: number): never {
  throw new TerminalError(
    `one record has more than ${most} outputs to sink "${lane.name}": make fewer of it, or raise maxOutputsPerRecord`,
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
