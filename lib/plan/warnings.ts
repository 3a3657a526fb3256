/** What a topology may be meant to do, and most would not expect: it refuses nothing. */
import { type Graph, type GraphNode, type KeyedNode, labelOf, pathTo } from '../topology/graph.ts'
import { type Consumers, isCut, reachable } from './stages.ts'

/** In words, each with the path to the step and the remedy. */
export const warningsFor = (graph: Graph, consumers: Consumers): string[] => [
  ...graceWarnings(graph, consumers),
  ...perBatchWarnings(graph, consumers),
]

/**
 * A window revises its results until its grace has passed. A window behind it that has less grace takes the first results, and
 * the later revisions are late for it. Behind that one come its own results, and its late output alone still has those revisions.
 */
function graceWarnings(graph: Graph, consumers: Consumers): string[] {
  return graph.nodes.flatMap((node) => {
    const trailsMs = windowOf(node)?.trailsMs ?? 0
    if (trailsMs === 0) return []
    return [...reachable(node, revisionsOf(node, consumers))].flatMap((behind) => {
      const window = behind === node ? undefined : windowOf(behind)
      if (!window?.hasLate || window.graceMs >= trailsMs) return []
      return [
        `${pathTo(behind)}: its grace of ${window.graceMs} ms undercuts ${labelOf(node)}, which revises its results for ${trailsMs} ms after a window's end, so revisions may come too late for it: give it a grace of ${trailsMs} ms, or let ${labelOf(node)} say emit: 'final'.`,
      ]
    })
  })
}

/** Where the results of a window go on as what they are. */
const revisionsOf = (node: GraphNode, consumers: Consumers): Consumers =>
  new Map(
    [...consumers].map(([from, next]) => {
      if (!windowOf(from)?.hasLate) return [from, next]
      return [from, next.filter(({ type }) => (type === 'side') === (from !== node))]
    }),
  )

const windowOf = (node: GraphNode) => (node.type === 'keyed' ? node.operator.window : undefined)

/** A stage that counts results which depend on where batches are cut would itself depend on it. */
function perBatchWarnings(graph: Graph, consumers: Consumers): string[] {
  return graph.nodes.flatMap((node) =>
    node.type === 'keyed' && node.operator.emits === 'latest' ? countedBehind(node, consumers) : [],
  )
}

function countedBehind(node: KeyedNode, consumers: Consumers): string[] {
  const ends = [...reachable(node, consumers, (next) => isCut(next, consumers))].filter((next) =>
    isCut(next, consumers),
  )
  return ends.map(
    (end) =>
      `${pathTo(end)}: of each key and batch it gets the last result of ${labelOf(node)} only, so what is counted behind it depends on where batches are cut; where every result counts, say emit: 'on-update'.`,
  )
}
