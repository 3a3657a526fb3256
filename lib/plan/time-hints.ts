/** Advice about event time: what refuses nothing, but would put records in the late output that nobody expects there. */
import { type Graph, type GraphNode, labelOf, pathTo } from '../topology/graph.ts'
import { type Consumers, reachable } from './stages.ts'

/**
 * A window revises its results until its grace has passed. A window behind it that has less grace takes the first results, and
 * the later revisions are late for it.
 */
export function graceHints(graph: Graph, consumers: Consumers): string[] {
  return graph.nodes.flatMap((node) => {
    const trailsMs = windowOf(node)?.trailsMs ?? 0
    if (trailsMs === 0) return []
    const reached = reachable(node, consumers, (next) => next.type === 'side' && next.input === node)
    return [...reached].flatMap((behind) => {
      const window = behind === node ? undefined : windowOf(behind)
      if (!window?.hasLate || window.graceMs >= trailsMs) return []
      return [
        `${pathTo(behind)}: its grace of ${window.graceMs} ms undercuts ${labelOf(node)}, which revises its results for ${trailsMs} ms after a window's end, so revisions may come too late for it: give it a grace of ${trailsMs} ms, or let ${labelOf(node)} say emit: 'final'.`,
      ]
    })
  })
}

const windowOf = (node: GraphNode) => (node.type === 'keyed' ? node.operator.window : undefined)
