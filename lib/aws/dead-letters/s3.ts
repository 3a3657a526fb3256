import { PutObjectCommand, type PutObjectCommandOutput } from '@aws-sdk/client-s3'
import type { DeadLetter } from '../../runtime/dead-letter.ts'
import type { Sink } from '../../runtime/sink.ts'
import { type DeliveryPorts, type Destination, deliverInOrder } from '../ordered-delivery.ts'
import { deadLetterObjectKey, entryText } from './entry.ts'
import type { DeadLetterObject, DeadLetterOffload } from './offload.ts'

/** What is needed of an `S3Client`. */
export interface S3Port {
  send(command: PutObjectCommand): Promise<PutObjectCommandOutput>
}

/** A bucket for whole entries. */
export interface DeadLetterBucket {
  /** An `S3Client`, such as {@link createS3Client} makes: without retries of its own. */
  readonly client: S3Port
  readonly bucket: string
}

function objectDestination({ client, bucket }: DeadLetterBucket): Destination<DeadLetterObject> {
  return {
    label: `bucket "${bucket}"`,
    maxItemsPerRequest: 1,
    maxBytesPerRequest: Number.POSITIVE_INFINITY,
    maxRequests: 8,
    sizeOf: () => 0,
    orderKeyOf: undefined,
    async send(objects) {
      const puts = objects.map(({ key, text }) =>
        client.send(
          new PutObjectCommand({ Bucket: bucket, Key: key, Body: Buffer.from(text), ContentType: 'application/json' }),
        ),
      )
      await Promise.all(puts)
      return undefined
    },
  }
}

/**
 * Dead letters as objects of a bucket, one each, under `dead-letters/<topology>/<stage>/<yyyy>/<mm>/<dd>/<id>.json`. A
 * repeated one replaces itself. Size is no matter here.
 *
 * @example
 * const deadLetters = s3DeadLetters({ client: createS3Client(), bucket: 'failed-records', clock, logger })
 */
export function s3DeadLetters(options: DeadLetterBucket & DeliveryPorts): Sink<DeadLetter, DeadLetterObject> {
  const destination = objectDestination(options)
  return {
    prepare: ({ value }) => ({ key: deadLetterObjectKey(value), text: entryText(value) }),
    deliver: (objects, { signal }) => deliverInOrder(objects, destination, options, signal),
  }
}

/**
 * A bucket for the whole entries that a queue or a stream cannot take.
 *
 * @example
 * sqsDeadLetters({ client: createSQSClient(), queueUrl, offload: s3Offload({ client: createS3Client(), bucket }), clock, logger })
 */
export function s3Offload(options: DeadLetterBucket): DeadLetterOffload {
  return { bucket: options.bucket, open: async () => objectDestination(options) }
}
