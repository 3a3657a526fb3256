/** The event of Kafka, byte for byte, and that the handler reads it as it was produced. */
import fc from 'fast-check'
import { type KafkaEvent, kafkaRecords } from '../../../lib/aws/events/kafka-records.ts'
import { type KafkaSourceRecord, kafkaFormat } from '../../../lib/emulator/event-source-mapping/index.ts'
import { clusterArn, KafkaWorld, topic } from './kafka-world.ts'

test('[D] the event of MSK', async () => {
  const world = new KafkaWorld({}, { topic: { timestampType: 'LogAppendTime' } })
  const headers = [{ name: 'h', value: Buffer.from([104, 200]) }]
  world.put(1, { key: Buffer.from('k'), value: Buffer.from('v'), headers }, { value: null })
  const atMs = world.clock.nowMs()
  await world.run()
  const fixed = { topic, partition: 1, timestamp: atMs, timestampType: 'LOG_APPEND_TIME' }
  expect(world.deliveries[0]?.event).toEqual({
    eventSource: 'aws:kafka',
    eventSourceArn: clusterArn,
    bootstrapServers: 'b-1.test:9098',
    records: {
      'my-orders-1': [
        // [I] Bytes of headers are signed, as Java's are.
        { ...fixed, offset: 0, key: 'aw==', value: 'dg==', headers: [{ h: [104, -56] }] },
        // [I] A tombstone has no value, and a record without a key no key.
        { ...fixed, offset: 1, headers: [] },
      ],
    },
  })
})

test('[D] of a self-managed cluster there is no ARN', async () => {
  const format = kafkaFormat({ topic, bootstrapServers: 'own:9092' })
  expect(format.event([], topic)).toEqual({
    eventSource: 'SelfManagedKafka',
    bootstrapServers: 'own:9092',
    records: {},
  })
})

test('[D] what a schema registry says of key and value is passed through', async () => {
  const keySchemaMetadata = { dataFormat: 'JSON', schemaId: '1' }
  const valueSchemaMetadata = { dataFormat: 'AVRO', schemaId: '17' }
  const world = new KafkaWorld({}, { reader: { schemasOf: () => ({ keySchemaMetadata, valueSchemaMetadata }) } })
  world.put(0, 'a')
  await world.run()
  expect(world.deliveries[0]?.event.records).toMatchObject({
    'my-orders-0': [{ keySchemaMetadata, valueSchemaMetadata }],
  })
})

const anyBytes = fc.uint8Array({ maxLength: 40 })
const anyRecord = fc
  .record({
    partition: fc.nat(12),
    offset: fc.maxSafeInteger().filter((offset) => offset >= 0),
    arrivalMs: fc.nat(),
    key: fc.option(anyBytes),
    value: fc.option(anyBytes),
    headers: fc.array(fc.record({ name: fc.string({ unit: 'binary' }), value: fc.option(anyBytes) }), { maxLength: 3 }),
  })
  .map(
    (record): KafkaSourceRecord => ({
      ...record,
      timestampType: 'CREATE_TIME',
      sequenceNumber: String(record.offset),
      partitionKey: String(record.partition),
      data: record.value ?? new Uint8Array(),
    }),
  )
const distinct = fc.uniqueArray(anyRecord, {
  selector: ({ partition, offset }) => `${partition}:${offset}`,
  maxLength: 8,
})

test('what the mapping counts is never less than the event as JSON, and little more', () => {
  const format = kafkaFormat({ topic: 'a "quoted" tøpic', clusterArn, bootstrapServers: 'b-1.test:9098' })
  fc.assert(
    fc.property(distinct, (records) => {
      const counted = records.reduce((sum, one) => sum + format.eventBytes(one, topic), format.emptyEventBytes)
      const bytes = Buffer.byteLength(JSON.stringify(format.event(records, topic)))
      expect(bytes).toBeLessThanOrEqual(counted)
      expect(counted - bytes).toBeLessThanOrEqual(40 * records.length)
    }),
  )
})

test('filters see the text of a value, and none of a tombstone or of bytes that are no text', () => {
  const { filterText } = kafkaFormat({ topic, bootstrapServers: 'own:9092' })
  const textsOf = (...values: readonly (Uint8Array | null)[]) =>
    values.map((value) => filterText({ value } as KafkaSourceRecord))
  const texts = textsOf(Buffer.from('{"city":"Å"}'), Buffer.alloc(0), null, Buffer.from([0xff]))
  expect(texts).toEqual(['{"city":"Å"}', '', undefined, undefined])
})

test('the handler reads every record as it was produced', () => {
  const format = kafkaFormat({ topic, bootstrapServers: 'own:9092' })
  fc.assert(
    fc.property(distinct, (records) => {
      const event = JSON.parse(JSON.stringify(format.event(records, topic))) as KafkaEvent
      const read = new Map(
        kafkaRecords(event, () => 'source').flatMap(({ number, records: own }) =>
          own.map((record) => [`${number}:${record.position}`, record] as const),
        ),
      )
      expect(read.size).toBe(records.length)
      for (const { partition, offset, key, value, headers, arrivalMs } of records) {
        const record = read.get(`${partition}:${offset}`)
        expect(record?.unreadable).toBeUndefined()
        expect(record?.arrivalTimeMs).toBe(arrivalMs)
        expect(record?.keyBytes).toEqual(key === null ? undefined : Buffer.from(key))
        expect(record?.payload).toEqual(value === null ? null : Buffer.from(value))
        expect(record?.headers.map((header) => [header.name, [...header.value]])).toEqual(
          headers.map((header) => [header.name, [...(header.value ?? [])]]),
        )
      }
    }),
  )
})
