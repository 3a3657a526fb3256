export type { KinesisEffect, RoutedRecord } from './effects.ts'
export { KinesisError, type KinesisErrorName } from './errors.ts'
export { hashKeyOf } from './hash-key.ts'
export {
  createKinesisModel,
  isKinesisOperation,
  type KinesisInput,
  type KinesisModel,
  type KinesisModelOptions,
  type KinesisOperationName,
  type KinesisOutput,
  unknownOperation,
} from './model.ts'
export type * from './shapes.ts'
