import { ConfigurationError } from '../core/errors.ts'
import type { StagePlan } from '../plan/plan.ts'
import type { ToNode } from '../topology/graph.ts'
import type { Ports } from './ports.ts'
import type { Sink } from './sink.ts'

/** A sink of a stage, with its port. */
export interface StageSink {
  readonly name: string
  readonly sink: Sink
  readonly key: ((value: unknown) => string) | undefined
}

/** The sinks that a stage writes to. Throws a {@link ConfigurationError} where one has no port. */
export function sinksOf(stage: StagePlan, ports: Ports): StageSink[] {
  return stage.sinks.map((name) => {
    const sink = ports.sink(name)
    if (!sink) {
      throw new ConfigurationError(`sink "${name}" of stage "${stage.name}" has no port: bind it, or provide(...) one.`)
    }
    const written = stage.nodes.find((node): node is ToNode => node.type === 'to' && node.sink.name === name)
    return { name, sink, key: written?.sink.key }
  })
}
