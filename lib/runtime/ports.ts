/**
 * The ports of the runtime: all that the runner knows of the world. Production ports live in `lib/aws`, those of tests
 * in `lib/testing`; nothing ever falls back from one to the other.
 */
import type { Clock } from '../core/clock.ts'
import type { DeadLetter } from './dead-letter.ts'
import type { Sink } from './sink.ts'

/** Structured logging. Payloads and secrets are never passed in. */
export interface Logger {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

/** Counters and gauges of one stage. Names are listed in docs/metrics.md. */
export interface Metrics {
  count(name: MetricName, value: number): void
  gauge(name: GaugeName, value: number, unit: 'milliseconds' | 'count'): void
}

/** What is counted per invocation. */
export type MetricName =
  | 'records-in'
  | 'records-out'
  | 'dead-letters'
  | 'records-returned'
  | 'attempts-failed'
  | 'lookup-calls'
  | 'lookup-hits'
  | 'lookup-misses'

/** What is measured per invocation. */
export type GaugeName = 'table-staleness'

/** The clock of a runner, which must also ring: one timer guards each invocation's deadline. */
export interface RunnerClock extends Clock {
  /** Calls `ring` once after `ms` milliseconds, unless the function that it returns is called before. */
  timer(ms: number, ring: () => void): () => void
}

export interface Ports {
  readonly clock: RunnerClock
  readonly logger: Logger
  readonly metrics: Metrics
  /** The sink of that declared name; undefined where there is none. */
  sink(name: string): Sink | undefined
  readonly deadLetters: Sink<DeadLetter>
  /**
   * Freezes every decoded value, so that a step which changes what it was given fails there and then: on in tests.
   * @default false
   */
  readonly freezesValues?: boolean
}

/** Where an invocation's records came from, as the event says it. */
export interface EventSource {
  readonly kind: 'kinesis' | 'kafka'
  /** The stream's or cluster's ARN; self-managed Kafka has none. */
  readonly arn: string | undefined
  /** Kafka only. */
  readonly topic?: string
}

/** The ports of a handler, which serves every stage whose source it is invoked for. */
export interface HandlerPorts extends Ports {
  /** The declared source that is bound to an event source; undefined where none of `declared` is. */
  sourceOf(eventSource: EventSource, declared: readonly string[]): string | undefined
  /** Called at the end of each invocation, so that metrics are written while it still runs. */
  flush(): void
}
