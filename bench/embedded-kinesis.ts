/**
 * How fast the embedded Kinesis takes records and gives them back, through the real SDK over HTTP, client and service in one
 * process: `node bench/embedded-kinesis.ts [--json FILE]`. Exits with 1 when a figure misses its goal.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import {
  CreateStreamCommand,
  GetRecordsCommand,
  GetShardIteratorCommand,
  KinesisClient,
  ListShardsCommand,
  PutRecordsCommand,
} from '@aws-sdk/client-kinesis'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { startKinesisService } from '../lib/local/services/kinesis.ts'
import { type Figure, finish, table } from './figures.ts'

const SHARDS = 4
const REQUESTS = 200
const RECORDS_PER_REQUEST = 500
const RECORD_BYTES = 200
const IN_FLIGHT = 4
const GOAL_PER_SECOND = 10_000
const StreamName = 'bench'

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return (performance.now() - startMs) / 1_000
}

async function putAll(client: KinesisClient, requests: number): Promise<void> {
  let next = 0
  const data = Buffer.alloc(RECORD_BYTES, 'x')
  const worker = async () => {
    for (let request = next++; request < requests; request = next++) {
      const Records = Array.from({ length: RECORDS_PER_REQUEST }, (_, i) => ({
        PartitionKey: `key-${request}-${i}`,
        Data: data,
      }))
      const { FailedRecordCount } = await client.send(new PutRecordsCommand({ StreamName, Records }))
      if (FailedRecordCount !== 0) throw new Error(`${FailedRecordCount} records of request ${request} were refused`)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
}

async function readAll(client: KinesisClient): Promise<number> {
  const { Shards = [] } = await client.send(new ListShardsCommand({ StreamName }))
  const counts = await Promise.all(
    Shards.map(async ({ ShardId }) => {
      const first = await client.send(
        new GetShardIteratorCommand({ StreamName, ShardId, ShardIteratorType: 'TRIM_HORIZON' }),
      )
      let count = 0
      for (let ShardIterator = first.ShardIterator; ; ) {
        const answer = await client.send(new GetRecordsCommand({ ShardIterator, Limit: 1_000 }))
        count += answer.Records?.length ?? 0
        if (answer.MillisBehindLatest === 0) return count
        ShardIterator = answer.NextShardIterator
      }
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

async function measure(label: string, directory: string | undefined): Promise<Figure[]> {
  const service = await startKinesisService(directory === undefined ? {} : { directory })
  const client = new KinesisClient({
    endpoint: service.url,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    requestHandler: new NodeHttpHandler(),
  })
  try {
    await client.send(new CreateStreamCommand({ StreamName, ShardCount: SHARDS }))
    const warmUp = 10
    await putAll(client, warmUp)
    const records = REQUESTS * RECORDS_PER_REQUEST
    const putSeconds = await secondsOf(() => putAll(client, REQUESTS))
    let read = 0
    const getSeconds = await secondsOf(async () => {
      read = await readAll(client)
    })
    const expected = records + warmUp * RECORDS_PER_REQUEST
    if (read !== expected) throw new Error(`${read} records were read back, not ${expected}`)
    const perSecond = { unit: 'records/s', goal: GOAL_PER_SECOND }
    return [
      { name: `put, ${label}`, value: Math.round(records / putSeconds), ...perSecond },
      { name: `get, ${label}`, value: Math.round(read / getSeconds), ...perSecond },
    ]
  } finally {
    client.destroy()
    await service.close()
  }
}

async function measureRestart(directory: string): Promise<Figure> {
  const seconds = await secondsOf(async () => (await startKinesisService({ directory })).close())
  return { name: 'restart with that journal', value: Math.round(seconds * 1_000), unit: 'ms' }
}

const { values } = parseArgs({ options: { json: { type: 'string' } } })
const directory = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
try {
  const figures = [
    ...(await measure('in memory', undefined)),
    ...(await measure('with a journal', directory)),
    await measureRestart(directory),
  ]
  console.log(table(figures.map(({ name, value, unit }) => [name, value.toLocaleString('en'), unit])))
  finish('npm run bench:kinesis', figures, values.json)
} finally {
  await rm(directory, { recursive: true, force: true })
}
