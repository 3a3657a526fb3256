import fc from 'fast-check'
import { sqsRecords } from '../../../lib/aws/events/sqs-records.ts'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { ConfigurationError, RetryableError } from '../../../lib/core/errors.ts'
import { text } from '../../../lib/core/format.ts'
import { outputIdentity } from '../../../lib/core/record.ts'
import { lambdaContext, memoryPorts, messageId, sqsEvent } from '../../../lib/testing/index.ts'
import { Topology } from '../../../lib/topology/topology.ts'
import { rides } from '../../testing/rides.ts'

/** Throws a RetryableError for lines that begin with "later", and something that passes nowhere for "bad". */
function retrying() {
  const app = new Topology('app')
  const out = app.sink<string>('out')
  const source = app.source('lines', text())
  source
    .map((line, record) => {
      if (line.startsWith('later')) throw new RetryableError('later')
      if (line.startsWith('bad')) throw new Error('bad')
      return `${line}${record.header('mark') ?? ''}`
    })
    .to(out)
  const ports = memoryPorts()
  return { ports, handler: streamHandler(app, { ports }), received: () => ports.received(out) }
}

const failures = (...indexes: number[]) => ({
  batchItemFailures: indexes.map((index) => ({ itemIdentifier: messageId(index) })),
})
const recordsOf = (event: ReturnType<typeof sqsEvent>) =>
  sqsRecords(event as never, 'lines').flatMap(({ records }) => [records.at(0) as never as { position: string }])

describe('a standard queue', () => {
  test('a batch that is done is answered by exactly an empty list', async () => {
    const { handler, received } = retrying()
    expect(JSON.stringify(await handler(sqsEvent(['a', 'b']), lambdaContext()))).toBe('{"batchItemFailures":[]}')
    expect(received()).toEqual(['a', 'b'])
  })

  test('the answer names every message that is not done, and none that is: they hold nobody up', async () => {
    const { handler, received } = retrying()
    const answer = await handler(sqsEvent(['a', 'later', 'b', 'later-2', 'c']), lambdaContext())
    expect(answer).toEqual(failures(1, 3))
    expect(received()).toEqual(['a', 'b', 'c'])
  })

  test('a message that never succeeds is a dead letter with its body and coordinates, and is done', async () => {
    const { handler, ports } = retrying()
    expect(await handler(sqsEvent(['bad', 'a']), lambdaContext())).toEqual(failures())
    expect(ports.deadLettered).toEqual([
      expect.objectContaining({
        source: 'lines',
        partition: 'queue/the-only-source',
        payload: Buffer.from('bad').toString('base64'),
        reason: expect.objectContaining({ attempts: 3 }),
      }),
    ])
  })

  test('what was not stepped before the deadline comes again, message by message', async () => {
    const { handler, received } = retrying()
    expect(await handler(sqsEvent(['a', 'b']), lambdaContext({ remainingMs: 0 }))).toEqual(failures(0, 1))
    expect(received()).toEqual([])
  })

  test('an empty event is done', async () => {
    expect(await retrying().handler(sqsEvent([]), lambdaContext())).toEqual(failures())
  })

  test('a thousand messages that go back are told in ten lines of the log, and one', async () => {
    const { handler, ports } = retrying()
    const answer = await handler(sqsEvent(Array.from({ length: 1_000 }, () => 'later')), lambdaContext())
    expect(answer.batchItemFailures).toHaveLength(1_000)
    expect(ports.lines.filter(({ message }) => message.includes('to its source'))).toHaveLength(10)
    expect(ports.lines.find(({ message }) => message.startsWith('more partitions'))?.fields).toEqual({ count: 990 })
  })

  test('message attributes are headers, the time of sending is the time of arrival', async () => {
    const { handler, received } = retrying()
    await handler(sqsEvent(['a'], { attributes: { mark: '!' } }), lambdaContext())
    expect(received()).toEqual(['a!'])
    const [batch] = sqsRecords(sqsEvent(['a'], { sentAtMs: () => 1_000 }) as never, 'lines')
    expect(batch?.records.at(0)).toMatchObject({ arrivalTimeMs: 1_000, key: undefined })
  })

  test('a message has the same position whenever it comes, and positions go by the time of sending', () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.uuid(),
        fc.integer({ min: 0, max: 1e13 }),
        fc.integer({ min: 1, max: 1e6 }),
        (a, b, atMs, later) => {
          const at = (id: string, sentAtMs: number, receives: string) => {
            const event = sqsEvent(['x'], { sentAtMs: () => sentAtMs })
            const row = event.Records[0] as NonNullable<(typeof event.Records)[0]>
            row.messageId = id
            row.attributes.ApproximateReceiveCount = receives
            return recordsOf(event)[0]?.position as string
          }
          expect(at(a, atMs, '1')).toBe(at(a, atMs, '7'))
          expect(BigInt(at(a, atMs, '1'))).toBeLessThan(BigInt(at(b, atMs + later, '1')))
          expect(at(a, atMs, '1') === at(b, atMs, '1')).toBe(a === b)
        },
      ),
    )
  })

  test('two messages with one body have outputs of two identities', () => {
    const identities = sqsRecords(sqsEvent(['a', 'a']) as never, 'lines').map(({ records }) =>
      outputIdentity(records.at(0) as never, 0),
    )
    expect(new Set(identities).size).toBe(2)
  })
})

