/** Brokers older than Kafka 2.8 give topics no id, so that one that was made again could not be told from the one before. */
import { Consumer, metadataV8, metadataV9 } from '@platformatic/kafka'
import { kafkaFramePublisher } from '../../lib/aws/kafka/frame-publisher-kafka.ts'
import { openAdmin } from '../../lib/aws/kafka/kafka-admin.ts'
import { kafkaLineage } from '../../lib/aws/kafka/kafka-lineage.ts'
import { handler } from '../../lib/aws/kafka/topic-function.ts'
import { topicResourceType } from '../../lib/plan/topic-request.ts'
import { InstantClock, testPorts } from '../aws/sink-worlds.ts'
import { closing, never, newTopic, plain, producer, reader, withBroker } from './broker.ts'

/** How the client looks up which version of a request it speaks. */
type Speaks = (name: string, answer: (error: unknown, api: unknown) => void) => void
const clients = Object.getPrototypeOf(Consumer.prototype) as { [symbol: symbol]: Speaks }
const getApi = Object.getOwnPropertySymbols(clients).find(({ description }) =>
  description?.endsWith('.getApi'),
) as symbol
const speaks = clients[getApi] as Speaks

/** Has all clients describe topics as with an old broker. */
function describeWith({ api }: { readonly api: unknown }): void {
  clients[getApi] = function (this: unknown, name, answer) {
    if (name === 'Metadata') answer(null, api)
    else speaks.call(this, name, answer)
  }
}

afterEach(() => {
  clients[getApi] = speaks
})

const admin = () => {
  const opened = openAdmin(plain)
  closing.push(() => opened.close())
  return opened
}

const cluster = { brokers: plain.bootstrapBrokers as string[], auth: { kind: 'none' }, tls: false } as const

const deploy = (topic: string) =>
  handler(
    {
      RequestType: 'Create',
      ResourceType: topicResourceType,
      ResourceProperties: {
        ServiceToken: 'arn',
        Request: JSON.stringify({ formatVersion: 1, stage: 'by-line', cluster, topic: { name: topic } }),
      },
    } as never,
    { getRemainingTimeInMillis: () => 20_000 },
  )

const asks: [string, (topic: string) => Promise<unknown>][] = [
  ['a reader', (topic) => reader().topic(topic, never())],
  ['a producer', (topic) => producer().topic(topic, never())],
  ['an admin', (topic) => admin().topic(topic, never())],
  ['an admin that makes it', (topic) => admin().createTopic(topic, { partitions: 1 }, never())],
  [
    'the lineage of a source',
    (topic) =>
      kafkaLineage({ reader: reader(), topic, clock: new InstantClock() }).identity?.(never()) as Promise<string>,
  ],
  [
    'who publishes frames',
    (topic) =>
      kafkaFramePublisher({ producer: producer(), topic, partitions: 1, ...testPorts() }).publish(
        [{ slot: 0, bytes: Buffer.from('a') }],
        never(),
      ),
  ],
  ['a deployment', deploy],
]

withBroker('a topic of brokers older than Kafka 2.8', () => {
  describe.each([
    ['with its name for an id', metadataV8],
    ['with an id of zeros', metadataV9],
  ])('%s', (_, version) => {
    test.each(asks)('is refused by %s', async (_name, ask) => {
      const topic = await newTopic()
      describeWith(version as never)
      await expect(ask(topic)).rejects.toMatchObject({
        name: 'ConfigurationError',
        message: expect.stringMatching(new RegExp(`topic "${topic}" no id.*Kafka 2\\.8 or newer`)),
      })
    })
  })
})
