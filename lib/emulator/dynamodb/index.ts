export type { DynamoEffect, ItemWrite } from './effects.ts'
export { DynamoError, type DynamoErrorName } from './errors.ts'
export {
  type ConsumedUnits,
  createDynamoModel,
  type DynamoInput,
  type DynamoModel,
  type DynamoModelOptions,
  type DynamoOperationName,
  type DynamoOutput,
  isDynamoOperation,
  unknownOperation,
} from './model.ts'
export type * from './shapes.ts'
export type { DynamoFaults, RowAccess } from './world.ts'
