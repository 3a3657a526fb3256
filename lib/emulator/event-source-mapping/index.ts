export type { MappingCounters } from './counters.ts'
export { type DynamoDbChange, dynamoDbFormat, dynamoDbRecord } from './dynamodb-format.ts'
export {
  buildKinesisEvent,
  type KinesisEvent,
  type KinesisEventRecord,
  type KinesisSourceOptions,
  kinesisFormat,
} from './kinesis-format.ts'
export type { LaneStatus } from './lane.ts'
export { EventSourceMapping, type MappingOptions, type MappingStatus } from './mapping.ts'
export type * from './ports.ts'
export type { EmulationSettings, MappingSettings } from './settings.ts'
export type { ShardStatus } from './shard-runner.ts'
export { withTimeLimit } from './time-limit.ts'
