/**
 * What went wrong at a Kafka cluster, under the name that the protocol has for it.
 *
 * The client's errors nest: of several attempts, of several brokers, of several partitions of one request. What passes by itself is
 * tried again by whoever sends; all else needs a person, or is the record's own fault.
 */
import { isRetryable, MillraceError } from '../../core/errors.ts'

/** A failed call of a Kafka client. `name` is the broker's own, such as NOT_ENOUGH_REPLICAS, or the client's code. */
export class KafkaFailure extends Error {
  override readonly name: string
  /** Every name in it. */
  readonly names: ReadonlySet<string>
  /** True where the same call may succeed later. */
  readonly passes: boolean

  constructor(name: string, message: string, options: { passes: boolean; names?: Iterable<string>; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.name = name
    this.names = new Set([name, ...(options.names ?? [])])
    this.passes = options.passes
  }
}

/** True for what a Kafka call failed with where the same call may succeed later. */
export const kafkaPasses = (thrown: unknown): boolean => thrown instanceof KafkaFailure && thrown.passes

/** What is known of an error of the client, as far as it is read. */
interface ClientError {
  readonly code?: unknown
  readonly apiId?: unknown
  readonly canRetry?: unknown
  readonly message?: unknown
  readonly cause?: unknown
  readonly errors?: readonly unknown[]
}

/** A new producer begins anew, with an id of its own. */
const passingWithNewProducer = new Set([
  'OUT_OF_ORDER_SEQUENCE_NUMBER',
  'UNKNOWN_PRODUCER_ID',
  'INVALID_PRODUCER_EPOCH',
  'INVALID_PRODUCER_ID_MAPPING',
])
/** Neither a certificate nor a protocol mends itself. */
const tlsProblem = /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH|EPROTO)/

/** The errors that others are only wrapped around: a lost connection, and a refused login, say why in their cause. */
function leavesOf(error: unknown): readonly ClientError[] {
  // A secret or a token of ours that could not be had.
  if (error instanceof MillraceError)
    return [{ code: error.code, message: error.message, canRetry: isRetryable(error) }]
  const { errors, cause, apiId } = Object(error) as ClientError
  if (Array.isArray(errors) && errors.length > 0) return errors.flatMap(leavesOf)
  const causes = cause === undefined || apiId !== undefined ? [] : leavesOf(cause)
  return causes.some((leaf) => nameOf(leaf) !== undefined) ? causes : [Object(error)]
}

function nameOf({ apiId, code, message }: ClientError): string | undefined {
  if (typeof apiId === 'string') return apiId
  if (/^Unknown topic /.test(String(message))) return 'UNKNOWN_TOPIC_OR_PARTITION'
  return typeof code === 'string' ? code : undefined
}

function passesAlone(leaf: ClientError): boolean {
  const name = nameOf(leaf) ?? ''
  if (passingWithNewProducer.has(name)) return true
  if (tlsProblem.test(name) || name === 'UNKNOWN_TOPIC_OR_PARTITION') return false
  // What Node says of a lost connection says nothing of retries.
  return leaf.canRetry === true || (leaf.canRetry === undefined && /^E[A-Z]+$/.test(name))
}

/** An error of the client as a {@link KafkaFailure}. */
export function kafkaFailureOf(thrown: unknown): KafkaFailure {
  if (thrown instanceof KafkaFailure) return thrown
  const leaves = leavesOf(thrown)
  const decisive = leaves.findLast((leaf) => !passesAlone(leaf)) ?? leaves.at(-1) ?? {}
  const names = leaves.flatMap((leaf) => nameOf(leaf) ?? [])
  return new KafkaFailure(nameOf(decisive) ?? 'KafkaFailure', String(decisive.message ?? 'no reason was given'), {
    passes: passesAlone(decisive),
    names,
    cause: thrown,
  })
}
