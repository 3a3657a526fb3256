/** Millrace: what topologies and handlers import. Constructs are in `millrace/cdk`, test tools in `millrace/testing`. */
export type { StandardSchemaV1 } from '@standard-schema/spec'
export {
  type ItemIdentifier,
  type ProvidedSink,
  provide,
  type StreamHandler,
  type StreamHandlerOptions,
  type StreamResponse,
  streamHandler,
} from './aws/stream-handler.ts'
export type { Clock } from './core/clock.ts'
export { type Duration, days, hours, milliseconds, minutes, seconds } from './core/duration.ts'
export { ConfigurationError, MillraceError, RetryableError, TerminalError } from './core/errors.ts'
export { bytes, type Format, type JsonOptions, json, text } from './core/format.ts'
export { outputIdentity, type RecordHeader, type RecordInfo } from './core/record.ts'
export { otherwise } from './operators/branch.ts'
export { type Freshness, lookup, refreshedTable, staticTable, type Table } from './operators/enrich/table.ts'
export { type Plan, plan, type StagePlan } from './plan/plan.ts'
export type { DeadLetter, DeadLetterReason } from './runtime/dead-letter.ts'
export type { EventSource, HandlerPorts, Logger, Metrics, Ports } from './runtime/ports.ts'
export { type DeliveryCall, delivered, type Outcome, type Output, type Sink } from './runtime/sink.ts'
export {
  type EventTime,
  epochMs,
  epochSeconds,
  type IsoTimeOptions,
  isoTime,
  type PlausibleRange,
} from './time/event-time.ts'
export type { SinkHandle, SourceHandle } from './topology/handles.ts'
export type { KeyedStream, SourceStream, Stream } from './topology/stream.ts'
export { type SinkOptions, Topology } from './topology/topology.ts'
