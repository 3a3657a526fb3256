export type { MappingCounters } from './counters.ts'
export { type DynamoDbChange, dynamoDbFormat, dynamoDbRecord } from './dynamodb-format.ts'
export {
  type KafkaFormat,
  type KafkaSourceOptions,
  type KafkaSourceRecord,
  kafkaFormat,
  type SchemaMetadata,
} from './kafka-format.ts'
export {
  KafkaEventSourceMapping,
  type KafkaMappingOptions,
  type KafkaMappingStatus,
  type TopicPartitionStatus,
} from './kafka-mapping.ts'
export { type ModelTopicOptions, modelGroup, modelTopic } from './kafka-model-ports.ts'
export type * from './kafka-ports.ts'
export type { KafkaMappingSettings } from './kafka-settings.ts'
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
