import type { PutObjectCommand, PutObjectCommandOutput } from '@aws-sdk/client-s3'
import type { SendMessageBatchCommand, SendMessageBatchCommandOutput } from '@aws-sdk/client-sqs'
import { type DeadLetterEntry, deadLetterObjectKey, fitEntry } from '../../../lib/aws/dead-letters/entry.ts'
import { kinesisDeadLetters } from '../../../lib/aws/dead-letters/kinesis.ts'
import { s3DeadLetters, s3Offload } from '../../../lib/aws/dead-letters/s3.ts'
import { sqsDeadLetters } from '../../../lib/aws/dead-letters/sqs.ts'
import { SourceRecord } from '../../../lib/core/record.ts'
import { type DeadLetter, deadLetterOf } from '../../../lib/runtime/dead-letter.ts'
import type { Sink } from '../../../lib/runtime/sink.ts'
import { awsError, never, outputs, StubStream, testPorts } from '../sink-worlds.ts'

const limitBytes = 1_048_576

function letter(payload: Uint8Array, changes: { position?: string; message?: string } = {}): DeadLetter {
  const { position = '7', message = 'no' } = changes
  const record = new SourceRecord({
    source: 'orders',
    partition: 't_x-0',
    position,
    arrivalTimeMs: 5,
    key: 'k',
    payload,
  })
  const failedAtMs = Date.UTC(2026, 0, 31, 23, 59)
  return deadLetterOf(
    record,
    { error: new Error(message), phase: 'step', attempts: 3 },
    {
      topology: 'bookings',
      stage: 'main',
      failedAtMs,
    },
  )
}

class StubBucket {
  readonly objects = new Map<string, string>()
  fail: (key: string) => void = () => undefined

  async send({ input }: PutObjectCommand): Promise<PutObjectCommandOutput> {
    this.fail(String(input.Key))
    this.objects.set(`${input.Bucket}/${input.Key}`, Buffer.from(input.Body as Uint8Array).toString())
    return { $metadata: {} }
  }
}

class StubQueue {
  readonly bodies: string[] = []
  readonly requestBytes: number[] = []
  readonly requestSizes: number[] = []
  refuse: (body: string) => { Code: string; SenderFault: boolean } | undefined = () => undefined

  async send({ input }: SendMessageBatchCommand): Promise<SendMessageBatchCommandOutput> {
    const entries = input.Entries ?? []
    this.requestSizes.push(entries.length)
    this.requestBytes.push(entries.reduce((sum, { MessageBody }) => sum + Buffer.byteLength(MessageBody ?? ''), 0))
    const Successful: SendMessageBatchCommandOutput['Successful'] = []
    const Failed: SendMessageBatchCommandOutput['Failed'] = []
    for (const { Id, MessageBody = '' } of entries) {
      const refusal = this.refuse(MessageBody)
      if (refusal) Failed.push({ Id, ...refusal })
      else {
        this.bodies.push(MessageBody)
        Successful.push({ Id, MessageId: Id, MD5OfMessageBody: '' })
      }
    }
    return { $metadata: {}, Successful, Failed }
  }
}

const deliver = <Item>(sink: Sink<DeadLetter, Item>, letters: readonly DeadLetter[]) =>
  sink.deliver(
    outputs(letters).map((output) => sink.prepare(output)),
    { signal: never() },
  )
const parse = (text: string | undefined): DeadLetterEntry => JSON.parse(String(text)) as DeadLetterEntry

const queueUrl = 'https://sqs.eu-central-1.amazonaws.com/000000000000/failed'
const large = Buffer.alloc(1_500_000, 1)

