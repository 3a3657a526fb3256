/** What `plan` refuses before it cuts a graph: each message names the step and the remedy. */
import { ConfigurationError } from '../core/errors.ts'
import type { Table } from '../operators/enrich/table.ts'
import { type Graph, type GraphNode, labelOf, pathTo, type ToNode } from '../topology/graph.ts'
import { type Consumers, isCut, reachable } from './stages.ts'

/** Throws a {@link ConfigurationError} for the first thing in a graph that could not run as it is meant. */
export function refuseUnsound(graph: Graph, consumers: Consumers): void {
  refuseLooseEnds(graph, consumers)
  refuseTwoTablesOfOneName(graph)
  refuseChangingWays(graph, consumers)
  refuseLookupsByKey(graph, consumers)
  refuseOperatorStatesBehindOthers(graph)
}

function refuseLooseEnds(graph: Graph, consumers: Consumers): void {
  if (graph.sources.length === 0) {
    throw new ConfigurationError(`topology "${graph.name}" has no source: declare one with app.source('name', schema).`)
  }
  for (const node of graph.nodes) {
    if (node.type === 'to' || !isLoose(node, consumers)) continue
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

function isLoose(node: GraphNode, consumers: Consumers): boolean {
  const after = consumers.get(node) ?? []
  if (node.type !== 'keyed') return after.length === 0
  // A keyed operator is an end too: its state is a result that anyone may query. Windows are forgotten once they are over.
  return node.operator.window !== undefined && after.every((next) => next.type === 'side')
}

function remedyFor(node: GraphNode): string {
  if (node.type === 'side' && node.input.operator.window !== undefined) {
    return 'late records are never dropped in silence: send them to a sink with .late.to(...)'
  }
  if (node.type === 'keyed') return 'send them to a sink with .results.to(...)'
  if (node.type === 'arm') return 'send it to a sink with .to(...), or use filter where values are to be left out'
  if (node.type === 'side') return 'send it to a sink with .to(...), or leave it out of `sides`'
  return 'end it with .to(sink), or remove it'
}

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

/** Steps whose outcome decides which way a record takes, or whether it takes it. */
const decides = (node: GraphNode, consumers: Consumers): boolean =>
  node.type === 'branch' || (node.type === 'operator' && node.kind !== 'map') || isCut(node, consumers)

/**
 * On a retry a refreshed or looked-up row may differ. Where a later step decides by it, the record may then leave
 * outputs of both ways behind, so that must be said out loud. A `keyBy` decides which slot the record goes to.
 */
function refuseChangingWays(graph: Graph, consumers: Consumers): void {
  for (const node of graph.nodes) {
    if (node.type !== 'enrich' || node.table.kind === 'static' || node.table.acknowledged) continue
    const decider = [...reachable(node, consumers)].find((next) => decides(next, consumers))
    if (!decider) continue
    throw new ConfigurationError(
      `${labelOf(decider)} in ${pathTo(decider)} may decide otherwise on a retry, because the ${node.table.kind} table "${node.table.name}" may answer otherwise: decide before the enrichment, use a staticTable, or declare { answers: 'may-change' } on the table.`,
    )
  }
}

/** A keyed stage steps record after record over its state: it cannot run a part of a batch twice for its lookups. */
function refuseLookupsByKey(graph: Graph, consumers: Consumers): void {
  for (const keyBy of graph.nodes) {
    if (!isCut(keyBy, consumers)) continue
    for (const node of reachable(keyBy, consumers, (next) => isCut(next, consumers))) {
      if (node.type !== 'enrich' || node.table.kind !== 'lookup') continue
      throw new ConfigurationError(
        `${pathTo(node)}: the lookup table "${node.table.name}" cannot be read in the keyed stage "${keyBy.name}": look it up before the keyBy, or use a refreshedTable or a staticTable.`,
      )
    }
  }
}

/** Operator state is a fold over what the stage reads, so only an operator that takes the stage's records sees them all. */
function refuseOperatorStatesBehindOthers(graph: Graph): void {
  for (const node of graph.nodes) {
    if (node.type !== 'keyed' || node.input.type === 'key-by') continue
    const [first] = node.operator.operatorStates.keys()
    if (first === undefined) continue
    throw new ConfigurationError(
      `${pathTo(node)}: the operator state "${first}" adds what comes out of the keyBy, so ${labelOf(node)} must follow the keyBy directly: put it before ${labelOf(node.input)}, or on a branch of its own from the keyBy.`,
    )
  }
}
