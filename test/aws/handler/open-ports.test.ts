import { openPorts } from '../../../lib/aws/handler/open-ports.ts'
import { plan } from '../../../lib/plan/plan.ts'
import { bindingsVariable, type StageBindings } from '../../../lib/plan/stage-bindings.ts'
import { rides } from '../../testing/rides.ts'
import { outputs } from '../sink-worlds.ts'

const streamArn = (name: string) => `arn:aws:kinesis:us-east-1:000000000000:stream/${name}`

function open(change: Partial<StageBindings>) {
  const bindings: StageBindings = {
    formatVersion: 1,
    topology: 'rides-app',
    sources: [{ name: 'by-driver', kind: 'kinesis', streamArn: streamArn('by-driver') }],
    sinks: [],
    deadLetters: { kind: 'kinesis', streamName: 'dead' },
    ...change,
  }
  return openPorts(plan(rides().app), { [bindingsVariable]: JSON.stringify(bindings) })
}

const feeds = [{ stage: 'by-city', slots: 64, streamArn: streamArn('by-city') }]

test('a keyed stage has its table, the lineage of its stream, and a publisher and the lineage for what it feeds', async () => {
  const ports = await open({ state: { tableName: 'rides' }, feeds })
  expect(ports.state?.('by-driver')).toBeDefined()
  expect(ports.lineage?.('by-driver')).toBeDefined()
  expect(ports.frames?.('by-city')).toBeDefined()
  expect(ports.lineage?.('by-city')).toBeDefined()
  for (const port of [ports.state?.('by-city'), ports.frames?.('by-driver')]) expect(port).toBeUndefined()
  expect(ports.sourceOf({ kind: 'kinesis', arn: streamArn('by-driver') }, [])).toBe('by-driver')
  expect(ports.checksPurity).toBeUndefined()
})

test('a function that was bound before there were keyed stages has none of that', async () => {
  const ports = await open({})
  expect(ports.state?.('by-driver')).toBeUndefined()
  expect(ports.lineage?.('by-driver')).toBeUndefined()
  expect(ports.frames?.('by-city')).toBeUndefined()
})

test('a queue and the stream of a table are found by their ARNs, and by their kind', async () => {
  const arn = 'arn:aws:sqs:us-east-1:000000000000:rides'
  const ofQueue = await open({ sources: [{ name: 'rides', kind: 'sqs', queueArn: arn }] })
  expect(ofQueue.sourceOf({ kind: 'sqs', arn }, [])).toBe('rides')
  expect(ofQueue.sourceOf({ kind: 'sqs', arn: `${arn}-2` }, [])).toBeUndefined()
  expect(ofQueue.sourceOf({ kind: 'kinesis', arn }, [])).toBeUndefined()
  const stream = 'arn:aws:dynamodb:us-east-1:000000000000:table/rides/stream/2026-01-01T00:00:00.000'
  const ofTable = await open({ sources: [{ name: 'rides', kind: 'dynamodb-stream', streamArn: stream }] })
  expect(ofTable.sourceOf({ kind: 'dynamodb-stream', arn: stream }, [])).toBe('rides')
})

test('a queue cannot be what a stage with progress reads', async () => {
  const sources = [{ name: 'rides', kind: 'sqs', queueArn: 'arn' }] as const
  await expect(open({ sources, state: { tableName: 't' } })).rejects.toThrow('bind it to a Kinesis stream')
})

test('the sinks of SQS, EventBridge and Firehose open, and say where they go', async () => {
  const ports = await open({
    sinks: [
      { name: 'x', kind: 'sqs', queueUrl: 'http://127.0.0.1:1/q.fifo', fifo: true },
      { name: 'y', kind: 'eventbridge', eventBusName: 'bus', source: 'shop', detailType: 'paid' },
      { name: 'z', kind: 'firehose', deliveryStreamName: 'lake', delimiter: '|' },
    ],
  })
  const [output] = outputs([{ n: 1 }], () => 'k')
  expect(ports.sink('x')?.prepare(output as never)).toMatchObject({ entry: { MessageGroupId: 'k' } })
  expect(ports.sink('y')?.prepare(output as never)).toMatchObject({ entry: { EventBusName: 'bus', Source: 'shop' } })
  expect(ports.sink('z')?.prepare(output as never)).toMatchObject({ data: Buffer.from('{"n":1}|') })
})

test.each([
  ['on-demand', false],
  ['provisioned', true],
  [undefined, true],
] as const)(
  'of a Kafka source the mapping reads answers where its pollers are provisioned: %s',
  async (mode, reads) => {
    const ports = await open({ sources: [{ name: 'rides', kind: 'kafka', topic: 'rides', ...(mode && { mode }) }] })
    expect(ports.readsAnswers?.('rides')).toBe(reads)
  },
)

test('a Kafka topic that feeds a keyed stage is refused where nothing says how it is reached', async () => {
  const sources = [{ name: 'rides', kind: 'kafka', topic: 'rides' }] as const
  const opened = open({ state: { tableName: 'rides' }, sources })
  await expect(opened).rejects.toThrow('does not say how topic "rides" is reached')
  // One that feeds only sinks needs no cluster.
  const ports = await open({ sources })
  expect(ports.sourceOf({ kind: 'kafka', arn: undefined, topic: 'rides' }, [])).toBe('rides')
})