describe('fitEntry', () => {
  test('an entry that fits is whole', () => {
    expect(parse(fitEntry(letter(Buffer.from('{')), limitBytes, 'bucket').text)).toEqual(letter(Buffer.from('{')))
  })

  test('one byte decides', () => {
    const small = letter(Buffer.from('abc'))
    const bytes = Buffer.byteLength(JSON.stringify(small))
    expect(parse(fitEntry(small, bytes, undefined).text).omitted).toBeUndefined()
    expect(parse(fitEntry(small, bytes - 1, undefined).text).omitted).toBeDefined()
  })

  test('without a bucket says how much it left out and why, and keeps coordinates and reason', () => {
    const { text, object } = fitEntry(letter(large), limitBytes, undefined)
    expect(object).toBeUndefined()
    expect(parse(text)).toMatchObject({
      source: 'orders',
      partition: 't_x-0',
      position: '7',
      payload: null,
      reason: { message: 'no', attempts: 3 },
      omitted: { bytes: expect.any(Number), because: expect.stringContaining('bucket') },
    })
    expect(parse(text).omitted?.bytes).toBe(2_000_000)
  })

  test('without a bucket keeps the record of an output that a sink refused as too large, and leaves out the output', () => {
    const output = { sink: 'alerts', index: 0, value: large.toString('base64') }
    const { text } = fitEntry({ ...letter(Buffer.from('{}')), output }, limitBytes, undefined)
    expect(parse(text)).toEqual({ ...letter(Buffer.from('{}')), output: { ...output, value: null } })
    const both = fitEntry({ ...letter(large), output }, limitBytes, undefined)
    expect(parse(both.text)).toMatchObject({ payload: null, output: { value: null }, omitted: {} })
    const offloaded = fitEntry({ ...letter(Buffer.from('{}')), output }, limitBytes, 'bucket')
    expect(parse(offloaded.text)).toMatchObject({ output: { sink: 'alerts', value: null }, offloaded: {} })
    expect(parse(offloaded.object?.text ?? '')).toMatchObject({ output })
  })

  test('fits also where headers, key and message are what is large', () => {
    const record = new SourceRecord({
      source: 'orders',
      partition: 'p',
      position: '1',
      arrivalTimeMs: 0,
      key: Buffer.alloc(600_000),
      payload: null,
      headers: [{ name: 'h', value: Buffer.alloc(900_000) }],
    })
    const error = Object.assign(new Error('\u0001'.repeat(3_000_000)), { name: 'x'.repeat(100_000) })
    const where = { topology: 't', stage: 's', failedAtMs: 0 }
    const { text } = fitEntry(deadLetterOf(record, { error, phase: 'step', attempts: 1 }, where), limitBytes, undefined)
    expect(Buffer.byteLength(text)).toBeLessThan(50_000)
  })
})

describe('deadLetterObjectKey', () => {
  test('is the day of the failure and the id in safe characters', () => {
    expect(deadLetterObjectKey(letter(large))).toBe('dead-letters/bookings/main/2026/01/31/orders!t_x-0!7!0.json')
  })

  test('different ids never share a key', () => {
    const ids = ['a/b', 'a!b', 'a~b', 'a%b', 'a~21~b', 'ä', 'a b', '..']
    const keys = ids.map((id) => deadLetterObjectKey({ ...letter(large), id }))
    expect(new Set(keys).size).toBe(ids.length)
    for (const key of keys) expect(key).toMatch(/^[A-Za-z0-9._~!/-]+$/)
  })
})

describe('kinesisDeadLetters', () => {
  test('writes whole entries', async () => {
    const stream = new StubStream()
    const sink = kinesisDeadLetters({ client: stream, streamName: 'failed', ...testPorts() })
    const letters = ['1', '2', '3'].map((position) => letter(Buffer.from('{'), { position }))
    expect(await deliver(sink, letters)).toEqual(Array(3).fill({ status: 'delivered' }))
    expect(stream.texts.map(parse)).toEqual(letters)
    expect(stream.requests).toHaveLength(1)
  })

  test('an entry above 1 MiB goes to the bucket whole, and to the stream as a pointer', async () => {
    const [stream, client] = [new StubStream(), new StubBucket()]
    const offload = s3Offload({ client, bucket: 'large' })
    const sink = kinesisDeadLetters({ client: stream, streamName: 'failed', offload, ...testPorts() })
    await deliver(sink, [letter(large)])
    const key = 'dead-letters/bookings/main/2026/01/31/orders!t_x-0!7!0.json'
    expect(parse(client.objects.get(`large/${key}`))).toEqual(letter(large))
    expect(parse(stream.texts[0])).toMatchObject({ payload: null, offloaded: { bucket: 'large', key } })
    expect(stream.stored[0]?.Data.byteLength).toBeLessThan(2_000)
  })

  test('an entry of just the limit is taken with its partition key', async () => {
    const stream = new StubStream()
    const sink = kinesisDeadLetters({ client: stream, streamName: 'failed', ...testPorts() })
    // Three bytes more are four characters more.
    const around = Buffer.byteLength(JSON.stringify(letter(Buffer.alloc(0))))
    const size = 3 * Math.floor((limitBytes - 64 - around) / 4)
    await deliver(sink, [letter(Buffer.alloc(size)), letter(Buffer.alloc(size + 3))])
    expect(stream.texts.map((text) => parse(text).omitted !== undefined)).toEqual([false, true])
    for (const { Data, PartitionKey } of stream.stored) {
      expect(Data.byteLength + Buffer.byteLength(PartitionKey)).toBeLessThanOrEqual(limitBytes)
    }
  })

  test('no pointer is sent to an object that is not stored; neighbours go on', async () => {
    const [stream, client] = [new StubStream(), new StubBucket()]
    client.fail = () => {
      throw awsError('AccessDenied', { $metadata: { httpStatusCode: 403 } })
    }
    const offload = s3Offload({ client, bucket: 'large' })
    const sink = kinesisDeadLetters({ client: stream, streamName: 'failed', offload, ...testPorts() })
    const outcomes = await deliver(sink, [letter(large), letter(Buffer.from('{'), { position: '8' })])
    expect(outcomes).toMatchObject([
      { status: 'retry', error: { message: expect.stringContaining('bucket "large"') } },
      { status: 'delivered' },
    ])
    expect(stream.texts.map((text) => parse(text).position)).toEqual(['8'])
  })
})

