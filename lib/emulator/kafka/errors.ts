import { MillraceError } from '../../core/errors.ts'

/** The errors that the model raises, named as Kafka's protocol names them, with their codes. */
const codes = {
  OFFSET_OUT_OF_RANGE: 1,
  UNKNOWN_TOPIC_OR_PARTITION: 3,
  MESSAGE_TOO_LARGE: 10,
  ILLEGAL_GENERATION: 22,
  TOPIC_ALREADY_EXISTS: 36,
  INVALID_PARTITIONS: 37,
  OUT_OF_ORDER_SEQUENCE_NUMBER: 45,
  DUPLICATE_SEQUENCE_NUMBER: 46,
  INVALID_PRODUCER_EPOCH: 47,
  INVALID_RECORD: 87,
  UNKNOWN_TOPIC_ID: 100,
} as const

export type KafkaErrorName = keyof typeof codes

/**
 * A refusal by the Kafka model. `code` is the error's name in the protocol, `apiCode` its number there.
 *
 * @see https://kafka.apache.org/protocol.html#protocol_error_codes
 */
export class KafkaError extends MillraceError {
  override readonly name = 'KafkaError'
  readonly apiCode: number

  constructor(name: KafkaErrorName, message: string) {
    super(name, message)
    this.apiCode = codes[name]
  }
}
