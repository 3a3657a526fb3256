import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { kafkaLineage } from '../../lib/aws/kafka/kafka-lineage.ts'
import { Topology, text as texts } from '../../lib/index.ts'
import { kafkaEvent, lambdaContext, memoryPorts } from '../../lib/testing/index.ts'
import { InstantClock } from '../aws/sink-worlds.ts'
import { admin, never, newTopic, producer, reader, recordsIn, recreate, text, withBroker } from './broker.ts'

withBroker('a source that feeds a keyed stage', () => {
  async function stage(partitions: number) {
    const topic = await newTopic(partitions)
    const app = new Topology('rides')
    app
      .source(topic, texts())
      .keyBy('by-line', (line) => line)
      .reduce('last', (_, line) => line, { emit: 'on-update' })
      .to(app.sink<string>('out'))
    const ports = memoryPorts()
    const lineage = kafkaLineage({ reader: reader(), topic, clock: new InstantClock() })
    const handler = streamHandler(app, {
      ports: { ...ports, lineage: (name) => (name === topic ? lineage : ports.lineage?.(name)) },
    })
    const writer = producer()
    const write = (values: readonly string[], partition = 0) =>
      writer.send(
        topic,
        values.map((value) => ({ partition, key: undefined, value: Buffer.from(value) })),
        never(),
      )
    /** What a mapping would send of a partition from `offset` on. */
    const deliver = async (offset = 0, partition = 0) => {
      const records = (await recordsIn(topic, partition)).filter((record) => record.offset >= offset)
      const rows = records.map((record) => ({ offset: Number(record.offset), value: text(record.value) }))
      return handler(kafkaEvent({ [`${topic}-${partition}`]: rows }), lambdaContext())
    }
    return { topic, write, deliver, ports }
  }

  test('drops what it did, and refuses a topic of the same name whose offsets start over', async () => {
    const { topic, write, deliver, ports } = await stage(1)
    await write(['a', 'b', 'c'])
    expect(await deliver()).toEqual({ batchItemFailures: [] })
    expect(ports.takeFrames('by-line')).not.toHaveLength(0)
    // A batch that comes again is done already.
    expect(await deliver()).toEqual({ batchItemFailures: [] })
    expect(ports.takeFrames('by-line')).toHaveLength(0)
    await recreate(topic)
    await write(['d'])
    await expect(deliver()).rejects.toMatchObject({ name: 'ConfigurationError', code: 'recreated-log' })
    expect(ports.takeFrames('by-line')).toHaveLength(0)
  })

  test('takes up a partition that was added, from its beginning', async () => {
    const { topic, write, deliver, ports } = await stage(1)
    await write(['a'])
    await deliver()
    ports.takeFrames('by-line')
    await admin().addPartitions(topic, 2, never())
    // The producer learns of it with its next look at the topic.
    const late = producer()
    await late.send(topic, [{ partition: 1, key: undefined, value: Buffer.from('b') }], never())
    expect(await deliver(0, 1)).toEqual({ batchItemFailures: [] })
    expect(ports.takeFrames('by-line')).not.toHaveLength(0)
  })
})
