import { PutRecordCommand } from '@aws-sdk/client-kinesis'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { lookUpRecord } from '../../../lib/local/dead-letters/kinesis-record-lookup.ts'
import { ensureStream, localKinesisClient } from '../../../lib/local/run/streams.ts'
import { startKinesisService } from '../../../lib/local/services/kinesis.ts'

test('a record is found by its coordinates, and one that is not there is not', async () => {
  const service = await startKinesisService()
  const client = localKinesisClient(service.url)
  try {
    const { streamArn: StreamARN } = await ensureStream(client, systemClock, 'orders', 1)
    const put = (text: string) =>
      client.send(new PutRecordCommand({ StreamARN, PartitionKey: `key of ${text}`, Data: Buffer.from(text) }))
    await put('first')
    const { SequenceNumber: position = '', ShardId: partition = '' } = await put('second')
    const found = { partitionKey: 'key of second', data: Buffer.from('second') }
    expect(await lookUpRecord(client, { StreamARN }, { partition, position })).toEqual(found)
    expect(await lookUpRecord(client, { StreamName: 'orders' }, { partition, position })).toEqual(found)
    const absent = `${BigInt(position) - 1n}`
    expect(await lookUpRecord(client, { StreamARN }, { partition, position: absent })).toBeUndefined()
    expect(await lookUpRecord(client, { StreamName: 'gone' }, { partition, position })).toBeUndefined()
  } finally {
    client.destroy()
    await service.close()
  }
})
