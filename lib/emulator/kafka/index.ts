export { murmur2, partitionOf } from '../../core/kafka-partitioner.ts'
export { KafkaError, type KafkaErrorName } from './errors.ts'
export { KafkaModel, type KafkaModelOptions } from './model.ts'
export type * from './shapes.ts'
