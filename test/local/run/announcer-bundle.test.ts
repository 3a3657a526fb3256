/** The function of the announcer as it is deployed, its bundle in a process of its own, on the embedded services. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  GetRecordsCommand,
  GetShardIteratorCommand,
  type KinesisClient,
  ListShardsCommand,
} from '@aws-sdk/client-kinesis'
import { type LocalApplication, startLocalApplication } from '../../../lib/local/run/application.ts'
import { bundleHandler } from '../../../lib/local/run/handler-bundle.ts'
import { localIdentity } from '../../../lib/local/run/streams.ts'
import { type AnnouncerBindings, announceEvent, bindingsVariable } from '../../../lib/plan/stage-bindings.ts'
import { decodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import { invokeBundle } from '../../cdk/bundled-handler.ts'
import { quietApp } from '../fixtures/quiet.ts'

const timeoutMs = 180_000
const keyed = ['by-line', 'bells', 'all']

/** Invokes the bundle's handler with the event of the rule. */
const invoke = (file: string, bindings: AnnouncerBindings, { endpoints }: LocalApplication) =>
  invokeBundle(file, announceEvent, {
    [bindingsVariable]: JSON.stringify(bindings),
    AWS_ENDPOINT_URL_KINESIS: endpoints.kinesis,
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
    AWS_REGION: localIdentity.region,
    AWS_ACCESS_KEY_ID: localIdentity.accessKeyId,
    AWS_SECRET_ACCESS_KEY: localIdentity.secretAccessKey,
  })

/** What was said in each shard of a stream, as `state upstream/partition`. */
async function saidIn(client: KinesisClient, StreamName: string): Promise<string[][]> {
  const { Shards = [] } = await client.send(new ListShardsCommand({ StreamName }))
  return Promise.all(
    Shards.map(async ({ ShardId }) => {
      const from = new GetShardIteratorCommand({ StreamName, ShardId, ShardIteratorType: 'TRIM_HORIZON' })
      const { ShardIterator } = await client.send(from)
      const { Records = [] } = await client.send(new GetRecordsCommand({ ShardIterator }))
      return Records.flatMap(({ Data }) => {
        const frame = decodeFrame(Data as Uint8Array)
        if (frame.kind !== 'control') return []
        return frame.news.map(({ state, upstream }) => `${frame.from}: ${state} ${upstream.name}/${upstream.partition}`)
      })
    }),
  )
}

test(
  'tells each shard of each keyed stage its first set',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'millrace-announcer-'))
    const app = await startLocalApplication({
      topology: quietApp,
      entry: 'test/local/fixtures/quiet.ts',
      directory: join(directory, 'state'),
      workers: 1,
      shards: 2,
    })
    try {
      // GIVEN streams and tables, and no stage that runs
      const bindings: AnnouncerBindings = {
        formatVersion: 1,
        topology: 'quiet-app',
        announces: ['calls', ...keyed].map((stage) => ({
          stage,
          streamName: app.streamOf(stage).streamName,
          state: { tableName: `quiet-app-${stage}-state` },
        })),
      }
      const file = await bundleHandler({
        entry: 'test/local/fixtures/quiet.ts',
        directory: join(directory, 'bundle'),
        bindings,
      })
      // WHEN
      expect(await invoke(file, bindings, app)).toEqual({ batchItemFailures: [] })
      // THEN
      const shards = ['shardId-000000000000', 'shardId-000000000001']
      for (const stage of keyed) {
        const feeder = stage === 'all' ? 'by-line' : 'calls'
        const set = shards.map((shard) => `announcer: open ${feeder}/${shard}`)
        expect([stage, await saidIn(app.client, app.streamOf(stage).streamName)]).toEqual([stage, [set, set]])
      }
    } finally {
      await app.stop()
      await rm(directory, { recursive: true, force: true })
    }
  },
  timeoutMs,
)
