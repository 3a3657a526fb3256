import { entryText } from '../../../lib/aws/dead-letters/entry.ts'
import { kafkaDeadLetters } from '../../../lib/aws/kafka/dead-letter-kafka.ts'
import type { KafkaProducer } from '../../../lib/aws/kafka/kafka-port.ts'
import { bytesOf } from '../../../lib/aws/kafka/topic-delivery.ts'
import { SourceRecord } from '../../../lib/core/record.ts'
import { deadLetterOf } from '../../../lib/runtime/dead-letter.ts'
import { outputs, testPorts } from '../sink-worlds.ts'

test('an entry that takes all of what its topic takes is whole, and one that takes a byte more is not', () => {
  const record = new SourceRecord({
    source: 'orders',
    partition: '3',
    position: '7',
    arrivalTimeMs: 5,
    payload: Buffer.alloc(10_000),
  })
  const where = { topology: 'bookings', stage: 'main', failedAtMs: Date.UTC(2026, 0, 31) }
  const letter = deadLetterOf(record, { error: new Error('no'), phase: 'step', attempts: 3 }, where)
  const takes = bytesOf({ key: Buffer.from(letter.id), value: Buffer.from(entryText(letter)) })
  const entryIn = (maxMessageBytes: number) => {
    const options = { producer: {} as KafkaProducer, topic: 'failed', maxMessageBytes, ...testPorts() }
    return kafkaDeadLetters(options).prepare(outputs([letter])[0] as ReturnType<typeof outputs<typeof letter>>[0])
  }
  expect(entryIn(takes).text).toBe(entryText(letter))
  const { id, text } = entryIn(takes - 1)
  expect(JSON.parse(text)).toMatchObject({ payload: null, omitted: { bytes: expect.any(Number) } })
  expect(bytesOf({ key: Buffer.from(id), value: Buffer.from(text) })).toBeLessThan(takes)
})
