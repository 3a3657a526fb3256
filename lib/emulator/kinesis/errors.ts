import { MillraceError } from '../../core/errors.ts'

/** The exceptions that the model raises, named as AWS names them on the wire and in the SDK. */
export type KinesisErrorName =
  | 'ExpiredIteratorException'
  | 'ExpiredNextTokenException'
  | 'InternalFailure'
  | 'InvalidArgumentException'
  | 'LimitExceededException'
  | 'ProvisionedThroughputExceededException'
  | 'ResourceInUseException'
  | 'ResourceNotFoundException'
  | 'SerializationException'
  | 'UnknownOperationException'
  | 'ValidationException'

/**
 * A refusal by the Kinesis model. `name` and `code` are the exception's name at AWS, so that code written for the SDK's
 * errors (`error.name === 'ResourceNotFoundException'`) treats the model alike.
 */
export class KinesisError extends MillraceError {
  override readonly name: string

  constructor(name: KinesisErrorName, message: string, options?: ErrorOptions) {
    super(name, message, options)
    this.name = name
  }
}
