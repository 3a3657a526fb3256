import type { DeadLetterOffload } from '../../lib/aws/dead-letters/offload.ts'
import { kafkaDeadLetters } from '../../lib/aws/kafka/dead-letter-kafka.ts'
import { SourceRecord } from '../../lib/core/record.ts'
import { type DeadLetter, deadLetterOf } from '../../lib/runtime/dead-letter.ts'
import { outputs, testPorts } from '../aws/sink-worlds.ts'
import { never, newTopic, producer, recordsIn, text, withBroker } from './broker.ts'

function letter(position: string, payload: Uint8Array): DeadLetter {
  const record = new SourceRecord({
    source: 'orders',
    partition: '3',
    position,
    arrivalTimeMs: 5,
    key: Buffer.from([0, 255]),
    payload,
    headers: [{ name: 'trace', value: Buffer.from([7]) }],
  })
  const where = { topology: 'bookings', stage: 'main', failedAtMs: Date.UTC(2026, 0, 31) }
  return deadLetterOf(record, { error: new Error('no'), phase: 'step', attempts: 3 }, where)
}

withBroker('dead letters on Kafka', () => {
  async function given(letters: readonly DeadLetter[], offload?: DeadLetterOffload) {
    const topic = await newTopic()
    const sink = kafkaDeadLetters({ producer: producer(), topic, ...testPorts(), ...(offload && { offload }) })
    const outcomes = await sink.deliver(
      outputs(letters).map((output) => sink.prepare(output)),
      { signal: never() },
    )
    expect(outcomes.map(({ status }) => status)).toEqual(letters.map(() => 'delivered'))
    return (await recordsIn(topic)).map(({ key, value }) => ({ key: text(key), entry: JSON.parse(text(value)) }))
  }

  test('are one JSON entry each under its id, with the bytes of the record', async () => {
    const letters = [letter('7', Buffer.from([0, 1, 254])), letter('8', Buffer.from('b'))]
    expect(await given(letters)).toEqual(
      letters.map((entry) => ({ key: entry.id, entry: JSON.parse(JSON.stringify(entry)) })),
    )
  })

  test('one that a topic does not take keeps coordinates and reason, and says what it left out', async () => {
    const [kept] = await given([letter('9', Buffer.alloc(1_048_000))])
    expect(kept?.entry).toMatchObject({
      id: kept?.key,
      position: '9',
      payload: null,
      omitted: { bytes: expect.any(Number) },
    })
  })

  test('one that a topic does not take goes to the bucket whole, where there is one', async () => {
    const objects: string[] = []
    const offload: DeadLetterOffload = {
      bucket: 'letters',
      open: async () => ({
        label: 'bucket',
        maxItemsPerRequest: 1,
        maxBytesPerRequest: 10_000_000,
        maxRequests: 1,
        sizeOf: () => 0,
        orderKeyOf: undefined,
        async send(sent) {
          objects.push(...sent.map(({ text: whole }) => whole))
          return undefined
        },
      }),
    }
    const [kept] = await given([letter('9', Buffer.alloc(1_048_000))], offload)
    expect(kept?.entry).toMatchObject({ payload: null, offloaded: { bucket: 'letters' } })
    expect(objects.map((whole) => JSON.parse(whole).id)).toEqual([kept?.key])
  })
})
