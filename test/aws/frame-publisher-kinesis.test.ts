import type { PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { kinesisFramePublisher } from '../../lib/aws/frame-publisher-kinesis.ts'
import { firstHashOf } from '../../lib/core/slot.ts'
import { awsError, never, testPorts } from './sink-worlds.ts'

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
