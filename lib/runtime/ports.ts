/**
 * The ports of the runtime: all that the runner knows of the world. Production ports live in `lib/aws`, those of tests
 * in `lib/testing`; nothing ever falls back from one to the other.
 */
import type { Clock } from '../core/clock.ts'
import type { Plan } from '../plan/plan.ts'
import type { StateStore } from '../state/state-store.ts'
import type { DeadLetter } from './dead-letter.ts'
import type { EncodedFrame } from './frames/frame.ts'
import type { PartitionLineage } from './progress/lineage.ts'
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
  /** `times` says how often the value was measured; once unless said. */
  gauge(name: GaugeName, value: number, unit: 'milliseconds' | 'count' | 'bytes', times?: number): void
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
  | 'keys-written'
  | 'keys-read'
  | 'keys-cached'
  | 'commit-conflicts'
  | 'records-overtaken'
  | 'records-skewed'
  | 'records-late'
  | 'duplicates-dropped'
  | 'redrives-dropped'
  | 'frames-out'
  | 'impure-steps'
  | 'read-units'
  | 'write-units'
  | 'throttles'

/**
 * What is measured per invocation. `collapse` is the records of the log per key written, `largest-item` the size of the largest
 * item that was written, `open-windows` the most windows, or slices of windows that overlap, that one key holds, `watermark-lag` how
 * far the watermark is behind the clock, `event-lateness` how far records are behind the newest of their partition,
 * `duration-left` what is left of the invocation's time when it has done its work.
 */
export type GaugeName =
  | 'table-staleness'
  | 'collapse'
  | 'largest-item'
  | 'open-windows'
  | 'watermark-lag'
  | 'event-lateness'
  | 'duration-left'

/** The clock of a runner, which must also ring: one timer guards each invocation's deadline. */
export interface RunnerClock extends Clock {
  /** Calls `ring` once after `ms` milliseconds, unless the function that it returns is called before. */
  timer(ms: number, ring: () => void): () => void
}

/** Writes to the stream of one keyed stage; docs/frames.md has the rules. */
export interface FramePublisher {
  /** Publishes frames, those of a slot in the order given; one call at a time. */
  publish(frames: readonly EncodedFrame[], signal: AbortSignal): Promise<void>
}

export interface Ports {
  readonly clock: RunnerClock
  readonly logger: Logger
  readonly metrics: Metrics
  /** The sink of that declared name; undefined where there is none. */
  sink(name: string): Sink | undefined
  readonly deadLetters: Sink<DeadLetter>
  /** The table that a keyed or feeding stage keeps its keys and its progress in; undefined where none is bound. */
  state?(stage: string): StateStore | undefined
  /** Writes to the stream of a keyed stage; undefined where none is bound. */
  frames?(stage: string): FramePublisher | undefined
  /** The partitions of the stream that a keyed or feeding stage reads; undefined where none is bound. */
  lineage?(stage: string): PartitionLineage | undefined
  /** For how long the stream of a keyed stage keeps records, in ms; undefined where that is not known here. */
  retentionMs?(stage: string): number | undefined
  /** For how long, in ms, a record may have waited in what the stages before it read; undefined where that is not known here. */
  upstreamRetentionMs?(stage: string): number | undefined
  /**
   * Whether the event source mapping of a stage reads which records are not done, and bisects a batch that ends the process. Where it
   * does not, as that of Kafka without provisioned pollers, an invocation with any of them rejects, and its whole batch comes again.
   * @default it does
   */
  readsAnswers?(stage: string): boolean
  /**
   * Decodes each record and runs each step twice, and refuses what answers differently the second time, since a retry would do so
   * too: on in the test driver, in `memoryPorts` and in the simulator.
   * @default false
   */
  readonly checksPurity?: boolean
  /**
   * Freezes every decoded value, so that a step which changes what it was given fails there and then: on in tests.
   * @default false
   */
  readonly freezesValues?: boolean
}

/** Where an invocation's records came from, as the event says it. */
export interface EventSource {
  readonly kind: 'kinesis' | 'kafka' | 'dynamodb-stream' | 'sqs'
  /** The ARN of the stream, the cluster or the queue; self-managed Kafka has none. */
  readonly arn: string | undefined
  /** Kafka only. */
  readonly topic?: string
}

/** The ports of a handler, which serves every stage whose source it is invoked for. */
export interface HandlerPorts extends Ports {
  /**
   * The name that is bound to an event source, of a source or of a keyed stage that reads a stream of its own; undefined
   * where none of `declared` is.
   */
  sourceOf(eventSource: EventSource, declared: readonly string[]): string | undefined
  /** Told once, before the first batch, what the handler runs: ports in memory make the streams of keyed stages by it. */
  serve?(planned: Plan): void
  /** Called at the end of each invocation, so that metrics are written while it still runs. */
  flush(): void
}
