/** Tools for tests of topologies and handlers. Nothing here reads a clock or a network. */
export { announceEvent } from '../plan/stage-bindings.ts'
export {
  type KafkaTestRecord,
  type KinesisEventOptions,
  kafkaEvent,
  kinesisEvent,
  lambdaContext,
  sequenceNumber,
  type TestHeaders,
} from './events.ts'
export { type LogLine, type MemoryPorts, memoryPorts } from './memory-ports.ts'
export {
  changeNumber,
  dynamoDbStreamEvent,
  messageId,
  type SqsEventOptions,
  sqsEvent,
} from './queue-events.ts'
export {
  type ConformanceCheck,
  ConformanceError,
  type Probe,
  type Refusal,
  type SinkUnderTest,
  sinkConformance,
} from './sink-conformance.ts'
export { type SendOptions, type StoredState, TestDriver } from './test-driver.ts'
export { VirtualClock } from './virtual-clock.ts'
