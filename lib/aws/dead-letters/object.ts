import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3'
import { describeError } from '../../core/errors.ts'
import type { DeadLetterEntry } from './entry.ts'
import { readDeadLetter } from './reading.ts'

/**
 * Reads the whole of an entry that was offloaded to a bucket. Rejects with an Error that says why it is not to be had, also where the
 * object holds another dead letter.
 *
 * @example
 * const whole = await readDeadLetterObject(createS3Client(), entry)
 */
export async function readDeadLetterObject(client: S3Client, entry: DeadLetterEntry): Promise<DeadLetterEntry> {
  const { bucket, key } = entry.offloaded ?? { bucket: '', key: '' }
  let text: string | undefined
  try {
    const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: key }))
    text = await Body?.transformToString()
  } catch (error) {
    const { name, message } = describeError(error)
    throw new Error(`the object cannot be read: ${name}: ${message}`, { cause: error })
  }
  const whole = readDeadLetter(text ?? '')
  if ('problem' in whole) throw new Error(`the object is no dead letter: ${whole.problem}`)
  if (whole.id !== entry.id) throw new Error(`the object holds another dead letter, ${whole.id}`)
  return whole
}
