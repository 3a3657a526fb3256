import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CreateStreamCommand,
  DescribeStreamSummaryCommand,
  GetRecordsCommand,
  GetShardIteratorCommand,
  KinesisClient,
  ListShardsCommand,
  PutRecordCommand,
  PutRecordsCommand,
  RegisterStreamConsumerCommand,
  UpdateShardCountCommand,
} from '@aws-sdk/client-kinesis'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import {
  type KinesisService,
  type KinesisServiceOptions,
  startKinesisService,
} from '../../../lib/local/services/kinesis.ts'
import { runKinesisCalls } from './kinesis-call-script.ts'

const StreamName = 'orders'
let directory: string
const open: { close(): Promise<void> }[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-kinesis-'))
})

afterEach(async () => {
  for (const service of open.splice(0)) await service.close().catch(() => {})
  await rm(directory, { recursive: true, force: true })
})

async function start(options: KinesisServiceOptions = {}): Promise<{ service: KinesisService; client: KinesisClient }> {
  const service = await startKinesisService(options)
  const client = new KinesisClient({
    endpoint: service.url,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  })
  open.push(service, { close: async () => client.destroy() })
  return { service, client }
}

const put = (client: KinesisClient, data: string, PartitionKey = 'k') =>
  client.send(new PutRecordCommand({ StreamName, PartitionKey, Data: Buffer.from(data) }))

async function readAll(client: KinesisClient): Promise<string[]> {
  const { Shards = [] } = await client.send(new ListShardsCommand({ StreamName }))
  const texts: string[] = []
  for (const { ShardId } of Shards) {
    const { ShardIterator } = await client.send(
      new GetShardIteratorCommand({ StreamName, ShardId, ShardIteratorType: 'TRIM_HORIZON' }),
    )
    const { Records = [] } = await client.send(new GetRecordsCommand({ ShardIterator }))
    texts.push(...Records.map(({ Data }) => Buffer.from(Data ?? []).toString()))
  }
  return texts
}

/** The name and status of what a raw request is answered with. */
async function post(
  url: string,
  operation: string,
  body: string,
): Promise<{ status: number; __type: string; message: string }> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'x-amz-target': `Kinesis_20131202.${operation}`, 'content-type': 'application/x-amz-json-1.1' },
    body,
  })
  return { status: answer.status, ...((await answer.json()) as { __type: string; message: string }) }
}

