/**
 * What functions are granted, compared with what the adapters in their bundles call: the commands of the AWS SDK that the files of
 * `lib/aws` make. A call that is added there and not granted shows here, and so does a grant that nothing uses.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { AttributeType, TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import { EventBus } from 'aws-cdk-lib/aws-events'
import { DeliveryStream } from 'aws-cdk-lib/aws-kinesisfirehose'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { Bucket } from 'aws-cdk-lib/aws-s3'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import {
  bind,
  DeadLetters,
  DynamoDbTableSink,
  EventBridgeSink,
  FirehoseSink,
  KinesisSink,
  KinesisSource,
  SqsSink,
  StreamApplication,
} from '../../lib/cdk/index.ts'
import { Topology, text } from '../../lib/index.ts'
import { type Adapter, adapters, adaptersOf } from '../../lib/plan/stage-bindings.ts'
import { bindingsOfFunction, entry, grantsOfRole, newStack, newStream } from './world.ts'

/** Where each adapter begins. */
const files: Readonly<Record<Adapter, string>> = {
  'events-kafka': 'events/kafka-records',
  'events-dynamodb-stream': 'events/dynamodb-stream-records',
  'events-sqs': 'events/sqs-records',
  'kinesis-sink': 'sinks/kinesis',
  'dynamodb-sink': 'sinks/dynamodb-table',
  'sqs-sink': 'sinks/sqs',
  'eventbridge-sink': 'sinks/eventbridge',
  'firehose-sink': 'sinks/firehose',
  'kafka-sink': 'kafka/open-kafka',
  'dead-letters-kinesis': 'dead-letters/kinesis',
  'dead-letters-sqs': 'dead-letters/sqs',
  'dead-letters-s3': 'dead-letters/s3',
  'dead-letters-kafka': 'kafka/open-kafka',
  'state-dynamodb': 'state-table/store',
  'frames-kinesis': 'kinesis/frame-publisher',
  'frames-kafka': 'kafka/open-kafka',
  'lineage-kinesis': 'kinesis/lineage',
  'lineage-kafka': 'kafka/open-kafka',
  'announcer-kinesis': 'handler/announcer-function',
  'announcer-kafka': 'kafka/open-kafka',
}

/** What IAM asks for a call, where it is not an action of the call's own name. */
const actionsOfCall: Readonly<Record<string, readonly string[]>> = {
  'dynamodb:TransactWriteItems': ['dynamodb:PutItem'],
  'dynamodb:BatchWriteItem': ['dynamodb:BatchWriteItem', 'dynamodb:DeleteItem', 'dynamodb:PutItem'],
  'sqs:SendMessageBatch': ['sqs:SendMessage'],
  'eventbridge:PutEvents': ['events:PutEvents'],
  'secrets-manager:GetSecretValue': ['secretsmanager:GetSecretValue'],
}

