/** Constructs that deploy topologies. Nothing here runs in a function. */
export type { SinkBinding, SourceBinding } from '../plan/stage-bindings.ts'
export { Announcer, type AnnouncerProps } from './announcer.ts'
export { type Bound, bind, type MappingSettings, type SinkConnection, type SourceConnection } from './bind.ts'
export { CustomSink, type CustomSinkOptions } from './custom-sink.ts'
export { type DeadLetterOptions, DeadLetters, type DeadLetterTarget } from './dead-letters.ts'
export { DynamoDbTableSink, type DynamoDbTableSinkOptions } from './dynamodb.ts'
export { DynamoDbStreamSource, type DynamoDbStreamSourceOptions } from './dynamodb-stream.ts'
export { EventBridgeSink, type EventBridgeSinkOptions } from './eventbridge.ts'
export { FirehoseSink, type FirehoseSinkOptions } from './firehose.ts'
export {
  type ClusterConnection,
  type ClusterNetwork,
  KafkaCluster,
  type MskOptions,
  type MskServerlessOptions,
  type PrivateAuthority,
  type ScramUser,
  type SelfManagedOptions,
} from './kafka/cluster.ts'
export type { ClusterUse } from './kafka/cluster-grants.ts'
export { KafkaSink } from './kafka/kafka-sink.ts'
export { KafkaSource, type KafkaSourceOptions } from './kafka/kafka-source.ts'
export { KeyedStreams, type KeyedTopicsProps } from './kafka/keyed-streams.ts'
export { KeyedTopic } from './kafka/keyed-topic.ts'
export { KeyedTopics } from './kafka/keyed-topics.ts'
export type { Pollers } from './kafka/pollers.ts'
export type { KeyedTopicProps, StageTopicProps } from './kafka/stage-topic.ts'
export type { StageStreamProps, StageTableProps } from './keyed-resources.ts'
export { KinesisSink, type KinesisSinkOptions, KinesisSource, type KinesisSourceOptions } from './kinesis.ts'
export { SqsSink, type SqsSinkOptions, SqsSource, type SqsSourceOptions } from './sqs.ts'
export { StageResources } from './stage.ts'
export type { StageLog } from './stage-log.ts'
export type { FunctionOverrides, StageProps } from './stage-settings.ts'
export { StreamApplication, type StreamApplicationProps } from './stream-application.ts'
export type { AnnouncerAlarm, StageAlarm } from './watch/alarm-rules.ts'
export { Alarms, type AlarmsProps, type Thresholds } from './watch/alarms.ts'
export type { WatchProps } from './watch/watch.ts'
