/** What must be true of the bindings of a topology, wherever it runs. */
import { ConfigurationError } from '../core/errors.ts'
import type { Plan } from './plan.ts'

/** One source or sink and the resource it is bound to. `resource` is compared only, so any stable text will do. */
export interface BoundName {
  readonly name: string
  readonly resource: string
  /** Of a source: why it cannot feed a keyed stage, and what to bind instead. @default it can */
  readonly feedsNoKeyedStage?: string
}

/**
 * Throws a {@link ConfigurationError} where a name is unbound, bound twice or unknown, where a source feeds a keyed stage whose
 * records name no partitions, and where records would go in a circle: Lambda does not detect loops through Kinesis, DynamoDB Streams or MSK.
 */
export function checkBindings(plan: Plan, sources: readonly BoundName[], sinks: readonly BoundName[]): void {
  checkNames(
    'source',
    plan.graph.sources.map((source) => source.name),
    sources,
    plan.topology,
  )
  checkNames(
    'sink',
    plan.graph.sinks.map((sink) => sink.name),
    sinks,
    plan.topology,
  )
  refuseSharedSource(sources, plan.topology)
  refuseKeyedBehind(plan, sources)
  refuseCycles(plan, sources, sinks)
}

function checkNames(
  what: 'source' | 'sink',
  declared: readonly string[],
  bound: readonly BoundName[],
  topology: string,
): void {
  const names = bound.map((binding) => binding.name)
  const missing = declared.filter((name) => !names.includes(name))
  if (missing.length > 0) {
    throw new ConfigurationError(
      `${what} "${missing.join('", "')}" of topology "${topology}" is not bound: add bind(${what}, ...) for it.`,
    )
  }
  const unknown = names.find((name) => !declared.includes(name))
  if (unknown !== undefined) {
    throw new ConfigurationError(
      `"${unknown}" is bound but topology "${topology}" declares no such ${what}: it has "${declared.join('", "')}".`,
    )
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) {
    throw new ConfigurationError(`${what} "${twice}" of topology "${topology}" is bound twice: keep one binding.`)
  }
}

/** A stage finds its source by the event source, so two sources cannot share one. */
function refuseSharedSource(sources: readonly BoundName[], topology: string): void {
  for (const [index, source] of sources.entries()) {
    const other = sources.slice(0, index).find((earlier) => earlier.resource === source.resource)
    if (!other) continue
    throw new ConfigurationError(
      `sources "${other.name}" and "${source.name}" of topology "${topology}" are bound to one resource (${source.resource}): declare one source and branch it.`,
    )
  }
}

/** A keyed stage counts the records of each partition of its source, so that it steps each once. */
function refuseKeyedBehind({ stages }: Plan, sources: readonly BoundName[]): void {
  for (const { name, feedsNoKeyedStage } of sources) {
    const [fed] = stages.find((stage) => stage.name === name)?.feeds ?? []
    if (feedsNoKeyedStage === undefined || fed === undefined) continue
    throw new ConfigurationError(
      `source "${name}" feeds the keyed stage "${fed.stage}", and cannot: ${feedsNoKeyedStage}.`,
    )
  }
}

/** Names of the sinks that a stage writes to, itself or through the keyed stages that it feeds. */
function sinksBehind(plan: Plan, stageName: string): readonly string[] {
  const stage = plan.stages.find((candidate) => candidate.name === stageName)
  if (!stage) return []
  return [...stage.sinks, ...stage.feeds.flatMap((feed) => sinksBehind(plan, feed.stage))]
}

/** Follows source > sink > source of the same resource until a way comes back to where it began. */
function refuseCycles(plan: Plan, sources: readonly BoundName[], sinks: readonly BoundName[]): void {
  const next = (sourceName: string): { sink: string; source: string }[] => {
    const reached = sinksBehind(plan, sourceName)
    return sinks
      .filter((sink) => reached.includes(sink.name))
      .flatMap((sink) =>
        sources
          .filter((source) => source.resource === sink.resource)
          .map((source) => ({ sink: sink.name, source: source.name })),
      )
  }
  const walk = (start: string, at: string, path: readonly string[]): void => {
    for (const step of next(at)) {
      const way = [...path, `sink "${step.sink}"`, `source "${step.source}"`]
      if (step.source === start) {
        throw new ConfigurationError(
          `topology "${plan.topology}" is cyclic: ${way.join(' > ')}, because that sink and that source are one resource: bind the sink to another.`,
        )
      }
      if (!path.includes(`source "${step.source}"`)) walk(start, step.source, way)
    }
  }
  for (const source of sources) walk(source.name, source.name, [`source "${source.name}"`])
}
