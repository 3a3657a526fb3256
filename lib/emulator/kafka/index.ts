export { KafkaError, type KafkaErrorName } from './errors.ts'
export { KafkaModel, type KafkaModelOptions } from './model.ts'
export { murmur2, partitionOf } from './partitioner.ts'
export type * from './shapes.ts'
