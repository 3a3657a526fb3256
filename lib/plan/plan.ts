/**
 * From a topology to its stages. `plan` is pure: the CDK constructs, the Lambda handler, the local runner, the test
 * driver and the printed description all read what it returns.
 *
 * A source and the stateless steps behind it are one stage, named after the source. Steps behind a merge belong to the
 * stage of each source that reaches them: they keep nothing, so running them in several functions shares nothing.
 */
import { ConfigurationError } from '../core/errors.ts'
import type { Table } from '../operators/enrich/table.ts'
import {
  consumersOf,
  type EnrichNode,
  type Graph,
  type GraphNode,
  labelOf,
  pathTo,
  type SourceNode,
  type ToNode,
} from '../topology/graph.ts'
import type { Topology } from '../topology/topology.ts'

/** One Lambda function: a source and the stateless steps that its records pass. */
export interface StagePlan {
  /** The stage's name: its source's. */
  readonly name: string
  readonly kind: 'stateless'
  readonly source: SourceNode
  /** The nodes that records of the source reach, each after everything that feeds it. */
  readonly nodes: readonly GraphNode[]
  /** Names of the sinks that the stage may write to. */
  readonly sinks: readonly string[]
  /** The tables its steps read, in the order in which records reach them. */
  readonly tables: readonly Table[]
}

export interface Plan {
  readonly topology: string
  readonly graph: Graph
  readonly stages: readonly StagePlan[]
  /** Advice that refuses nothing: what would make the application simpler or cheaper. */
  readonly hints: readonly string[]
}

/**
 * Cuts a topology into stages, or throws a {@link ConfigurationError} that names the step and the remedy.
 *
 * @example
 * const { stages, hints } = plan(flights)
 */
export function plan(topology: Topology): Plan {
  const graph = topology.graph()
  const consumers = consumersOf(graph)
  refuseLooseEnds(graph, consumers)
  refuseTwoTablesOfOneName(graph)
  refuseChangingWays(graph, consumers)
  const stages = graph.sources.map((source) => stageOf(source, graph, consumers))
  return { topology: graph.name, graph, stages, hints: hintsFor(graph) }
}

/** The stage of that name. */
export function stageNamed(planned: Plan, name: string): StagePlan {
  const stage = planned.stages.find((candidate) => candidate.name === name)
  if (stage) return stage
  const known = planned.stages.map((candidate) => `"${candidate.name}"`).join(', ')
  throw new ConfigurationError(`topology "${planned.topology}" has no stage "${name}": its stages are ${known}.`)
}

function reachable(from: GraphNode, consumers: ReadonlyMap<GraphNode, readonly GraphNode[]>): Set<GraphNode> {
  const reached = new Set<GraphNode>()
  const walk = (node: GraphNode): void => {
    if (reached.has(node)) return
    reached.add(node)
    for (const next of consumers.get(node) ?? []) walk(next)
  }
  walk(from)
  return reached
}

function stageOf(source: SourceNode, graph: Graph, consumers: ReadonlyMap<GraphNode, readonly GraphNode[]>): StagePlan {
  const reached = reachable(source, consumers)
  // A node is declared after what feeds it, so the order of declaration is an order in which records reach them.
  const nodes = graph.nodes.filter((node) => reached.has(node))
  const sinks = nodes.filter((node): node is ToNode => node.type === 'to').map((node) => node.sink.name)
  const tables = nodes.filter((node): node is EnrichNode => node.type === 'enrich').map((node) => node.table)
  return {
    name: source.name,
    kind: 'stateless',
    source,
    nodes,
    sinks: [...new Set(sinks)],
    // A table that is read twice counts where it is read last: by then every key of its is known.
    tables: [...new Set(tables.toReversed())].toReversed(),
  }
}

function refuseLooseEnds(graph: Graph, consumers: ReadonlyMap<GraphNode, readonly GraphNode[]>): void {
  if (graph.sources.length === 0) {
    throw new ConfigurationError(`topology "${graph.name}" has no source: declare one with app.source('name', schema).`)
  }
  for (const node of graph.nodes) {
    if (node.type === 'to' || (consumers.get(node) ?? []).length > 0) continue
    throw new ConfigurationError(
      `the results of ${pathTo(node)} in topology "${graph.name}" go nowhere: ${remedyFor(node)}.`,
    )
  }
  const written = new Set(graph.nodes.filter((node): node is ToNode => node.type === 'to').map((node) => node.sink))
  const unused = graph.sinks.find((sink) => !written.has(sink))
  if (unused) {
    throw new ConfigurationError(
      `nothing is written to sink "${unused.name}" of topology "${graph.name}": send a stream to it with .to(...), or remove it.`,
    )
  }
  const foreign = [...written].find((sink) => !graph.sinks.includes(sink))
  if (foreign) {
    throw new ConfigurationError(
      `topology "${graph.name}" writes to sink "${foreign.name}", which another topology declares: declare one of its own.`,
    )
  }
}

const remedyFor = (node: GraphNode): string =>
  node.type === 'arm'
    ? 'send it to a sink with .to(...), or use filter where values are to be left out'
    : 'end it with .to(sink), or remove it'

function refuseTwoTablesOfOneName(graph: Graph): void {
  const tables = new Map<string, Table>()
  for (const node of graph.nodes) {
    if (node.type !== 'enrich') continue
    const known = tables.get(node.table.name)
    if (known && known !== node.table) {
      throw new ConfigurationError(
        `topology "${graph.name}" enriches from two tables named "${node.table.name}": give each its own name, or use one table object twice.`,
      )
    }
    tables.set(node.table.name, node.table)
  }
}

/** Steps whose outcome decides which way a record takes. */
const decides = (node: GraphNode): boolean =>
  node.type === 'branch' || (node.type === 'operator' && node.kind !== 'map')

/**
 * On a retry a refreshed or looked-up row may differ. Where a later step decides by it, the record may then leave
 * outputs of both ways behind, so that must be said out loud.
 */
function refuseChangingWays(graph: Graph, consumers: ReadonlyMap<GraphNode, readonly GraphNode[]>): void {
  for (const node of graph.nodes) {
    if (node.type !== 'enrich' || node.table.kind === 'static' || node.table.acknowledged) continue
    const decider = [...reachable(node, consumers)].find(decides)
    if (!decider) continue
    throw new ConfigurationError(
      `${labelOf(decider)} in ${pathTo(decider)} may decide otherwise on a retry, because the ${node.table.kind} table "${node.table.name}" may answer otherwise: decide before the enrichment, use a staticTable, or declare { answers: 'may-change' } on the table.`,
    )
  }
}

function hintsFor(graph: Graph): string[] {
  return graph.nodes.flatMap((node) => {
    if (node.type === 'key-by') {
      return `${pathTo(node)}: no step behind it keeps state, so its stage stays stateless and nothing is re-keyed; to spread the output by a key, give the sink one: app.sink('name', { key }).`
    }
    if (node.type === 'operator' && node.kind === 'filter' && node.input.type === 'enrich') {
      return `${pathTo(node)}: where the filter does not need the row of "${node.input.table.name}", put it before the enrichment, so that fewer rows are read.`
    }
    return []
  })
}