describe('the embedded Kinesis through the SDK', () => {
  it('answers a script of all kinds of calls', async () => {
    const { client } = await start()
    const outcomes = await runKinesisCalls(client, StreamName)
    expect(Object.fromEntries(outcomes.map(({ call, outcome }) => [call, outcome]))).toMatchSnapshot()
  })

  it('carries any bytes and the arrival time to the millisecond', async () => {
    const { client } = await start({ clock: { nowMs: () => 1_671_562_498_449 } })
    await client.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }))
    const Data = Uint8Array.from({ length: 256 }, (_, i) => i)
    await client.send(new PutRecordsCommand({ StreamName, Records: [{ PartitionKey: 'k', Data }] }))
    const { ShardIterator } = await client.send(
      new GetShardIteratorCommand({ StreamName, ShardId: 'shardId-000000000000', ShardIteratorType: 'TRIM_HORIZON' }),
    )
    const { Records } = await client.send(new GetRecordsCommand({ ShardIterator }))
    expect(Records?.[0]?.ApproximateArrivalTimestamp?.getTime()).toBe(1_671_562_498_449)
    expect(Buffer.from(Records?.[0]?.Data ?? []).equals(Data)).toBe(true)
  })

  it('finds streams by ARN', async () => {
    const { client } = await start({ region: 'eu-west-1' })
    await client.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }))
    const StreamARN = 'arn:aws:kinesis:eu-west-1:000000000000:stream/orders'
    const { StreamDescriptionSummary } = await client.send(new DescribeStreamSummaryCommand({ StreamARN }))
    expect(StreamDescriptionSummary).toMatchObject({ StreamName, StreamARN })
  })

  it('takes 10 MiB of records in one request', async () => {
    const { client } = await start()
    await client.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }))
    const Records = Array.from({ length: 10 }, () => ({ PartitionKey: 'k', Data: Buffer.alloc(1_048_575) }))
    const { FailedRecordCount } = await client.send(new PutRecordsCommand({ StreamName, Records }))
    expect(FailedRecordCount).toBe(0)
  })

  it('throws the exceptions of the SDK', async () => {
    // Both puts are of one second, however long they take.
    const { client } = await start({ enforceLimits: true, clock: { nowMs: () => 1_671_562_498_449 } })
    await expect(put(client, 'x')).rejects.toMatchObject({ name: 'ResourceNotFoundException', $fault: 'client' })
    await client.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }))
    await put(client, 'x'.repeat(1_000_000))
    await expect(put(client, 'x'.repeat(1_000_000))).rejects.toMatchObject({
      name: 'ProvisionedThroughputExceededException',
      message: 'Rate exceeded for shard shardId-000000000000 in stream orders under account 000000000000.',
    })
  })

  it('refuses loudly what it does not have: operations, fields, wrong types, broken JSON', async () => {
    const { service, client } = await start()
    const consumer = new RegisterStreamConsumerCommand({ StreamARN: 'arn', ConsumerName: 'c' })
    await expect(client.send(consumer)).rejects.toMatchObject({
      name: 'UnknownOperationException',
      message: expect.stringContaining("'RegisterStreamConsumer'"),
    })
    const dryRun = { StreamName, PartitionKey: 'k', Data: Buffer.alloc(1), DryRun: true }
    await expect(client.send(new PutRecordCommand(dryRun))).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining("'DryRun'"),
    })
    const raw = async (operation: string, body: unknown) =>
      (await post(service.url, operation, typeof body === 'string' ? body : JSON.stringify(body))).__type
    expect(await raw('PutRecord', '{"StreamName":')).toBe('SerializationException')
    expect(await raw('PutRecord', [])).toBe('SerializationException')
    expect(await raw('PutRecord', { StreamName, PartitionKey: 'k', Data: 'no base64!' })).toBe('SerializationException')
    expect(await raw('PutRecord', { StreamName, PartitionKey: 7, Data: '' })).toBe('SerializationException')
    expect(await raw('PutRecord', { StreamName, Data: '' })).toBe('ValidationException')
    expect(await raw('PutRecords', { StreamName, Records: {} })).toBe('SerializationException')
    expect(await raw('CreateStream', { StreamName, ShardCount: 1.5 })).toBe('SerializationException')
    expect(await raw('CreateStream', { StreamName, ShardCount: 1, __proto__x: 1 })).toBe('ValidationException')
    expect(await raw('PutRecord', 'x'.repeat(17 * 1_048_576))).toBe('SerializationException')
  })

  it('says in one line which port is taken and what to do', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    open.push({ close: () => new Promise<void>((resolve) => other.close(() => resolve())) })
    const { port } = other.address() as AddressInfo
    const starting = startKinesisService({ port })
    await expect(starting).rejects.toBeInstanceOf(ConfigurationError)
    await expect(starting).rejects.toThrow(
      `The embedded Kinesis cannot listen on port ${port} of 127.0.0.1: another program listens there. Stop that program, or give another port (0 takes any free one).`,
    )
  })
})

