import { kafkaFramePublisher } from '../../lib/aws/kafka/frame-publisher-kafka.ts'
import { KafkaFailure } from '../../lib/aws/kafka/kafka-failure.ts'
import type { KafkaMessage, KafkaProducer } from '../../lib/aws/kafka/kafka-port.ts'
import { mostFrameBytes } from '../../lib/runtime/frames/frame-format.ts'
import { testPorts } from '../aws/sink-worlds.ts'
import {
  admin,
  allRecords,
  never,
  newTopic,
  producer,
  reader,
  recordsIn,
  recreate,
  text,
  withBroker,
} from './broker.ts'

const frame = (slot: number, value: string) => ({ slot, bytes: Buffer.from(value) })

/** A producer that notes what it sends and, `refusals` times in a row, refuses as a broker without replicas does. */
function watched(inner: KafkaProducer, refusals = 0) {
  const sent: (readonly KafkaMessage[])[] = []
  let left = refusals
  const watching: KafkaProducer = {
    topic: (...asked) => inner.topic(...asked),
    close: () => inner.close(),
    async send(topic, messages, signal) {
      sent.push(messages)
      if (left-- > 0) throw new KafkaFailure('NOT_ENOUGH_REPLICAS', 'too few replicas', { passes: true })
      await inner.send(topic, messages, signal)
    },
  }
  return { sent, producer: watching }
}

withBroker('kafkaFramePublisher', () => {
  test('puts a frame in the partition slot mod partitions, under its slot and its trace', async () => {
    const topic = await newTopic(4)
    const publisher = kafkaFramePublisher({
      producer: producer(),
      topic,
      partitions: 4,
      trace: () => '1-5759e988-bd862e3fe1be46a994272793',
      ...testPorts(),
    })
    await publisher.publish(
      [0, 1, 5, 63].map((slot) => frame(slot, `of ${slot}`)),
      never(),
    )
    const records = await allRecords(topic, 4)
    expect(records.map(({ partition, value }) => [partition, text(value)])).toEqual([
      [0, 'of 0'],
      [1, 'of 1'],
      [1, 'of 5'],
      [3, 'of 63'],
    ])
    expect(text(records[3]?.key)).toBe('63 1-5759e988-bd862e3fe1be46a994272793')
  })

  test('has one frame of a slot in flight, and none overtakes one that was refused', async () => {
    const topic = await newTopic(2)
    const { sent, producer: writer } = watched(producer(), 3)
    const publisher = kafkaFramePublisher({ producer: writer, topic, partitions: 2, ...testPorts() })
    const frames = Array.from({ length: 12 }, (_, n) => frame(n % 3, `${n % 3}-${Math.floor(n / 3)}`))
    await publisher.publish(frames, never())
    for (const messages of sent) {
      const slots = messages.map(({ key }) => text(key))
      expect(new Set(slots).size).toBe(slots.length)
    }
    const values = (await allRecords(topic, 2)).map(({ value }) => text(value))
    expect(values).toHaveLength(12)
    for (const slot of ['0', '1', '2']) {
      expect(values.filter((value) => value.startsWith(slot))).toEqual([0, 1, 2, 3].map((n) => `${slot}-${n}`))
    }
  })

  test('the largest frame fits in a topic as the deployment makes it', async () => {
    const topic = await newTopic(1, { 'max.message.bytes': '1048704' })
    const publisher = kafkaFramePublisher({
      producer: producer(),
      topic,
      partitions: 1,
      trace: () => '1-5759e988-bd862e3fe1be46a994272793',
      ...testPorts(),
    })
    const bytes = Buffer.alloc(mostFrameBytes, 7)
    await publisher.publish([{ slot: 4095, bytes }], never())
    expect((await recordsIn(topic))[0]?.value?.byteLength).toBe(mostFrameBytes)
  })

  test('a topic that takes smaller messages than frames is refused, with the value that it is to have', async () => {
    const topic = await newTopic(1, { 'max.message.bytes': '1048588' })
    const publisher = kafkaFramePublisher({ producer: producer(), topic, partitions: 1, ...testPorts() })
    const bytes = Buffer.alloc(mostFrameBytes, 7)
    await expect(publisher.publish([{ slot: 0, bytes }], never())).rejects.toMatchObject({
      name: 'ConfigurationError',
      code: 'topic-settings',
      message: expect.stringMatching(/^topic ".+" refused a frame as too large: .*; set it to 1048704\.$/),
    })
  })

  test('many frames of one partition go in requests that it takes', async () => {
    const topic = await newTopic(1)
    const publisher = kafkaFramePublisher({ producer: producer(), topic, partitions: 1, ...testPorts() })
    const frames = Array.from({ length: 20 }, (_, slot) => ({ slot, bytes: Buffer.alloc(262_144, slot) }))
    await publisher.publish(frames, never())
    expect((await recordsIn(topic)).map(({ value }) => value?.[0])).toEqual(frames.map(({ slot }) => slot))
  })

  test('a topic that got partitions is refused before anything is written, with what to do', async () => {
    const topic = await newTopic(2)
    await admin().addPartitions(topic, 4, never())
    const publisher = kafkaFramePublisher({ producer: producer(), topic, partitions: 2, ...testPorts() })
    await expect(publisher.publish([frame(0, 'a')], never())).rejects.toMatchObject({
      name: 'ConfigurationError',
      code: 'partitions-changed',
      message: expect.stringContaining('give the stage another name'),
    })
    expect(await allRecords(topic, 4)).toEqual([])
  })

  test('a topic that was made again is refused before anything is written', async () => {
    const topic = await newTopic()
    const topicId = (await reader().topic(topic, never()))?.id ?? ''
    await recreate(topic)
    const publisher = kafkaFramePublisher({ producer: producer(), topic, partitions: 1, topicId, ...testPorts() })
    await expect(publisher.publish([frame(0, 'a')], never())).rejects.toMatchObject({
      name: 'ConfigurationError',
      code: 'recreated-topic',
    })
    expect(await recordsIn(topic)).toEqual([])
  })

  test('a topic that is made again while its writer is warm takes no frames that count', async () => {
    const topic = await newTopic()
    const topicId = (await reader().topic(topic, never()))?.id ?? ''
    const publisher = kafkaFramePublisher({ producer: producer(), topic, partitions: 1, topicId, ...testPorts() })
    await publisher.publish([frame(0, 'a')], never())
    await recreate(topic)
    for (const value of ['b', 'c'])
      await expect(publisher.publish([frame(0, value)], never())).rejects.toMatchObject({
        name: 'ConfigurationError',
        code: 'recreated-topic',
      })
    expect((await recordsIn(topic)).map(({ value }) => text(value))).not.toContain('c')
  })

  test('frames that the broker does not take before the abort reject, and nothing goes on behind it', async () => {
    const topic = await newTopic()
    const controller = new AbortController()
    const { sent, producer: writer } = watched(producer(), Number.POSITIVE_INFINITY)
    const ports = testPorts({ nowMs: () => 0, sleep: async () => controller.abort() })
    const publisher = kafkaFramePublisher({ producer: writer, topic, partitions: 1, ...ports })
    await expect(publisher.publish([frame(0, 'a')], controller.signal)).rejects.toMatchObject({
      name: 'RetryableError',
    })
    expect(sent).toHaveLength(1)
  })
})
