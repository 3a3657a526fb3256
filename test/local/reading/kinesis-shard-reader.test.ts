import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { KinesisShardReader } from '../../../lib/local/reading/kinesis-shard-reader.ts'
import { VirtualClock } from '../../emulator/event-source-mapping/virtual-clock.ts'

interface Call {
  readonly name: string
  readonly input: unknown
}

/** A client that answers from a list, errors included, and remembers what it was asked. */
function readerWith(answers: unknown[]) {
  const calls: Call[] = []
  const send = async (command: { input: unknown }) => {
    calls.push({ name: command.constructor.name, input: command.input })
    const answer = answers.shift()
    if (answer instanceof Error) throw answer
    return answer
  }
  const clock = new VirtualClock()
  const client = { send } as unknown as KinesisClient
  return { reader: new KinesisShardReader({ client, streamName: 'orders', clock }), calls, clock }
}

const error = (name: string) => Object.assign(new Error(`${name} happened`), { name })

test('lists every page, with one parent after a split and two after a merge', async () => {
  const { reader, calls } = readerWith([
    { Shards: [{ ShardId: 's0' }, { ShardId: 's1', ParentShardId: 's0' }], NextToken: 'more' },
    { Shards: [{ ShardId: 's2', ParentShardId: 's0', AdjacentParentShardId: 's1' }] },
  ])
  expect(await reader.listShards()).toEqual([
    { shardId: 's0', parentIds: [] },
    { shardId: 's1', parentIds: ['s0'] },
    { shardId: 's2', parentIds: ['s0', 's1'] },
  ])
  expect(calls.map((call) => call.input)).toEqual([{ StreamName: 'orders' }, { NextToken: 'more' }])
})

test.each([
  [{ at: 'trim-horizon' }, { ShardIteratorType: 'TRIM_HORIZON' }],
  [{ at: 'latest' }, { ShardIteratorType: 'LATEST' }],
  [
    { at: 'timestamp', timestampMs: 5_000 },
    { ShardIteratorType: 'AT_TIMESTAMP', Timestamp: new Date(5_000) },
  ],
  [
    { at: 'after', sequenceNumber: '9' },
    { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', StartingSequenceNumber: '9' },
  ],
] as const)('opens at %j', async (position, expected) => {
  const { reader, calls } = readerWith([{ ShardIterator: 'i' }])
  expect(await reader.open('s0', position)).toBe('i')
  expect(calls[0]?.input).toEqual({ StreamName: 'orders', ShardId: 's0', ...expected })
})

test('reads records with their arrival in milliseconds; no next iterator means the end of the shard', async () => {
  const { reader, calls } = readerWith([
    {
      Records: [
        {
          SequenceNumber: '7',
          PartitionKey: 'k',
          Data: new Uint8Array([1]),
          ApproximateArrivalTimestamp: new Date(1_449),
        },
      ],
      MillisBehindLatest: 12,
    },
  ])
  expect(await reader.read('i', 25)).toEqual({
    records: [{ sequenceNumber: '7', partitionKey: 'k', data: new Uint8Array([1]), arrivalMs: 1_449 }],
    nextIterator: null,
    millisBehindLatest: 12,
  })
  expect(calls[0]?.input).toEqual({ ShardIterator: 'i', Limit: 25 })
})

test('a throttle is tried again after growing waits, with the same iterator', async () => {
  const throttle = error('ProvisionedThroughputExceededException')
  const { reader, calls, clock } = readerWith([throttle, throttle, { Records: [], NextShardIterator: 'j' }])
  const reading = reader.read('i', 10)
  await clock.advance(299)
  expect(calls).toHaveLength(2)
  await clock.advance(1)
  expect(await reading).toEqual({ records: [], nextIterator: 'j', millisBehindLatest: 0 })
  expect(calls).toHaveLength(3)
})

test('throttles without end, and any other error at once, reject with stream and reason', async () => {
  const throttle = error('LimitExceededException')
  const { reader, clock } = readerWith(Array.from({ length: 5 }, () => throttle))
  const reading = expect(reader.read('i', 10)).rejects.toThrow('stream orders: LimitExceededException')
  await clock.advance(60_000)
  await reading
  const gone = readerWith([error('ResourceNotFoundException')])
  await expect(gone.reader.listShards()).rejects.toThrow('stream orders: ResourceNotFoundException')
  expect(gone.calls).toHaveLength(1)
})
