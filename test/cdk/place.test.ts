import { App, Stack } from 'aws-cdk-lib'
import { Annotations, Match } from 'aws-cdk-lib/assertions'
import { Table } from 'aws-cdk-lib/aws-dynamodb'
import { Stream } from 'aws-cdk-lib/aws-kinesis'
import { Bucket } from 'aws-cdk-lib/aws-s3'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { bind, CustomSink, DeadLetters, DynamoDbTableSink, KinesisSink, KinesisSource } from '../../lib/cdk/index.ts'
import { bindingsOf, newStream, shopIn, validated } from './world.ts'

type Change = (stack: Stack, arn: (service: string, resource: string) => string) => Parameters<typeof shopIn>[1]

/** The shop in Frankfurt, account 111122223333. */
const home = { region: 'eu-central-1', account: '111122223333' }

/** Puts the shop in a stack of that place, bound by `change` to what is in `there`. */
function deployed(there: { readonly region: string; readonly account: string }, change: Change) {
  const stack = new Stack(new App({ context: validated }), 'Test', { env: home })
  const arn = (service: string, resource: string) => `arn:aws:${service}:${there.region}:${there.account}:${resource}`
  return { stack, application: shopIn(stack, change(stack, arn)) }
}

/** The shop with its names bound to streams of its own, unless said. */
const withBindings =
  (stack: Stack, { source, sink }: { source?: KinesisSource; sink?: KinesisSink | DynamoDbTableSink }) =>
  ({ orders, refunds, ledger, audit }: Parameters<NonNullable<Parameters<typeof shopIn>[1]>>[0]) => ({
    bind: [
      bind(orders, source ?? new KinesisSource(newStream(stack, 'A'))),
      bind(refunds, new KinesisSource(newStream(stack, 'B'))),
      bind(ledger, sink ?? new CustomSink()),
      bind(audit, new CustomSink()),
    ],
  })

const uses: readonly [string, string, Change][] = [
  [
    'a source stream',
    'kinesis:DescribeStream, kinesis:DescribeStreamSummary, kinesis:GetRecords, kinesis:GetShardIterator, kinesis:ListShards',
    (stack, arn) =>
      withBindings(stack, { source: new KinesisSource(Stream.fromStreamArn(stack, 'I', arn('kinesis', 'stream/x'))) }),
  ],
  [
    'a sink stream',
    'kinesis:PutRecords',
    (stack, arn) =>
      withBindings(stack, { sink: new KinesisSink(Stream.fromStreamArn(stack, 'I', arn('kinesis', 'stream/x'))) }),
  ],
  [
    'a table',
    'dynamodb:UpdateItem',
    (stack, arn) => {
      const table = Table.fromTableArn(stack, 'I', arn('dynamodb', 'table/x'))
      return withBindings(stack, { sink: new DynamoDbTableSink(table, { partitionKey: 'id' }) })
    },
  ],
  [
    'dead letters on a stream',
    'kinesis:PutRecords',
    (stack, arn) => () => ({
      deadLetters: DeadLetters.stream(Stream.fromStreamArn(stack, 'I', arn('kinesis', 'stream/x'))),
    }),
  ],
  [
    'dead letters on a queue',
    'sqs:SendMessage',
    (stack, arn) => () => ({ deadLetters: DeadLetters.queue(Queue.fromQueueArn(stack, 'I', arn('sqs', 'x'))) }),
  ],
]

describe('what is in another region', () => {
  it.each(uses)('is refused as %s, with both regions', (_, _actions, change) => {
    expect(() => deployed({ ...home, region: 'us-east-1' }, change)).toThrow(
      /x is in the region us-east-1, and the function Test\/Shop\/\w+\/Function in eu-central-1: .*deploy it in us-east-1, or bind a resource in eu-central-1\.$/,
    )
  })

  it('is refused as a bucket for dead letters', () => {
    const bucket: Change = (stack) => () => ({
      deadLetters: DeadLetters.bucket(
        Bucket.fromBucketAttributes(stack, 'I', { bucketArn: 'arn:aws:s3:::failures', region: 'us-east-1' }),
      ),
    })
    expect(() => deployed(home, bucket)).toThrow('arn:aws:s3:::failures is in the region us-east-1')
  })

  it('is refused as a stream that another stack of the app makes', () => {
    const stack = new Stack(new App({ context: validated }), 'Test', { env: home })
    const elsewhere = new Stack(stack.node.root as App, 'Elsewhere', { env: { ...home, region: 'us-east-1' } })
    const sink = new KinesisSink(new Stream(elsewhere, 'Out'))
    expect(() => shopIn(stack, withBindings(stack, { sink }))).toThrow(
      'Elsewhere/Out is in the region us-east-1, and the function Test/Shop/orders/Function in eu-central-1',
    )
  })
})

describe('what is in another account', () => {
  const other = { ...home, account: '444455556666' }
  const warnings = (stack: Stack) =>
    Annotations.fromStack(stack)
      .findWarning('*', Match.stringLikeRegexp('other-account'))
      .map(({ entry }) => String(entry.data))

  it.each(uses)('is taken as %s, and synth names the policy that it needs', (_, actions, change) => {
    const [warning] = warnings(deployed(other, change).stack)
    expect(warning).toMatch(/x is in the account 444455556666, and the function .* in 111122223333: the policy/)
    expect(warning).toContain(`must allow the function's role ${actions}, and so must that of its KMS key`)
  })

  it('is bound by its ARN, so that a stream or table of the same name in this account is never written to', () => {
    const [, streamSink, tableSink] = uses.map(([, , change]) => deployed(other, change))
    const [stream] = streamSink ? bindingsOf(streamSink.stack, streamSink.application, 'refunds').sinks : []
    const [table] = tableSink ? bindingsOf(tableSink.stack, tableSink.application, 'refunds').sinks : []
    expect(stream).toMatchObject({ streamArn: 'arn:aws:kinesis:eu-central-1:444455556666:stream/x' })
    expect(stream).not.toHaveProperty('streamName')
    expect(table).toMatchObject({ tableName: 'arn:aws:dynamodb:eu-central-1:444455556666:table/x' })
  })

  it.each(uses)('the same account and region: %s needs nothing more', (_, _actions, change) => {
    expect(warnings(deployed(home, change).stack)).toEqual([])
  })
})

it('a place that is known only when it is deployed is taken', () => {
  const stack = new Stack(new App({ context: validated }), 'Test')
  const sink = new KinesisSink(Stream.fromStreamArn(stack, 'I', 'arn:aws:kinesis:us-east-1:444455556666:stream/x'))
  expect(() => shopIn(stack, withBindings(stack, { sink }))).not.toThrow()
})
