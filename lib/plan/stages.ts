/**
 * The cut of a graph into stages, each one Lambda function.
 *
 * 1. A source and the stateless steps behind it are one stage, named after the source.
 * 2. A `keyBy` is cut only where a keyed operator follows it: then the stage before it ends there, and everything behind
 *    it is the keyed stage of its name. One without such an operator is a step like any other.
 * 3. Steps behind a merge belong to the stage of each entry that reaches them: they keep nothing, so running them in
 *    several functions shares nothing.
 * 4. Each stage comes after those that feed it.
 */
import type { Table } from '../operators/enrich/table.ts'
import type { OperatorStateDeclaration, StateDeclaration } from '../state/states.ts'
import {
  consumersOf,
  type Graph,
  type GraphNode,
  type KeyByNode,
  type KeyedNode,
  type SourceNode,
} from '../topology/graph.ts'

interface StageParts {
  /** The stage's name: that of its source or, of a keyed stage, of its `keyBy`. */
  readonly name: string
  /** The node at which records enter. */
  readonly entry: SourceNode | KeyByNode
  /**
   * The nodes that records reach inside the stage, the entry first, each after everything that feeds it. The `keyBy` nodes
   * at which it feeds other stages are its ends.
   */
  readonly nodes: readonly GraphNode[]
  /** Names of the sinks that the stage may write to. */
  readonly sinks: readonly string[]
  /** The tables its steps read, in the order in which records reach them. */
  readonly tables: readonly Table[]
  /** The keyed stages that it writes to, in the order of declaration. */
  readonly feeds: readonly Feed[]
}

/** One keyed stage that a stage writes to: into its stream, by the key of its `keyBy`. */
export interface Feed {
  /** The keyed stage's name: its `keyBy`'s. */
  readonly stage: string
  readonly keyBy: KeyByNode
  readonly slots: number
}

/** A source and stateless steps that end in sinks only. It keeps nothing. */
export interface StatelessStage extends StageParts {
  readonly kind: 'stateless'
  readonly source: SourceNode
}

/** A source and stateless steps of which some end in a keyed stage. It keeps its progress. */
export interface FeedingStage extends StageParts {
  readonly kind: 'feeding'
  readonly source: SourceNode
}

/** A `keyBy`, the keyed operators behind it and whatever follows them. It reads one stream, its own. */
export interface KeyedStage extends StageParts {
  readonly kind: 'keyed'
  readonly input: KeyByNode
  readonly slots: number
  /** By stored name. */
  readonly states: ReadonlyMap<string, StateDeclaration>
  /** By stored name. */
  readonly operatorStates: ReadonlyMap<string, OperatorStateDeclaration>
  /** Names of the stages that write to its stream. */
  readonly fedBy: readonly string[]
}

/** One Lambda function. */
export type StagePlan = StatelessStage | FeedingStage | KeyedStage

/** What a node feeds. */
export type Consumers = ReadonlyMap<GraphNode, readonly GraphNode[]>

/** True for a `keyBy` at which the graph is cut. */
export function isCut(node: GraphNode, consumers: Consumers): node is KeyByNode {
  return node.type === 'key-by' && (consumers.get(node) ?? []).some((next) => next.type === 'keyed')
}

/** Every node that records reach from this one, itself first; at a node that `ends`, no further. */
export function reachable(
  from: GraphNode,
  consumers: Consumers,
  ends: (node: GraphNode) => boolean = () => false,
): ReadonlySet<GraphNode> {
  const reached = new Set<GraphNode>()
  const walk = (node: GraphNode): void => {
    if (reached.has(node)) return
    reached.add(node)
    if (node !== from && ends(node)) return
    for (const next of consumers.get(node) ?? []) walk(next)
  }
  walk(from)
  return reached
}

/** Cuts a graph into its stages, each after those that feed it. */
export function stagesOf(graph: Graph): readonly StagePlan[] {
  const consumers = consumersOf(graph)
  const cuts = graph.nodes.filter((node): node is KeyByNode => isCut(node, consumers))
  const parts = [...graph.sources, ...cuts].map((entry) => partsOf(entry, graph, consumers))
  return parts.map((part): StagePlan => {
    if (part.entry.type === 'key-by') return keyedStage(part, part.entry, parts)
    return { ...part, kind: part.feeds.length === 0 ? 'stateless' : 'feeding', source: part.entry }
  })
}

function partsOf(entry: SourceNode | KeyByNode, graph: Graph, consumers: Consumers): StageParts {
  const reached = reachable(entry, consumers, (node) => isCut(node, consumers))
  // A node is declared after what feeds it, so the order of declaration is an order in which records reach them.
  const nodes = graph.nodes.filter((node) => reached.has(node))
  const sinks = nodes.flatMap((node) => (node.type === 'to' ? [node.sink.name] : []))
  const tables = nodes.flatMap((node) => (node.type === 'enrich' ? [node.table] : []))
  const ends = nodes.filter((node): node is KeyByNode => node !== entry && isCut(node, consumers))
  return {
    name: entry.name,
    entry,
    nodes,
    sinks: [...new Set(sinks)],
    // A table that is read twice counts where it is read last: by then every key of its is known.
    tables: [...new Set(tables.toReversed())].toReversed(),
    feeds: ends.map((keyBy) => ({ stage: keyBy.name, keyBy, slots: keyBy.slots })),
  }
}

function keyedStage(part: StageParts, input: KeyByNode, all: readonly StageParts[]): KeyedStage {
  const operators = part.nodes.filter((node): node is KeyedNode => node.type === 'keyed').map((node) => node.operator)
  return {
    ...part,
    kind: 'keyed',
    input,
    slots: input.slots,
    states: new Map(operators.flatMap((operator) => [...operator.states])),
    operatorStates: new Map(operators.flatMap((operator) => [...operator.operatorStates])),
    fedBy: all.filter((other) => other.feeds.some((feed) => feed.keyBy === input)).map((other) => other.name),
  }
}
