/** What a publisher of frames does, without a broker, where its topic is deleted and made again while it is warm. */
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { kafkaFramePublisher } from '../../../lib/aws/kafka/frame-publisher-kafka.ts'
import { KafkaFailure } from '../../../lib/aws/kafka/kafka-failure.ts'
import type { KafkaProducer, KafkaTopic } from '../../../lib/aws/kafka/kafka-port.ts'
import { Topology, text } from '../../../lib/index.ts'
import { kafkaEvent, lambdaContext, memoryPorts } from '../../../lib/testing/index.ts'
import { never, testPorts } from '../sink-worlds.ts'

/** A warm producer: what it knows of the topic is what it last looked up. `onSend` comes before the cluster takes what is sent. */
function cluster(onSend: (topic: { id: string; partitions: number }) => void) {
  const topic = { id: 'id-1', partitions: 4 }
  let known: KafkaTopic = { ...topic }
  let looks = 0
  const sent: string[] = []
  const producer: KafkaProducer = {
    async topic(_name, _signal, asOf) {
      if (asOf === 'now') {
        looks++
        known = { ...topic }
      }
      return known
    },
    async send(_topic, messages) {
      onSend(topic)
      sent.push(...messages.map(({ value }) => String(value)))
    },
    close: async () => undefined,
  }
  const publisher = kafkaFramePublisher({ producer, topic: 'frames', topicId: 'id-1', partitions: 4, ...testPorts() })
  return { publisher, producer, topic, sent, looks: () => looks }
}

const frames = ['a', 'b'].map((value, slot) => ({ slot, bytes: Buffer.from(value) }))

test('frames are looked after: one look at the topic behind each request', async () => {
  const { publisher, sent, looks } = cluster(() => undefined)
  await publisher.publish(frames, never())
  await publisher.publish(frames, never())
  expect(sent).toEqual(['a', 'b', 'a', 'b'])
  expect(looks()).toBe(2)
})

test.each([
  ['another topic', { id: 'id-2' }, 'recreated-topic'],
  ['a topic with more partitions', { partitions: 8 }, 'partitions-changed'],
])('frames that %s took are not published, and none are sent behind them', async (_, change, code) => {
  const { publisher, sent } = cluster((topic) => Object.assign(topic, change))
  await expect(publisher.publish(frames, never())).rejects.toMatchObject({ name: 'ConfigurationError', code })
  expect(sent).toEqual(['a', 'b'])
  await expect(publisher.publish(frames, never())).rejects.toMatchObject({ code })
  expect(sent).toEqual(['a', 'b'])
})

test('frames are sent again where nobody says which topic took them', async () => {
  const { producer, sent } = cluster(() => undefined)
  let asked = 0
  const silent: KafkaProducer = {
    ...producer,
    async topic(name, signal, asOf) {
      if (asOf === 'now' && asked++ === 0) throw new KafkaFailure('ECONNRESET', 'gone', { passes: true })
      return await producer.topic(name, signal, asOf)
    },
  }
  const options = { producer: silent, topic: 'frames', topicId: 'id-1', partitions: 4, ...testPorts() }
  await kafkaFramePublisher(options).publish(frames, never())
  expect(sent).toEqual(['a', 'b', 'a', 'b'])
})

test('what another topic took is sent again from the progress of the source', async () => {
  const app = new Topology('rides')
  app
    .source('rides', text())
    .keyBy('by-line', (line) => line)
    .reduce('last', (_, line) => line, { emit: 'on-update' })
    .to(app.sink<string>('out'))
  const ports = memoryPorts()
  const { publisher, sent } = cluster((topic) => Object.assign(topic, { id: 'id-2' }))
  let isMadeAgain = true
  const frames = (stage: string) => ({
    publish: async (...sending: Parameters<typeof publisher.publish>) =>
      await (isMadeAgain ? publisher : ports.frames?.(stage))?.publish(...sending),
  })
  const handler = streamHandler(app, { ports: { ...ports, frames } })
  const event = kafkaEvent({ 'rides-0': ['u1', 'u2'].map((value, offset) => ({ offset, value })) })
  const failed = [0, 1].map((offset) => ({ itemIdentifier: { partition: 'rides-0', offset } }))
  expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: failed })
  expect(sent).not.toHaveLength(0)
  isMadeAgain = false
  expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [] })
  expect(ports.takeFrames('by-line')).not.toHaveLength(0)
})
