/**
 * Owns the file that stands for the on-failure destination of a local event source mapping: one line of JSON per message, in
 * the order in which batches were given up, so that nothing that is given up here disappears.
 */
import { appendFile, mkdir, readFile, truncate } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigurationError } from '../../core/errors.ts'
import type { FailureDestination, FailureMessage } from '../../emulator/event-source-mapping/index.ts'

/** What the destination is on AWS. Only S3 receives the records themselves. */
export type FailureDestinationKind = 'sqs' | 'sns' | 's3'

/** A line of the file. */
export interface FailureLine {
  readonly destination: FailureDestinationKind
  /** Only for S3: where the object would be. */
  readonly objectKey?: string
  /** The SQS body, the SNS message or the S3 object. */
  readonly message: FailureMessage['envelope']
}

/**
 * A destination that appends to a file; it is made with the first message. A message that cannot be written rejects, and the
 * mapping counts it as a failed delivery.
 *
 * @example
 * const onFailure = failureFile('.millrace/flights/on-failure.ndjson', 'sqs')
 */
export function failureFile(path: string, destination: FailureDestinationKind): FailureDestination {
  const carriesPayload = destination === 's3'
  let lastWrite: Promise<void> = Promise.resolve()
  let isReady = false
  return {
    carriesPayload,
    send({ envelope, objectKey }) {
      const line: FailureLine = { destination, ...(carriesPayload ? { objectKey } : {}), message: envelope }
      const write = lastWrite.then(async () => {
        if (!isReady) await prepare(path)
        isReady = true
        await appendFile(path, `${JSON.stringify(line)}\n`)
      })
      // The next line waits for this one, whatever became of it.
      lastWrite = write.catch(() => {})
      return write
    },
  }
}

/** Makes the folder, and cuts off a last line that an earlier run did not finish: the next one would be glued to it. */
async function prepare(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const content = await readIfThere(path)
  const wholeBytes = content.lastIndexOf('\n') + 1
  if (wholeBytes < content.length) await truncate(path, wholeBytes)
}

async function readIfThere(path: string): Promise<Buffer> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return Buffer.alloc(0)
    throw error
  })
}

/**
 * The messages of a file, none where there is no file. A last line that was cut by a crash was never delivered and is left out.
 *
 * @throws ConfigurationError for any other line that is not JSON.
 */
export async function readFailureFile(path: string): Promise<readonly FailureLine[]> {
  const text = (await readIfThere(path)).toString()
  const lines = text.split('\n').slice(0, -1)
  return lines.map((line, index) => {
    try {
      return JSON.parse(line) as FailureLine
    } catch (cause) {
      throw new ConfigurationError(`${path}:${index + 1} is not JSON: remove that line, or move the file away.`, {
        cause,
      })
    }
  })
}
