import type { PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { kinesisFramePublisher } from '../../../lib/aws/kinesis/frame-publisher.ts'
import { sampledTrace, tracesIn } from '../../../lib/aws/trace.ts'
import { firstHashOf } from '../../../lib/core/slot.ts'
import { mostFrameBytes } from '../../../lib/runtime/frames/frame-format.ts'
import { awsError, never, testPorts } from '../sink-worlds.ts'

/** A Kinesis client that keeps its requests; the first is throttled if so told. */
function client(throttled = false) {
  const inputs: PutRecordsCommand['input'][] = []
  return {
    inputs,
    async send({ input }: PutRecordsCommand) {
      inputs.push(input)
      if (throttled && inputs.length === 1) throw awsError('ThrottlingException')
      return { Records: input.Records?.map(() => ({ SequenceNumber: '1', ShardId: 's' })), $metadata: {} }
    },
  }
}

const frame = (slot: number) => ({ slot, bytes: Buffer.from([slot]) })
const address = { streamName: 'orders-by-customer', slots: 64 }

describe('kinesisFramePublisher', () => {
  test('a frame is placed by the first hash of its slot', async () => {
    const kinesis = client()
    await kinesisFramePublisher({ client: kinesis, ...address, ...testPorts() }).publish([frame(0), frame(63)], never())
    expect(kinesis.inputs).toEqual([
      {
        StreamName: 'orders-by-customer',
        Records: [0, 63].map((slot) => ({
          Data: Buffer.from([slot]),
          PartitionKey: String(slot),
          ExplicitHashKey: firstHashOf(slot, 64),
        })),
      },
    ])
  })

  test('a throttle is waited out', async () => {
    const kinesis = client(true)
    await kinesisFramePublisher({ client: kinesis, ...address, ...testPorts() }).publish([frame(3)], never())
    expect(kinesis.inputs).toHaveLength(2)
  })
})

describe('the trace of a sampled invocation', () => {
  const trace = '1-5759e988-bd862e3fe1be46a994272793'

  test('goes beside its frames, in the partition key, and is found there', async () => {
    const kinesis = client()
    const publisher = kinesisFramePublisher({ client: kinesis, ...address, ...testPorts(), trace: () => trace })
    await publisher.publish([frame(3)], never())
    const [record] = kinesis.inputs[0]?.Records ?? []
    expect(record).toMatchObject({
      PartitionKey: `3 ${trace}`,
      ExplicitHashKey: firstHashOf(3, 64),
      Data: Buffer.from([3]),
    })
    expect(tracesIn([String(record?.PartitionKey), '3', `4 ${trace}`, 'anything 1-else'])).toEqual([trace])
  })

  test('is left out where the frame fills its record', async () => {
    const kinesis = client()
    const publisher = kinesisFramePublisher({ client: kinesis, ...address, ...testPorts(), trace: () => trace })
    await publisher.publish([{ slot: 3, bytes: Buffer.alloc(mostFrameBytes) }], never())
    expect(kinesis.inputs[0]?.Records?.[0]?.PartitionKey).toBe('3')
  })

  test.each([
    ['is sampled', `Root=${trace};Parent=53995c3f42cd8ad8;Sampled=1`, trace],
    ['is not', `Root=${trace};Parent=53995c3f42cd8ad8;Sampled=0`, undefined],
    ['is malformed', 'Root=1-x;Sampled=1', undefined],
    ['is not there', undefined, undefined],
  ])('is known where it %s', (_, header, known) => {
    expect(sampledTrace({ _X_AMZN_TRACE_ID: header })).toBe(known)
  })
})
