/** The trace of an invocation, from the environment of a deployed function to the records of the stage that it feeds. */
import { GetRecordsCommand, GetShardIteratorCommand } from '@aws-sdk/client-kinesis'
import { openPorts } from '../../lib/aws/handler/open-ports.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { tracesIn } from '../../lib/aws/trace.ts'
import { ensureStream, localIdentity, localKinesisClient } from '../../lib/local/run/streams.ts'
import { startKinesisService } from '../../lib/local/services/kinesis.ts'
import { plan } from '../../lib/plan/plan.ts'
import { bindingsVariable, type StageBindings } from '../../lib/plan/stage-bindings.ts'
import { rides } from '../testing/rides.ts'

const streamArn = (name: string) => `arn:aws:kinesis:us-east-1:000000000000:stream/${name}`
const { signal } = new AbortController()
const before = { ...process.env }

beforeAll(() => {
  const { region, accessKeyId, secretAccessKey } = localIdentity
  Object.assign(process.env, { AWS_REGION: region, AWS_ACCESS_KEY_ID: accessKeyId })
  process.env.AWS_SECRET_ACCESS_KEY = secretAccessKey
})

afterAll(() => {
  process.env = before
})

test('each sampled invocation of a deployed stage writes its own trace beside its frames, and no other does', async () => {
  const service = await startKinesisService()
  const client = localKinesisClient(service.url)
  try {
    await ensureStream(client, systemClock, 'by-city', 1)
    const bindings: StageBindings = {
      formatVersion: 1,
      topology: 'rides-app',
      sources: [{ name: 'by-driver', kind: 'kinesis', streamArn: streamArn('by-driver') }],
      sinks: [],
      deadLetters: { kind: 'kinesis', streamName: 'dead' },
      feeds: [{ stage: 'by-city', slots: 64, streamArn: streamArn('by-city') }],
    }
    const environment: Record<string, string> = {
      [bindingsVariable]: JSON.stringify(bindings),
      AWS_ENDPOINT_URL_KINESIS: service.url,
    }
    const ports = await openPorts(plan(rides().app), environment)
    const traces = ['1-5759e988-bd862e3fe1be46a994272793', '1-5759e989-bd862e3fe1be46a994272794'] as const
    // As Lambda sets it, anew for each invocation.
    for (const header of [
      `Root=${traces[0]};Sampled=1`,
      `Root=${traces[1]};Sampled=1`,
      `Root=${traces[1]};Sampled=0`,
    ]) {
      environment._X_AMZN_TRACE_ID = header
      await ports.frames?.('by-city')?.publish([{ slot: 3, bytes: Buffer.from([3]) }], signal)
    }
    const place = { StreamName: 'by-city', ShardId: 'shardId-000000000000' }
    const { ShardIterator } = await client.send(
      new GetShardIteratorCommand({ ...place, ShardIteratorType: 'TRIM_HORIZON' }),
    )
    const { Records = [] } = await client.send(new GetRecordsCommand({ ShardIterator }))
    expect(Records.map(({ PartitionKey = '' }) => tracesIn([PartitionKey]))).toEqual([[traces[0]], [traces[1]], []])
  } finally {
    client.destroy()
    await service.close()
  }
})
