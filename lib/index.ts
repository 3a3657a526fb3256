/** Millrace: what topologies and handlers import. Constructs are in `millrace/cdk`, test tools in `millrace/testing`. */
export type { StandardSchemaV1 } from '@standard-schema/spec'
export { type ProvidedSink, provide, type StreamHandlerOptions } from './aws/handler/stages.ts'
export {
  type ItemIdentifier,
  type StreamHandler,
  type StreamResponse,
  streamHandler,
} from './aws/handler/stream-handler.ts'
export {
  type OrderedBatchAnswer,
  type OrderedBatchOptions,
  type OrderedEvent,
  type OrderedStep,
  processInOrder,
} from './aws/primitives/ordered-batch.ts'
export {
  type UpsertClient,
  type UpsertOptions,
  type UpsertResult,
  type UpsertTable,
  upsertOnce,
} from './aws/primitives/upsert-once.ts'
export {
  type EntryChange,
  type KeyChange,
  type KeyState,
  type ReadDeclarations,
  readState,
  type StateChange,
  type StateReader,
  type StateView,
  type StreamImage,
  stateView,
} from './aws/state-table/reader.ts'
export type { Clock } from './core/clock.ts'
export { type Duration, days, hours, milliseconds, minutes, seconds } from './core/duration.ts'
export { ConfigurationError, MillraceError, RetryableError, TerminalError } from './core/errors.ts'
export { bytes, type Format, type JsonOptions, json, text } from './core/format.ts'
export { outputIdentity, type RecordHeader, type RecordInfo } from './core/record.ts'
export { type PartialTableChange, type TableChange, tableChanges } from './core/table-change.ts'
export {
  type AggregatedRecord,
  type Aggregator,
  type Aggregators,
  type CustomAggregation,
  custom,
  type ResultsOf,
} from './operators/aggregators/aggregator.ts'
export { type ApproximateDistinctOptions, approximateDistinct } from './operators/aggregators/approximate-distinct.ts'
export { type CollectOptions, collect } from './operators/aggregators/collect.ts'
export { count } from './operators/aggregators/count.ts'
export { type Distinguishable, distinct } from './operators/aggregators/distinct.ts'
export { max, min } from './operators/aggregators/extremes.ts'
export { first, last } from './operators/aggregators/first-last.ts'
export type { Ordered } from './operators/aggregators/order.ts'
export { type QuantileOptions, quantile } from './operators/aggregators/quantile.ts'
export { mean, sum } from './operators/aggregators/sum.ts'
export { type TopNOptions, topN } from './operators/aggregators/top-n.ts'
export { otherwise } from './operators/branch.ts'
export {
  type Freshness,
  type LookupTable,
  lookup,
  type RefreshedTable,
  refreshedTable,
  type StaticTable,
  staticTable,
  type Table,
} from './operators/enrich/table.ts'
export type { AggregateOptions } from './operators/keyed/aggregate.ts'
export type { Emission, StateDeclarations } from './operators/keyed/declarations.ts'
export type { Deduplication } from './operators/keyed/deduplicate.ts'
export type { Outputs } from './operators/keyed/outputs.ts'
export type { Prefetched, Process, StepContext, TimerContext } from './operators/keyed/process.ts'
export { type Side, type SideDeclarations, type SideOutput, sideOutput } from './operators/keyed/side-output.ts'
export {
  eventTimer,
  processingTimer,
  type Timer,
  type TimerDeclaration,
  type TimerDeclarations,
} from './operators/keyed/timers.ts'
export type { TimeWindows, Windows } from './operators/keyed/window/window.ts'
export type { WindowEmission, WindowResult } from './operators/keyed/window/window-result.ts'
export {
  type Feed,
  type FeedingStage,
  type KeyedStage,
  type Plan,
  plan,
  type StagePlan,
  type StatelessStage,
} from './plan/plan.ts'
export type { DeadLetter, DeadLetterReason } from './runtime/dead-letter.ts'
export type { EventSource, HandlerPorts, Logger, Metrics, Ports } from './runtime/ports.ts'
export { type DeliveryCall, delivered, type Outcome, type Output, type Sink } from './runtime/sink.ts'
export type { Key } from './state/key-encoding.ts'
export type { SchemaVersion, StateOptions, Ttl, Upcast } from './state/state-options.ts'
export type { StateValue } from './state/state-store.ts'
export {
  type AggregatingState,
  type AggregatingView,
  type Aggregation,
  aggregatingState,
  type ListState,
  type ListView,
  listState,
  type MapState,
  type MapView,
  mapState,
  type OperatorState,
  type OperatorView,
  operatorState,
  type ReducingState,
  type ReducingView,
  reducingState,
  type StateRecord,
  type StatesOf,
  type ValueState,
  type ValueView,
  valueState,
} from './state/states.ts'
export {
  type EventTime,
  epochMs,
  epochSeconds,
  type IsoTimeOptions,
  isoTime,
  type PlausibleRange,
} from './time/event-time.ts'
export { calendarDays } from './time/windows/calendar-days.ts'
export { type CountWindows, countWindow } from './time/windows/count-window.ts'
export { hopping, tumbling } from './time/windows/hopping.ts'
export { type SessionOptions, type SessionWindows, session } from './time/windows/session.ts'
export { sliding } from './time/windows/sliding.ts'
export type { GraceOptions, SlicedWindows, WindowBounds } from './time/windows/window.ts'
export type { Graph } from './topology/graph.ts'
export type { SinkHandle, SourceHandle } from './topology/handles.ts'
export type {
  KeyByOptions,
  KeyedStream,
  ProcessedStream,
  SideStreams,
  SourceStream,
  Stream,
  Windowed,
  WindowedStream,
  WindowOptions,
} from './topology/stream.ts'
export { type SinkOptions, Topology } from './topology/topology.ts'
