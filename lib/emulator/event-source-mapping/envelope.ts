import { stableUuid } from '../stable-uuid.ts'
import type { FailureCondition, FailureMessage, SourceFormat, SourceRecord } from './ports.ts'

export interface GivenUpBatch {
  readonly records: readonly SourceRecord[]
  readonly shardId: string
  readonly condition: FailureCondition
  /** Invocations of this batch; the envelope never says less than 1, even for a record that the function never saw. */
  readonly invokeCount: number
  readonly requestId: string
  /** `Unhandled` after a throw, crash or time-out; `null` when the function answered and named failures. */
  readonly functionError: 'Unhandled' | null
}

/**
 * The message for the on-failure destination, as recorded on AWS: no `responseContext` with RecordAgeExceeded; `payload`, the
 * event as JSON text, only where the destination carries it (S3).
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
 */
export function failureMessage(
  batch: GivenUpBatch,
  mapping: { readonly uuid: string; readonly functionArn: string },
  format: SourceFormat,
  options: { readonly nowMs: number; readonly carriesPayload: boolean },
): FailureMessage {
  const { records, shardId, condition, requestId } = batch
  const timestamp = new Date(options.nowMs).toISOString()
  const envelope = {
    requestContext: {
      requestId,
      functionArn: mapping.functionArn,
      condition,
      approximateInvokeCount: Math.max(1, batch.invokeCount),
    },
    ...(condition === 'RecordAgeExceeded'
      ? {}
      : { responseContext: { statusCode: 200, executedVersion: '$LATEST', functionError: batch.functionError } }),
    version: '1.0',
    timestamp,
    ...format.batchInfo(records, shardId),
    ...(options.carriesPayload ? { payload: JSON.stringify(format.event(records, shardId)) } : {}),
  }
  const [day = '', time = ''] = timestamp.slice(0, 19).split('T')
  const id = stableUuid('failure', mapping.uuid, shardId, requestId, records[0]?.sequenceNumber ?? '')
  const objectKey = `aws/lambda/${mapping.uuid}/${shardId}/${day.replaceAll('-', '/')}/${day}T${time.replaceAll(':', '.')}-${id}`
  return { envelope, objectKey, ...(format.messageKey === undefined ? {} : { key: format.messageKey(records) }) }
}
