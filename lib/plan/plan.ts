/**
 * From a topology to its stages. `plan` is pure: the CDK constructs, the Lambda handler, the local runner, the test
 * driver and the printed description all read what it returns.
 */
import { ConfigurationError } from '../core/errors.ts'
import { consumersOf, type Graph, type GraphNode, labelOf, pathTo } from '../topology/graph.ts'
import type { Topology } from '../topology/topology.ts'
import { refuseUnsound } from './refusals.ts'
import { type Consumers, isCut, reachable, type StagePlan, stagesOf } from './stages.ts'
import { warningsFor } from './warnings.ts'

export type { Feed, FeedingStage, KeyedStage, StagePlan, StatelessStage } from './stages.ts'

export interface Plan {
  readonly topology: string
  readonly graph: Graph
  /** Each after those that feed it: first the sources' stages, then the keyed ones, in the order of declaration. */
  readonly stages: readonly StagePlan[]
  /** What refuses nothing, and gives other results than most would expect. */
  readonly warnings: readonly string[]
  /** Advice that refuses nothing: what would make the application simpler or cheaper. */
  readonly hints: readonly string[]
}

/**
 * Cuts a topology into stages, or throws a {@link ConfigurationError} that names the step and the remedy.
 *
 * @example
 * const { stages, warnings } = plan(flights)
 */
export function plan(topology: Topology): Plan {
  const graph = topology.graph()
  const consumers = consumersOf(graph)
  refuseUnsound(graph, consumers)
  const stages = stagesOf(graph)
  return {
    topology: graph.name,
    graph,
    stages,
    warnings: warningsFor(graph, consumers),
    hints: hintsFor(graph, consumers),
  }
}

/** The stage of that name. */
export function stageNamed(planned: Plan, name: string): StagePlan {
  const stage = planned.stages.find((candidate) => candidate.name === name)
  if (stage) return stage
  const known = planned.stages.map((candidate) => `"${candidate.name}"`).join(', ')
  throw new ConfigurationError(`topology "${planned.topology}" has no stage "${name}": its stages are ${known}.`)
}

/** What the stream of a keyed stage is called where nobody says otherwise. */
export const streamNameOf = (topology: string, stage: string): string => `${topology}-${stage}`

/**
 * What the table of a stage is called where nobody says otherwise: of a keyed stage, for keys and progress; of one that feeds,
 * for its progress. Each has its own, so that where its progress is depends on its name alone, whatever else is added or removed.
 */
export const tableNameOf = (topology: string, stage: string): string => `${topology}-${stage}-state`

function hintsFor(graph: Graph, consumers: Consumers): string[] {
  return graph.nodes.flatMap((node) => {
    if (node.type === 'key-by' && !isCut(node, consumers)) {
      return `${pathTo(node)}: no step behind it keeps state, so its stage stays stateless and nothing is re-keyed; to spread the output by a key, give the sink one: app.sink('name', { key }).`
    }
    if (node.type === 'operator' && node.kind === 'filter' && node.input.type === 'enrich') {
      return `${pathTo(node)}: where the filter does not need the row of "${node.input.table.name}", put it before the enrichment, so that fewer rows are read.`
    }
    return node.type === 'source' && node.eventTime === undefined ? arrivalHints(node, consumers) : []
  })
}

/** Windows go by when things happened: by arrival they are others as soon as records wait, or are read again from elsewhere. */
function arrivalHints(source: GraphNode, consumers: Consumers): string[] {
  const windows = [...reachable(source, consumers)].filter(
    (node) => node.type === 'keyed' && node.operator.window?.hasLate === true,
  )
  if (windows.length === 0) return []
  return [
    `${pathTo(source)}: it says no event time, so ${windows.map(labelOf).join(' and ')} goes by when records arrive in the stream: where they say themselves when they happened, say eventTime, such as eventTime: isoTime((value) => value.at).`,
  ]
}
