import fc from 'fast-check'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { type BoundName, checkBindings } from '../../lib/plan/bindings.ts'
import { type Plan, plan } from '../../lib/plan/plan.ts'
import { adapterSwitches, adaptersOf, type StageBindings } from '../../lib/plan/stage-bindings.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { rides } from '../testing/rides.ts'

/** Sources a, b, c that each write to the sink x, y, z below them. */
function threeLines(): Plan {
  const app = new Topology('app')
  for (const [source, sink] of [
    ['a', 'x'],
    ['b', 'y'],
    ['c', 'z'],
  ] as const) {
    app.source(source, text()).to(app.sink<string>(sink))
  }
  return plan(app)
}

const bound = (resources: Readonly<Record<string, string>>): BoundName[] =>
  Object.entries(resources).map(([name, resource]) => ({ name, resource }))
const sources = bound({ a: 's1', b: 's2', c: 's3' })
const sinks = bound({ x: 's4', y: 's5', z: 's6' })

test('bindings that bind everything once are taken, two sinks on one resource included', () => {
  expect(() => checkBindings(threeLines(), sources, sinks)).not.toThrow()
  expect(() => checkBindings(threeLines(), sources, bound({ x: 's4', y: 's4', z: 's4' }))).not.toThrow()
  expect(() => checkBindings(threeLines(), sources, bound({ x: 's2', y: 's3', z: 's4' }))).not.toThrow()
})

test.each<[string, readonly BoundName[], readonly BoundName[], string]>([
  [
    'sources that are not bound',
    sources.slice(0, 1),
    sinks,
    'source "b", "c" of topology "app" is not bound: add bind(source, ...) for it.',
  ],
  [
    'a sink that is not bound',
    sources,
    sinks.slice(1),
    'sink "x" of topology "app" is not bound: add bind(sink, ...) for it.',
  ],
  [
    'an unknown source',
    [...sources, ...bound({ q: 's9' })],
    sinks,
    '"q" is bound but topology "app" declares no such source: it has "a", "b", "c".',
  ],
  [
    'a sink bound as a source',
    [...sources, ...bound({ x: 's9' })],
    sinks,
    '"x" is bound but topology "app" declares no such source',
  ],
  [
    'a sink bound twice',
    sources,
    [...sinks, ...bound({ x: 's9' })],
    'sink "x" of topology "app" is bound twice: keep one binding.',
  ],
  ['a source bound twice', [...sources, ...bound({ a: 's9' })], sinks, 'source "a" of topology "app" is bound twice'],
  [
    'two sources on one resource',
    bound({ a: 's1', b: 's2', c: 's1' }),
    sinks,
    'sources "a" and "c" of topology "app" are bound to one resource (s1): declare one source and branch it.',
  ],
  [
    'a circle of one',
    sources,
    bound({ x: 's1', y: 's5', z: 's6' }),
    'topology "app" is cyclic: source "a" > sink "x" > source "a", because that sink and that source are one resource: bind the sink to another.',
  ],
  [
    'a circle of two',
    sources,
    bound({ x: 's2', y: 's1', z: 's6' }),
    'source "a" > sink "x" > source "b" > sink "y" > source "a"',
  ],
  [
    'a circle that another stage leads into',
    sources,
    bound({ x: 's2', y: 's3', z: 's2' }),
    'source "b" > sink "y" > source "c" > sink "z" > source "b"',
  ],
])('%s is refused', (_what, boundSources, boundSinks, message) => {
  expect(() => checkBindings(threeLines(), boundSources, boundSinks)).toThrow(ConfigurationError)
  expect(() => checkBindings(threeLines(), boundSources, boundSinks)).toThrow(message)
})

test('a circle through keyed stages is refused, whatever stage feeds which', () => {
  const app = new Topology('app')
  app
    .source('a', text())
    .keyBy('first', (line) => line)
    .reduce('longest', (line) => line, { emit: 'per-batch' })
    .keyBy('second', (line) => line)
    .reduce('shortest', (line) => line, { emit: 'per-batch' })
    .to(app.sink<string>('x'))
  const planned = plan(app)
  expect(() => checkBindings(planned, bound({ a: 's1' }), bound({ x: 's2' }))).not.toThrow()
  expect(() => checkBindings(planned, bound({ a: 's1' }), bound({ x: 's1' }))).toThrow(
    'topology "app" is cyclic: source "a" > sink "x" > source "a"',
  )
})

test('a circle is refused exactly where following sinks comes back', () => {
  const planned = threeLines()
  const target = fc.constantFrom('s1', 's2', 's3', 's4')
  fc.assert(
    fc.property(target, target, target, (x, y, z) => {
      const next: Readonly<Record<string, string>> = { s1: x, s2: y, s3: z }
      const returns = Object.keys(next).some((start) => {
        let at: string | undefined = start
        for (let step = 0; step < 3 && at; step++) {
          at = next[at]
          if (at === start) return true
        }
        return false
      })
      const check = () => checkBindings(planned, sources, bound({ x, y, z }))
      if (returns) expect(check).toThrow('is cyclic')
      else expect(check).not.toThrow()
    }),
  )
})

test('a source without partitions is refused where it feeds a keyed stage, and taken where it feeds sinks', () => {
  const without = { resource: 's1', feedsNoKeyedStage: 'it is a queue: bind a stream' }
  expect(() => checkBindings(threeLines(), [{ name: 'a', ...without }, ...sources.slice(1)], sinks)).not.toThrow()
  const bind = () =>
    checkBindings(plan(rides().app), [{ name: 'rides', ...without }], bound({ drivers: 's2', cities: 's3' }))
  expect(bind).toThrow(ConfigurationError)
  expect(bind).toThrow('source "rides" feeds the keyed stage "by-driver", and cannot: it is a queue: bind a stream.')
})

