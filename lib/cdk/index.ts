/** Constructs that deploy topologies. Nothing here runs in a function. */
export { type Bound, bind, type MappingSettings, type SinkConnection, type SourceConnection } from './bind.ts'
export { CustomSink, type CustomSinkOptions } from './custom-sink.ts'
export { type DeadLetterOptions, DeadLetters, type DeadLetterTarget } from './dead-letters.ts'
export { DynamoDbTableSink, type DynamoDbTableSinkOptions } from './dynamodb.ts'
export { KinesisSink, type KinesisSinkOptions, KinesisSource, type KinesisSourceOptions } from './kinesis.ts'
export { StageResources } from './stage.ts'
export type { FunctionOverrides, StageProps } from './stage-settings.ts'
export { StreamApplication, type StreamApplicationProps } from './stream-application.ts'
