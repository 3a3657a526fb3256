/**
 * The embedded Kinesis beside kinesis-local 0.6.2, an independent implementation, call by call. Where they differ, the
 * documentation of AWS decides; ours has to be the one that follows it, and each difference stands in the table with its reason.
 *
 * @see https://docs.aws.amazon.com/kinesis/latest/APIReference/API_Operations.html
 */
import { KinesisClient } from '@aws-sdk/client-kinesis'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { startKinesisService } from '../../../lib/local/services/kinesis.ts'
import { startKinesisLocal } from '../fixtures/kinesis-local.ts'
import { runKinesisCalls } from './kinesis-call-script.ts'

interface Difference {
  readonly call: string
  readonly ours: unknown
  /** Left out where an outcome holds the whole list of shards: the reason says it. */
  readonly theirs?: unknown
  readonly reason: string
}

const exception = (name: string) => ({ exception: name })
const validation = exception('ValidationException')
const invalid = exception('InvalidArgumentException')

const differences: readonly Difference[] = [
  {
    call: 'split',
    ours: expect.arrayContaining([
      expect.objectContaining({
        range: { StartingHashKey: '0', EndingHashKey: '170141183460469231731687303715884105727' },
      }),
    ]),
    reason: 'two equal shards meet at 2^127; theirs meet one below it, since they divide 2^128 - 1',
  },
  {
    call: 'split a closed shard',
    ours: invalid,
    theirs: exception('ResourceInUseException'),
    reason: 'ResourceInUseException says that the stream is not ACTIVE, and it is: waiting would not help',
  },
  {
    call: 'list what was open at the oldest record',
    ours: [0, 1],
    theirs: [0, 1, 2, 3],
    reason: 'AT_TRIM_HORIZON includes all shards that were open then: the parent, not yet its children',
  },
  {
    call: 'read at a number of another shard',
    ours: invalid,
    theirs: exception('ResourceNotFoundException'),
    reason: 'stream and shard exist; the number is a parameter that cannot be used with them',
  },
  { call: 'put 501 records', ours: validation, theirs: 'accepted', reason: 'Records takes 1 to 500 items' },
  { call: 'put no records', ours: validation, theirs: 'accepted', reason: 'Records takes 1 to 500 items' },
  {
    call: 'put a byte more than one mebibyte',
    ours: invalid,
    theirs: 'shardId-000000000001',
    reason: 'MaxRecordSizeInKiB is 1,024 unless the stream says otherwise',
  },
  { call: 'put with an empty key', ours: validation, theirs: invalid, reason: 'PartitionKey has a least length of 1' },
  {
    call: 'put with a key that is too long',
    ours: validation,
    theirs: invalid,
    reason: 'PartitionKey has a greatest length of 256',
  },
  {
    call: 'put with a hash key that is no number',
    ours: validation,
    theirs: exception('Unknown'),
    reason: 'ExplicitHashKey has a pattern; theirs answers no exception of Kinesis',
  },
  {
    call: 'iterator after what is no number',
    ours: validation,
    theirs: invalid,
    reason: 'StartingSequenceNumber has a pattern',
  },
  {
    call: 'read with an iterator that is none',
    ours: invalid,
    theirs: exception('Unknown'),
    reason: 'a parameter that cannot be used; theirs answers no exception of Kinesis',
  },
  { call: 'read no records', ours: validation, theirs: invalid, reason: 'Limit has a range of 1 to 10,000' },
  {
    call: 'create a stream with a bad name',
    ours: validation,
    theirs: invalid,
    reason: 'StreamName has a pattern of [a-zA-Z0-9_.-]+',
  },
  {
    call: 'create a stream without shards',
    ours: validation,
    theirs: exception('LimitExceededException'),
    reason: 'ShardCount has a least value of 1',
  },
]

async function outcomesOf(endpoint: string): Promise<ReadonlyMap<string, unknown>> {
  const client = new KinesisClient({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  })
  try {
    const outcomes = await runKinesisCalls(client, 'orders')
    return new Map(outcomes.map(({ call, outcome }) => [call, outcome]))
  } finally {
    client.destroy()
  }
}

let ours: ReadonlyMap<string, unknown>
let theirs: ReadonlyMap<string, unknown>
beforeAll(async () => {
  const service = await startKinesisService()
  const other = await startKinesisLocal()
  try {
    ;[ours, theirs] = await Promise.all([outcomesOf(service.url), outcomesOf(other.url)])
  } finally {
    await Promise.all([service.close(), other.stop()])
  }
}, 240_000)

test('every call that is not in the table has the same outcome in both', () => {
  const listed = new Set(differences.map(({ call }) => call))
  const rest = (outcomes: ReadonlyMap<string, unknown>) =>
    Object.fromEntries([...outcomes].filter(([call]) => !listed.has(call)))
  expect(Object.keys(rest(ours)).length).toBeGreaterThan(40)
  expect(rest(ours)).toEqual(rest(theirs))
})

test.each(differences)('$call: $reason', ({ call, ours: expected, theirs: other }) => {
  expect(ours.get(call)).toEqual(expected)
  expect(theirs.get(call)).not.toEqual(ours.get(call))
  if (other !== undefined) expect(theirs.get(call)).toEqual(other)
})
