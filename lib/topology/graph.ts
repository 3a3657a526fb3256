/**
 * The logical graph: inert data that the builders write and everything else reads.
 *
 * A node knows what feeds it; what it feeds is derived. Nodes that own something persistent have a name, the others are
 * known by their kind and by what they follow.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Format } from '../core/format.ts'
import type { RecordInfo } from '../core/record.ts'
import type { Arm } from '../operators/branch.ts'
import type { Table } from '../operators/enrich/table.ts'
import type { KeyedOperator } from '../operators/keyed/keyed-operator.ts'
import type { Operator } from '../operators/operator.ts'
import type { Key } from '../state/key-encoding.ts'
import type { CheckedVersion } from '../state/state-options.ts'
import type { EventTime } from '../time/event-time.ts'

export interface SourceNode {
  readonly type: 'source'
  readonly name: string
  readonly format: Format<unknown>
  readonly schema: StandardSchemaV1 | undefined
  readonly eventTime: EventTime<unknown> | undefined
  readonly outOfOrdernessMs: number
  /** How far ahead of its arrival an event time may be; undefined where nothing is said. */
  readonly skewLimitMs: number | undefined
  readonly onDelete: ((key: string | undefined, record: RecordInfo) => unknown) | undefined
}

export interface OperatorNode {
  readonly type: 'operator'
  readonly kind: string
  readonly operator: Operator
  readonly input: GraphNode
}

export interface EnrichNode {
  readonly type: 'enrich'
  readonly kind: 'enrich'
  readonly operator: Operator
  readonly table: Table
  readonly input: GraphNode
}

export interface BranchNode {
  readonly type: 'branch'
  readonly kind: 'branch'
  readonly arms: readonly Arm<unknown>[]
  readonly input: GraphNode
}

/** One output of a branch. */
export interface ArmNode {
  readonly type: 'arm'
  readonly name: string
  readonly input: BranchNode
}

export interface MergeNode {
  readonly type: 'merge'
  readonly kind: 'merge'
  readonly inputs: readonly GraphNode[]
}

/** From here on records are meant by their key. Only a keyed operator behind it makes the stream be re-keyed. */
export interface KeyByNode {
  readonly type: 'key-by'
  readonly kind: 'keyBy'
  readonly name: string
  readonly key: (value: unknown) => Key
  /** Into how many slots the keys fall: a power of two. */
  readonly slots: number
  /** What the values mean that travel to its stage, and how those of a release before are read. */
  readonly schema: CheckedVersion
  readonly input: GraphNode
}

/** An operator that keeps state by the key of the `keyBy` that it follows, directly or behind others of its kind. */
export interface KeyedNode {
  readonly type: 'keyed'
  readonly kind: KeyedOperator['kind']
  readonly name: string
  readonly operator: KeyedOperator
  readonly input: KeyByNode | KeyedNode
}

/** One side output of a keyed operator. */
export interface SideNode {
  readonly type: 'side'
  readonly name: string
  readonly input: KeyedNode
}

/** One stream written to one sink. A sink may be written to from several places. */
export interface ToNode {
  readonly type: 'to'
  readonly kind: 'to'
  readonly sink: SinkDeclaration
  readonly input: GraphNode
}

export interface SinkDeclaration {
  readonly name: string
  readonly key: ((value: unknown) => string) | undefined
}

export type GraphNode =
  | SourceNode
  | OperatorNode
  | EnrichNode
  | BranchNode
  | ArmNode
  | MergeNode
  | KeyByNode
  | KeyedNode
  | SideNode
  | ToNode

/** Everything that one topology declares, in the order of declaration. */
export interface Graph {
  readonly name: string
  readonly sources: readonly SourceNode[]
  readonly sinks: readonly SinkDeclaration[]
  readonly nodes: readonly GraphNode[]
}

/** What feeds a node. */
export function inputsOf(node: GraphNode): readonly GraphNode[] {
  if (node.type === 'source') return []
  if (node.type === 'merge') return node.inputs
  return [node.input]
}

/** What a node feeds, for every node of the graph, in the order of declaration. */
export function consumersOf(graph: Pick<Graph, 'nodes'>): ReadonlyMap<GraphNode, readonly GraphNode[]> {
  const consumers = new Map<GraphNode, GraphNode[]>(graph.nodes.map((node) => [node, []]))
  for (const node of graph.nodes) {
    for (const input of new Set(inputsOf(node))) consumers.get(input)?.push(node)
  }
  return consumers
}

/** How a message or a description calls a node, such as `map after flights`. */
export function labelOf(node: GraphNode): string {
  switch (node.type) {
    case 'source':
      return `source "${node.name}"`
    case 'key-by':
      return `keyBy "${node.name}"`
    case 'keyed':
      return `${node.kind} "${node.name}"`
    case 'side':
      return `side "${node.name}"`
    case 'arm':
      return `arm "${node.name}"`
    case 'to':
      return `sink "${node.sink.name}"`
    case 'enrich':
      return `enrich from "${node.table.name}"`
    default:
      return node.kind
  }
}

/** The way from a source to a node in words: where a reader finds the step that a message is about. */
export function pathTo(node: GraphNode): string {
  const steps: string[] = []
  for (let at: GraphNode | undefined = node; at; at = inputsOf(at)[0]) {
    if (at.type !== 'branch') steps.unshift(labelOf(at))
  }
  return steps.join(' > ')
}