describe('sqsDeadLetters', () => {
  test('sends ten messages and at most 1 MiB per request', async () => {
    const queue = new StubQueue()
    const sink = sqsDeadLetters({ client: queue, queueUrl, ...testPorts() })
    const letters = Array.from({ length: 25 }, (_, i) =>
      letter(Buffer.alloc(i < 4 ? 400_000 : 10), { position: `${i}` }),
    )
    expect(await deliver(sink, letters)).toEqual(Array(25).fill({ status: 'delivered' }))
    expect(queue.bodies.map(parse)).toEqual(expect.arrayContaining(letters))
    expect(Math.max(...queue.requestBytes)).toBeLessThanOrEqual(limitBytes)
    expect(Math.max(...queue.requestSizes)).toBe(10)
  })

  test('what fails at SQS is sent again; what is our fault goes back with a clear error', async () => {
    const queue = new StubQueue()
    let failures = 1
    queue.refuse = (body) => {
      const { position } = parse(body)
      if (position === '1' && failures-- > 0) return { Code: 'InternalError', SenderFault: false }
      return position === '2' ? { Code: 'InvalidMessageContents', SenderFault: true } : undefined
    }
    const sink = sqsDeadLetters({ client: queue, queueUrl, ...testPorts() })
    const outcomes = await deliver(
      sink,
      ['0', '1', '2'].map((position) => letter(Buffer.from('{'), { position })),
    )
    expect(outcomes.map(({ status }) => status)).toEqual(['delivered', 'delivered', 'retry'])
    expect(outcomes[2]).toMatchObject({ error: { message: expect.stringContaining('InvalidMessageContents') } })
  })

  test('the body holds only characters that SQS takes', async () => {
    const queue = new StubQueue()
    const message = 'a\u0000b\uffff\ufffe\ud800'
    await deliver(sqsDeadLetters({ client: queue, queueUrl, ...testPorts() }), [letter(Buffer.from('{'), { message })])
    expect(queue.bodies[0]).not.toMatch(/[\ufffe\uffff]|\p{Cc}|\p{Surrogate}/u)
    expect(parse(queue.bodies[0]).reason.message).toBe(message)
  })

  test('a FIFO queue is refused', () => {
    const options = { client: new StubQueue(), queueUrl: `${queueUrl}.fifo`, ...testPorts() }
    expect(() => sqsDeadLetters(options)).toThrow(expect.objectContaining({ name: 'ConfigurationError' }))
  })
})

describe('s3DeadLetters', () => {
  test('writes one object per dead letter, whatever its size; a repeated one replaces itself', async () => {
    const client = new StubBucket()
    const sink = s3DeadLetters({ client, bucket: 'failed', ...testPorts() })
    const letters = [letter(large, { position: '1' }), letter(Buffer.from('{'), { position: '2' })]
    await deliver(sink, letters)
    await deliver(sink, letters)
    expect([...client.objects.values()].map(parse)).toEqual(letters)
  })

  test('a throttle is retried', async () => {
    const client = new StubBucket()
    let throttles = 2
    client.fail = () => {
      if (throttles-- > 0) throw awsError('SlowDown', { $metadata: { httpStatusCode: 503 } })
    }
    const outcomes = await deliver(s3DeadLetters({ client, bucket: 'failed', ...testPorts() }), [letter(large)])
    expect(outcomes).toEqual([{ status: 'delivered' }])
    expect(client.objects.size).toBe(1)
  })
})
