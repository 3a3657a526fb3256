import { MillraceError } from '../../core/errors.ts'
import type { CancellationReason, Item } from './shapes.ts'

/** The exceptions that the model raises, named as AWS names them on the wire and in the SDK. */
export type DynamoErrorName =
  | 'ConditionalCheckFailedException'
  | 'ExpiredIteratorException'
  | 'IdempotentParameterMismatchException'
  | 'InternalServerError'
  | 'ProvisionedThroughputExceededException'
  | 'ResourceInUseException'
  | 'ResourceNotFoundException'
  | 'SerializationException'
  | 'TransactionCanceledException'
  | 'TransactionConflictException'
  | 'TrimmedDataAccessException'
  | 'UnknownOperationException'
  | 'ValidationException'

/**
 * A refusal by the DynamoDB model. `name` and `code` are the exception's name at AWS, so that code written for the SDK's
 * errors (`error.name === 'ConditionalCheckFailedException'`) treats the model alike.
 */
export class DynamoError extends MillraceError {
  override readonly name: string
  /** Of a failed condition that asked for ALL_OLD: the item that is there. */
  readonly Item?: Item
  /** Of a cancelled transaction: a reason per action, `Code: 'None'` where it was not to blame. */
  readonly CancellationReasons?: readonly CancellationReason[]

  constructor(
    name: DynamoErrorName,
    message: string,
    details: { readonly Item?: Item | undefined; readonly CancellationReasons?: readonly CancellationReason[] } = {},
  ) {
    super(name, message)
    this.name = name
    if (details.Item !== undefined) this.Item = details.Item
    if (details.CancellationReasons !== undefined) this.CancellationReasons = details.CancellationReasons
  }
}

/** A refusal of a request for what it says. */
export function invalid(message: string): DynamoError {
  return new DynamoError('ValidationException', message)
}

/** A refusal of a parameter's value, in the words of AWS. */
export function invalidParameter(message: string): DynamoError {
  return invalid(`One or more parameter values were invalid: ${message}`)
}

/** A refusal of what does not satisfy the constraints of the API's own model, in the words of AWS. */
export function constraintViolated(field: string, value: string | number, constraint: string): DynamoError {
  return invalid(
    `1 validation error detected: Value '${value}' at '${field}' failed to satisfy constraint: ${constraint}`,
  )
}
