/** Where the services of a local run answer: embedded ones of its own, or an endpoint that the user names. */
import { join } from 'node:path'
import type { Closing } from '../closing.ts'
import { startDynamoService } from '../services/dynamodb.ts'
import { startKinesisService } from '../services/kinesis.ts'

/** URLs, such as `http://127.0.0.1:4566`. */
export interface LocalEndpoints {
  readonly kinesis: string
  /** Of DynamoDB and of its streams. */
  readonly dynamodb: string
  /** Of every other service of AWS. @default none: the embedded services stand for no other */
  readonly others?: string
}

/** One endpoint for everything, such as LocalStack's. */
export const endpointsAt = (url: string): LocalEndpoints => ({ kinesis: url, dynamodb: url, others: url })

/**
 * Starts the embedded services of a run, until the closing. What they hold stays in `kinesis` and `dynamodb` below the directory.
 *
 * @throws ConfigurationError for a busy port, or for state that another process uses or that is damaged.
 * @param port of Kinesis on 127.0.0.1; 0 takes any free one, as DynamoDB always does.
 * @param onBound called once the port is taken, before the directory is looked at.
 */
export async function startLocalServices(
  directory: string,
  port: number,
  closing: Closing,
  onBound?: () => Promise<void>,
): Promise<LocalEndpoints> {
  const kinesis = await startKinesisService({ port, directory: join(directory, 'kinesis'), onBound })
  closing.defer(() => kinesis.close())
  const dynamodb = await startDynamoService({ directory: join(directory, 'dynamodb') })
  closing.defer(() => dynamodb.close())
  return { kinesis: kinesis.url, dynamodb: dynamodb.url }
}