describe('a FIFO queue', () => {
  const group = (index: number) => ['x', 'y'][index % 2] as string

  test('a group ends at its first failure, and all behind it goes back; the other groups go on', async () => {
    const { handler, received } = retrying()
    const answer = await handler(sqsEvent(['x1', 'y1', 'later', 'y2', 'x3', 'y3'], { group }), lambdaContext())
    expect(answer).toEqual(failures(2, 4))
    expect(received()).toEqual(['x1', 'y1', 'y2', 'y3'])
  })

  test('the group is the key, its hash the partition, and the sequence number the position', () => {
    const [batch] = sqsRecords(sqsEvent(['a'], { group: () => 'customer-7' }) as never, 'lines')
    expect(batch?.records.at(0)).toMatchObject({ key: 'customer-7', position: '18849496460467696128' })
    expect(batch?.partition).toMatch(/^queue\/the-only-source\.fifo\/[0-9a-f]{32}$/)
  })
})

describe('what Lambda does not send', () => {
  test.each([
    ['no messageId', { messageId: '' }],
    ['no body', { body: undefined }],
    ['no time', { attributes: {} }],
    ['a time that is none', { attributes: { SentTimestamp: 'now' } }],
  ])('%s rejects, so that everything comes again', async (_, change) => {
    const event = sqsEvent(['a'])
    Object.assign(event.Records[0] as object, change)
    await expect(retrying().handler(event, lambdaContext())).rejects.toMatchObject({ code: 'malformed-event' })
  })

  test('a FIFO queue without sequence numbers rejects', async () => {
    const event = sqsEvent(['a'], { group: () => 'g' })
    delete event.Records[0]?.attributes.SequenceNumber
    await expect(retrying().handler(event, lambdaContext())).rejects.toMatchObject({ code: 'malformed-event' })
  })

  test('a queue whose source feeds a keyed stage is refused with the remedy', async () => {
    const { app, source } = rides()
    const handler = streamHandler(app, { ports: memoryPorts() })
    const refused = handler(sqsEvent([{}], { source }), lambdaContext())
    await expect(refused).rejects.toThrow(ConfigurationError)
    await expect(refused).rejects.toThrow(/feeds a keyed stage.*bind it to a Kinesis stream/)
  })
})

test('the identity of an output that a queue carries is a header of the message', async () => {
  const app = new Topology('app')
  const out = app.sink<string | undefined>('out')
  app
    .source('lines', text())
    .map((_, record) => record.header('millrace-output'))
    .to(out)
  const ports = memoryPorts()
  const attributes = { 'millrace-output': 'shop/paid/orders/shardId-000000000000/7/0/0' }
  await streamHandler(app, { ports })(sqsEvent(['a'], { attributes }), lambdaContext())
  expect(ports.received(out)).toEqual([attributes['millrace-output']])
})
