import type { PutObjectCommandOutput } from '@aws-sdk/client-s3'
import { z } from 'zod'
import type { DeadLetterEntry } from '../../lib/aws/dead-letters/entry.ts'
import { kinesisDeadLetters } from '../../lib/aws/dead-letters/kinesis.ts'
import { s3Offload } from '../../lib/aws/dead-letters/s3.ts'
import { kafkaRecords } from '../../lib/aws/events/kafka-records.ts'
import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { lambdaContext } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { StubStream, testPorts } from '../aws/sink-worlds.ts'

const row = { offset: 12, timestamp: 1671562498449, key: '/v8=', value: 'eyJ2Ijo=', headers: [{ h: [104, -61, -85] }] }
const eventOf = (...rows: object[]) => ({ eventSource: 'aws:kafka', records: { 'orders-3': rows } }) as never

function handlerWith(deadLetters: ReturnType<typeof kinesisDeadLetters>) {
  const app = new Topology('original-bytes')
  app.source('orders', z.object({ v: z.number() })).to(app.sink('out'))
  return streamHandler(app, { ports: { ...memoryPorts(), deadLetters: deadLetters as never } })
}

const parse = (text: string | undefined): DeadLetterEntry => JSON.parse(String(text)) as DeadLetterEntry

describe('C16 Original bytes', () => {
  test('the entry holds both byte strings, coordinates, timestamp, headers and the error, and can be replayed', async () => {
    const stream = new StubStream()
    const handler = handlerWith(kinesisDeadLetters({ client: stream, streamName: 'failed', ...testPorts() }))
    expect(await handler(eventOf(row), lambdaContext())).toEqual({ batchItemFailures: [] })
    const entry = parse(stream.texts[0])
    expect(entry).toMatchObject({
      source: 'orders',
      partition: 'orders-3',
      position: '12',
      arrivalTimeMs: 1671562498449,
      key: '/v8=',
      payload: 'eyJ2Ijo=',
      headers: [{ name: 'h', value: Buffer.from('hë').toString('base64') }],
      reason: { code: 'not-json', phase: 'decode', attempts: 1 },
    })

    const replayed = {
      offset: Number(entry.position),
      timestamp: entry.arrivalTimeMs,
      key: entry.key,
      value: entry.payload,
      headers: entry.headers.map(({ name, value }) => ({ [name]: [...Buffer.from(value, 'base64')] })),
    }
    const bytesOf = (event: never) =>
      kafkaRecords(event, () => 'orders')[0]?.records.map((record) => ({
        key: record.keyBytes,
        payload: record.payload,
        headers: record.headers,
        arrivalTimeMs: record.arrivalTimeMs,
      }))
    expect(bytesOf(eventOf(replayed))).toEqual(bytesOf(eventOf(row)))
  })

  const poison = { ...row, value: Buffer.alloc(1_200_000, '{').toString('base64') }

  test('a poison payload above the limit of the transport is pointed to at its source: no retry, no silent drop', async () => {
    const stream = new StubStream()
    const handler = handlerWith(kinesisDeadLetters({ client: stream, streamName: 'failed', ...testPorts() }))
    const next = { ...row, offset: 13 }
    expect(await handler(eventOf(poison, next), lambdaContext())).toEqual({ batchItemFailures: [] })
    expect(stream.texts.map(parse)).toMatchObject([
      { position: '12', payload: null, omitted: { bytes: expect.any(Number) }, reason: { code: 'not-json' } },
      { position: '13', payload: row.value },
    ])
  })

  test('with a bucket it is offloaded whole', async () => {
    const stream = new StubStream()
    const bodies = new Map<string, string>()
    const client = {
      async send({ input }: { input: { Key?: string; Body?: unknown } }): Promise<PutObjectCommandOutput> {
        bodies.set(String(input.Key), String(input.Body))
        return { $metadata: {} }
      },
    }
    const offload = s3Offload({ client: client as never, bucket: 'large' })
    const handler = handlerWith(kinesisDeadLetters({ client: stream, streamName: 'failed', offload, ...testPorts() }))
    expect(await handler(eventOf(poison), lambdaContext())).toEqual({ batchItemFailures: [] })
    const { offloaded, payload } = parse(stream.texts[0])
    expect([payload, offloaded?.bucket]).toEqual([null, 'large'])
    expect(parse(bodies.get(String(offloaded?.key)))).toMatchObject({ key: row.key, payload: poison.value })
  })
})