test('the adapters of the sinks of other services are those of their kinds', () => {
  const bindings: StageBindings = {
    formatVersion: 1,
    topology: 'app',
    sources: [{ name: 'a', kind: 'sqs', queueArn: 'arn' }],
    sinks: [
      { name: 'x', kind: 'sqs', queueUrl: 'q', fifo: false },
      { name: 'y', kind: 'eventbridge', eventBusName: 'b', source: 's', detailType: 'd' },
      { name: 'z', kind: 'firehose', deliveryStreamName: 'f', delimiter: '' },
    ],
    deadLetters: { kind: 's3', bucket: 'b' },
  }
  const expected = ['sqs-sink', 'eventbridge-sink', 'firehose-sink', 'dead-letters-s3', 'events-sqs']
  expect([...adaptersOf(bindings)]).toEqual(expected)
})

test('a bundle needs the adapters of what is bound, and no other', () => {
  const bindings: StageBindings = {
    formatVersion: 1,
    topology: 'app',
    sources: [{ name: 'a', kind: 'kinesis', streamArn: 'arn' }],
    sinks: [
      { name: 'x', kind: 'kinesis', streamName: 's', ordering: 'per-key' },
      { name: 'y', kind: 'custom' },
    ],
    deadLetters: { kind: 'sqs', queueUrl: 'q' },
  }
  expect([...adaptersOf(bindings)]).toEqual(['kinesis-sink', 'dead-letters-sqs'])
  const feeding: StageBindings = {
    ...bindings,
    state: { tableName: 't' },
    feeds: [{ stage: 'by-line', slots: 4, streamName: 's' }],
  }
  expect(adaptersOf(feeding)).toEqual(
    new Set([...adaptersOf(bindings), 'state-dynamodb', 'frames-kinesis', 'lineage-kinesis']),
  )
  expect([...adaptersOf({ formatVersion: 1, topology: 'app', announces: [] })]).toEqual(['announcer-kinesis'])
  const offloading: StageBindings = {
    ...bindings,
    sinks: [],
    deadLetters: { kind: 'kinesis', streamName: 's', offloadBucket: 'b' },
  }
  expect([...adaptersOf(offloading)]).toEqual(['dead-letters-kinesis', 'dead-letters-s3'])
  expect(adapterSwitches(offloading)).toEqual({
    'process.env.MILLRACE_ADAPTER_EVENTS_KAFKA': '"false"',
    'process.env.MILLRACE_ADAPTER_EVENTS_DYNAMODB_STREAM': '"false"',
    'process.env.MILLRACE_ADAPTER_EVENTS_SQS': '"false"',
    'process.env.MILLRACE_ADAPTER_KINESIS_SINK': '"false"',
    'process.env.MILLRACE_ADAPTER_DYNAMODB_SINK': '"false"',
    'process.env.MILLRACE_ADAPTER_SQS_SINK': '"false"',
    'process.env.MILLRACE_ADAPTER_EVENTBRIDGE_SINK': '"false"',
    'process.env.MILLRACE_ADAPTER_FIREHOSE_SINK': '"false"',
    'process.env.MILLRACE_ADAPTER_KAFKA_SINK': '"false"',
    'process.env.MILLRACE_ADAPTER_FRAMES_KAFKA': '"false"',
    'process.env.MILLRACE_ADAPTER_LINEAGE_KAFKA': '"false"',
    'process.env.MILLRACE_ADAPTER_ANNOUNCER_KAFKA': '"false"',
    'process.env.MILLRACE_ADAPTER_DEAD_LETTERS_KAFKA': '"false"',
    'process.env.MILLRACE_ADAPTER_STATE_DYNAMODB': '"false"',
    'process.env.MILLRACE_ADAPTER_FRAMES_KINESIS': '"false"',
    'process.env.MILLRACE_ADAPTER_LINEAGE_KINESIS': '"false"',
    'process.env.MILLRACE_ADAPTER_ANNOUNCER_KINESIS': '"false"',
    'process.env.MILLRACE_ADAPTER_DEAD_LETTERS_SQS': '"false"',
  })
})

test('what is bound to Kafka needs the adapters of Kafka', () => {
  const cluster = { brokers: ['b-1:9098'], auth: { kind: 'iam', region: 'eu-west-1' }, tls: true } as const
  const stateless: StageBindings = {
    formatVersion: 1,
    topology: 'app',
    sources: [{ name: 'a', kind: 'kafka', topic: 'a', mode: 'provisioned' }],
    sinks: [{ name: 'x', kind: 'kafka', topic: 'x', cluster }],
    deadLetters: { kind: 'kafka', topic: 'dead', cluster },
  }
  expect([...adaptersOf(stateless)]).toEqual(['kafka-sink', 'dead-letters-kafka', 'events-kafka'])
  const feeding: StageBindings = {
    ...stateless,
    state: { tableName: 't' },
    feeds: [{ stage: 'by-line', slots: 4, topic: 'by-line', partitions: 4, cluster }],
  }
  expect(adaptersOf(feeding)).toEqual(
    new Set([...adaptersOf(stateless), 'state-dynamodb', 'frames-kafka', 'lineage-kafka']),
  )
  const announces = [{ stage: 'by-line', state: { tableName: 't' }, topic: 'by-line', partitions: 4, cluster }]
  expect([...adaptersOf({ formatVersion: 1, topology: 'app', announces })]).toEqual([
    'announcer-kinesis',
    'announcer-kafka',
  ])
})