/** The actions of the calls that a file and what it imports of `lib/aws` make. Dynamic imports are adapters of their own, and types make none. */
function actionsOf(file: string, seen = new Set<string>()): string[] {
  if (seen.has(file) || !existsSync(file)) return []
  seen.add(file)
  const code = readFileSync(file, 'utf8')
  const services = new Map<string, string>()
  for (const [, names = '', service = ''] of code.matchAll(/import \{([^}]*)\} from '@aws-sdk\/client-([a-z0-9-]+)'/g))
    for (const name of names.split(',')) services.set(name.trim(), service)
  const calls = [...code.matchAll(/\bnew (\w+)Command\(/g)].map(
    ([, call]) => `${services.get(`${call}Command`)}:${call}`,
  )
  const imported = [...code.matchAll(/^(?:import|export) (?!type )[^']*?from '(\.\.?\/[^']+)'/gm)].map(
    ([, path = '']) => join(dirname(file), path),
  )
  return [
    ...calls.flatMap((call) => actionsOfCall[call] ?? [call]),
    ...imported.flatMap((path) => actionsOf(path, seen)),
  ]
}

const calledBy = (adapter: Adapter) => actionsOf(join(__dirname, '../../lib/aws', `${files[adapter]}.ts`))

const sorted = (actions: Iterable<string>) => [...new Set(actions)].sort()

/** What Lambda itself does in the function's name: it polls the stream, and writes the logs. */
const lambdaDoes = ['DescribeStream', 'DescribeStreamSummary', 'GetRecords', 'GetShardIterator', 'ListShards']
  .map((action) => `kinesis:${action}`)
  .concat('logs:CreateLogStream', 'logs:PutLogEvents')

/** A source feeds a keyed stage that writes to every kind of sink; another only passes on. */
function everythingIn(deadLetters: 'queue' | 'stream' | 'bucket') {
  const stack = newStack()
  const app = new Topology('everything')
  const lines = app.source('lines', text())
  const others = app.source('others', text())
  const sinks = {
    stream: app.sink<string>('stream'),
    table: app.sink<{ id: string }>('table'),
    queue: app.sink<string>('queue'),
    bus: app.sink<{ id: string }>('bus'),
    lake: app.sink<string>('lake'),
  }
  const last = lines.keyBy('by-line', (line) => line).reduce('last', (_, line) => line, { emit: 'on-update' })
  for (const sink of [sinks.stream, sinks.queue, sinks.lake]) last.to(sink)
  for (const sink of [sinks.table, sinks.bus]) last.map((id) => ({ id })).to(sink)
  others.to(sinks.stream)
  const table = new TableV2(stack, 'Rows', { partitionKey: { name: 'id', type: AttributeType.STRING } })
  const delivery = 'arn:aws:firehose:eu-west-1:111122223333:deliverystream/lake'
  const application = new StreamApplication(stack, 'Everything', {
    topology: app,
    entry,
    bind: [
      bind(lines, new KinesisSource(newStream(stack, 'Lines'))),
      bind(others, new KinesisSource(newStream(stack, 'Others'))),
      bind(sinks.stream, new KinesisSink(newStream(stack, 'Out'))),
      bind(sinks.table, new DynamoDbTableSink(table)),
      bind(sinks.queue, new SqsSink(new Queue(stack, 'Queue'))),
      bind(sinks.bus, new EventBridgeSink(new EventBus(stack, 'Bus'), { source: 'everything' })),
      bind(sinks.lake, new FirehoseSink(DeliveryStream.fromDeliveryStreamArn(stack, 'Lake', delivery))),
    ],
    deadLetters: {
      queue: () => DeadLetters.queue(),
      stream: () => DeadLetters.stream(newStream(stack, 'Letters')),
      bucket: () => DeadLetters.bucket(new Bucket(stack, 'Letters')),
    }[deadLetters](),
  })
  const grants = (target: IFunction) => sorted(grantsOfRole(stack, target).map((grant) => grant.split(' ')[0] ?? ''))
  return {
    granted: (stage: string) => grants(application.stage(stage).function),
    needed: (stage: string) => adaptersOf(bindingsOfFunction(stack, application.stage(stage).function)),
    announcer: () => (application.announcer ? grants(application.announcer.function) : []),
  }
}

/** Events are read, and call nothing. Kafka is no service of the SDK: what its adapters may do is said by the actions of its clusters. */
const ofTheSdk = adapters.filter((adapter) => !adapter.includes('kafka') && !adapter.startsWith('events-'))

it.each(ofTheSdk)('%s calls something', (adapter) => {
  const calls = calledBy(adapter)
  expect(calls.length).toBeGreaterThan(0)
  expect(calls.join()).not.toContain('undefined')
})

// The CDK's own construct of an imported Firehose stream leaves a mapping that nothing uses, of which it warns.
beforeAll(() => void jest.spyOn(console, 'error').mockImplementation())
afterAll(() => jest.restoreAllMocks())

const everything = (['queue', 'stream', 'bucket'] as const).map((kind) => ({ kind, ...everythingIn(kind) }))

describe.each(everything)('with a $kind for dead letters', ({ granted, needed, announcer }) => {
  it.each(['by-line', 'others'])('the actions of stage %s are those that its adapters call', (stage) => {
    const called = [...needed(stage)].flatMap(calledBy)
    expect(granted(stage)).toEqual(sorted([...called, ...lambdaDoes]))
  })

  it('a stage that feeds keeps progress alone, so that of the calls of the state store it may get and put', () => {
    const called = [...needed('lines')].filter((adapter) => adapter !== 'state-dynamodb').flatMap(calledBy)
    expect(granted('lines')).toEqual(sorted([...called, ...lambdaDoes, 'dynamodb:GetItem', 'dynamodb:PutItem']))
  })

  it('the announcer reads progress, so that of those it may get', () => {
    const called = calledBy('announcer-kinesis').filter((action) => !action.startsWith('dynamodb:'))
    expect(announcer()).toEqual(sorted([...called, 'dynamodb:GetItem', 'logs:CreateLogStream', 'logs:PutLogEvents']))
  })
})

it('every adapter is bound in these tests', () => {
  const bound = everything.flatMap(({ needed }) =>
    ['by-line', 'lines', 'others'].flatMap((stage) => [...needed(stage)]),
  )
  expect(sorted([...bound, 'announcer-kinesis'])).toEqual(sorted(ofTheSdk))
})
