/** The streams of a local run, on the embedded Kinesis or any endpoint that speaks its protocol. */
import {
  CreateStreamCommand,
  DescribeStreamSummaryCommand,
  KinesisClient,
  type StreamDescriptionSummary,
} from '@aws-sdk/client-kinesis'
import { clientSettings } from '../../aws/clients/settings.ts'
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError, describeError } from '../../core/errors.ts'

/** What a local run says it is: emulators take any account, and nothing here is a secret. */
export const localIdentity = { region: 'us-east-1', accessKeyId: 'local', secretAccessKey: 'local' } as const

/** A stream that is ready. */
export interface LocalStream {
  readonly streamName: string
  readonly streamArn: string
  readonly shards: number
  /** It did not exist before this run. */
  readonly isNew: boolean
}

/** A Kinesis client for an endpoint on this machine. */
export function localKinesisClient(endpoint: string): KinesisClient {
  const { region, accessKeyId, secretAccessKey } = localIdentity
  return new KinesisClient({ ...clientSettings({ endpoint, region }), credentials: { accessKeyId, secretAccessKey } })
}

const createTimeoutMs = 60_000
const pollMs = 200

/**
 * Finds a stream or makes it, and waits until it is active. A stream that exists keeps its shards.
 *
 * @throws ConfigurationError where the endpoint cannot be reached or the stream does not become active within a minute.
 */
export async function ensureStream(
  client: KinesisClient,
  clock: Clock,
  streamName: string,
  shards: number,
): Promise<LocalStream> {
  const endMs = clock.nowMs() + createTimeoutMs
  try {
    let found = await describe(client, streamName)
    const isNew = found === undefined
    if (isNew) await client.send(new CreateStreamCommand({ StreamName: streamName, ShardCount: shards }))
    while (found?.StreamStatus !== 'ACTIVE') {
      if (clock.nowMs() > endMs) throw new Error(`it is still ${found?.StreamStatus ?? 'missing'} after a minute`)
      if (found !== undefined) await clock.sleep(pollMs)
      found = await describe(client, streamName)
    }
    return { streamName, streamArn: found.StreamARN ?? '', shards: found.OpenShardCount ?? shards, isNew }
  } catch (error) {
    const { name, message } = describeError(error)
    throw new ConfigurationError(
      `The stream ${streamName} cannot be made ready: ${name}: ${message}. Check that the endpoint runs and speaks Kinesis.`,
      { cause: error },
    )
  }
}

async function describe(client: KinesisClient, streamName: string): Promise<StreamDescriptionSummary | undefined> {
  try {
    const { StreamDescriptionSummary: summary } = await client.send(
      new DescribeStreamSummaryCommand({ StreamName: streamName }),
    )
    return summary
  } catch (error) {
    if (describeError(error).name === 'ResourceNotFoundException') return undefined
    throw error
  }
}