describe('the embedded Kinesis with a directory', () => {
  it('goes on after a restart with the same streams, records, shards and iterators', async () => {
    const first = await start({ directory })
    await first.client.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }))
    const before = await put(first.client, 'one')
    const { ShardIterator } = await first.client.send(
      new GetShardIteratorCommand({ StreamName, ShardId: 'shardId-000000000000', ShardIteratorType: 'LATEST' }),
    )
    await put(first.client, 'two')
    await first.service.close()

    const second = await start({ directory })
    expect(await readAll(second.client)).toEqual(['one', 'two'])
    const { Records } = await second.client.send(new GetRecordsCommand({ ShardIterator }))
    expect(Records?.map(({ Data }) => Buffer.from(Data ?? []).toString())).toEqual(['two'])
    const after = await put(second.client, 'three')
    expect(BigInt(after.SequenceNumber ?? 0)).toBeGreaterThan(BigInt(before.SequenceNumber ?? 0))
    const scale = { StreamName, TargetShardCount: 2, ScalingType: 'UNIFORM_SCALING' } as const
    await second.client.send(new UpdateShardCountCommand(scale))
    await second.service.close()

    const third = await start({ directory })
    expect((await third.client.send(new ListShardsCommand({ StreamName }))).Shards).toHaveLength(3)
    expect(await readAll(third.client)).toEqual(['one', 'two', 'three'])
  })

  it('keeps every acknowledged record in order when many clients put at once', async () => {
    const { service, client } = await start({ directory })
    await client.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }))
    await Promise.all(Array.from({ length: 100 }, (_, i) => put(client, String(i))))
    const before = await readAll(client)
    await service.close()
    expect(before).toHaveLength(100)
    expect(await readAll((await start({ directory })).client)).toEqual(before)
  })

  it('fails requests with InternalFailure while the disk is full, shows nothing unsaved, and goes on when it is not', async () => {
    let full = false
    const writeAt: KinesisServiceOptions['writeAt'] = async (file, bytes, position) => {
      if (full) {
        await file.write(bytes, 0, Math.floor(bytes.length / 2), position)
        throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
      }
      await file.write(bytes, 0, bytes.length, position)
    }
    const { service, client } = await start({ directory, writeAt })
    await client.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }))
    await put(client, 'saved')
    full = true
    await expect(put(client, 'unsaved')).rejects.toMatchObject({ name: 'InternalFailure' })
    await expect(put(client, 'refused')).rejects.toMatchObject({ message: expect.stringContaining('ENOSPC') })
    await expect(readAll(client)).rejects.toMatchObject({ name: 'InternalFailure' })
    const journal = await readFile(join(directory, 'kinesis.journal'))

    full = false
    await put(client, 'later')
    const afterwards = await readAll(client)
    expect(afterwards).toEqual(['saved', 'unsaved', 'later'])
    await service.close()
    expect(await readAll((await start({ directory })).client)).toEqual(afterwards)

    const crashed = join(directory, 'crashed')
    await mkdir(crashed)
    await writeFile(join(crashed, 'kinesis.journal'), journal)
    expect(await readAll((await start({ directory: crashed })).client)).toEqual(['saved'])
  })

  it('does not share a directory with another running service, and takes over from a dead one', async () => {
    const { service } = await start({ directory })
    await expect(startKinesisService({ directory })).rejects.toThrow(/kinesis\.lock are in use by process \d+: stop it/)
    await service.close()
    await writeFile(join(directory, 'kinesis.lock'), '999999999 1')
    await start({ directory })
  })

  it('answers what is in flight and then refuses connections when it closes', async () => {
    const { service, client } = await start({ directory })
    await client.send(new CreateStreamCommand({ StreamName, ShardCount: 1 }))
    await client.send(new DescribeStreamSummaryCommand({ StreamName }))
    const puts = Array.from({ length: 20 }, (_, i) =>
      put(client, String(i)).then(
        () => true,
        () => false,
      ),
    )
    await puts[0]
    await service.close()
    const acknowledged = (await Promise.all(puts)).filter(Boolean).length
    await expect(put(client, 'late')).rejects.toThrow('ECONNREFUSED')
    expect((await readAll((await start({ directory })).client)).length).toBeGreaterThanOrEqual(acknowledged)
    expect(acknowledged).toBeGreaterThan(0)
  })
})
