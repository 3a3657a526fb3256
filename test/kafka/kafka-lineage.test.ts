import { Admin, Producer } from '@platformatic/kafka'
import { kafkaLineage } from '../../lib/aws/kafka/kafka-lineage.ts'
import { slotsHeld } from '../../lib/core/slot.ts'
import { InstantClock } from '../aws/sink-worlds.ts'
import {
  admin,
  closing,
  inOpenTransaction,
  never,
  newTopic,
  plain,
  producer,
  reader,
  recreate,
  withBroker,
} from './broker.ts'

const lineageOf = (topic: string, changes: object = {}) =>
  kafkaLineage({ reader: reader(), topic, clock: new InstantClock(), ...changes })

const write = (topic: string, times: readonly number[], partition = 0) =>
  producer().send(
    topic,
    times.map((timestampMs) => ({ partition, key: undefined, value: Buffer.from('a'), timestampMs })),
    never(),
  )

withBroker('the lineage of a topic', () => {
  test('lists partitions by their numbers, open and without parents, with the slots that they hold', async () => {
    const topic = await newTopic(4)
    const listed = await lineageOf(topic).list(never())
    expect(listed).toEqual(
      ['0', '1', '2', '3'].map((partition) => ({
        partition,
        parents: [],
        remainder: Number(partition),
        partitions: 4,
        isClosed: false,
      })),
    )
    expect(listed.flatMap((place) => slotsHeld(place, 16)).sort((a, b) => a - b)).toEqual([...Array(16).keys()])
  })

  test('a partition that is added to a source joins without a parent; one that is not there is unknown', async () => {
    const topic = await newTopic(1)
    const lineage = lineageOf(topic)
    expect(await lineage.describe('1', never())).toBeUndefined()
    await admin().addPartitions(topic, 2, never())
    expect(await lineage.describe('1', never())).toEqual({ parents: [], remainder: 1, partitions: 2 })
    expect(await lineage.isDrained('0', undefined, never())).toBe(false)
  })

  test('another number of partitions than a keyed stage began with is refused, with what to do', async () => {
    const topic = await newTopic(4)
    for (const ask of [
      lineageOf(topic, { partitions: 2 }).list(never()),
      lineageOf(topic, { partitions: 8 }).describe('0', never()),
    ]) {
      await expect(ask).rejects.toMatchObject({ name: 'ConfigurationError', code: 'partitions-changed' })
    }
    expect(await lineageOf(topic, { partitions: 4 }).list(never())).toHaveLength(4)
  })

  test('a topic that was made again has another identity, asked for each time', async () => {
    const topic = await newTopic()
    const lineage = lineageOf(topic)
    const before = (await lineage.identity?.(never())) as string
    expect(await lineage.identity?.(never())).toBe(before)
    await recreate(topic)
    expect(await lineage.identity?.(never())).not.toBe(before)
    await expect(lineageOf(topic, { topicId: before }).list(never())).rejects.toMatchObject({ code: 'recreated-topic' })
  })

  test('a topic that is not there is a mistake in the configuration', async () => {
    await expect(lineageOf('no-such-topic').list(never())).rejects.toMatchObject({
      name: 'ConfigurationError',
      code: 'unknown-topic',
    })
  })

  test('is caught up behind the last record, and from the start where there is none', async () => {
    const topic = await newTopic()
    const lineage = lineageOf(topic)
    expect(await lineage.isCaughtUp('0', undefined, never())).toBe(true)
    await write(topic, [100, 200])
    expect(await lineage.isCaughtUp('0', undefined, never())).toBe(false)
    expect(await lineage.isCaughtUp('0', '0', never())).toBe(false)
    expect(await lineage.isCaughtUp('0', '1', never())).toBe(true)
  })

  test('what lies before the time from which it is read is read by nobody', async () => {
    const topic = await newTopic()
    await write(topic, [100, 200])
    const from = (startingAtMs: number) => lineageOf(topic, { startingAtMs })
    expect(await from(150).isCaughtUp('0', undefined, never())).toBe(false)
    expect(await from(201).isCaughtUp('0', undefined, never())).toBe(true)
    expect(await from(0).isCaughtUp('0', undefined, never(), 201)).toBe(true)
    expect(await from(0).isCaughtUp('0', undefined, never(), 200)).toBe(false)
  })

  test('control records and aborted transactions behind the last record are nothing to be caught up with', async () => {
    const topic = await newTopic()
    const transactional = new Producer({
      clientId: 'millrace-test',
      ...plain,
      idempotent: true,
      transactionalId: `tx-${topic}`,
    })
    try {
      for (const commits of [true, false]) {
        const transaction = await transactional.beginTransaction()
        await transaction.send({ messages: [{ topic, partition: 0, value: Buffer.from('a') }] })
        await (commits ? transaction.commit() : transaction.abort())
      }
    } finally {
      await transactional.close()
    }
    const lineage = lineageOf(topic)
    expect(await lineage.isCaughtUp('0', undefined, never())).toBe(false)
    expect(await lineage.isCaughtUp('0', '0', never())).toBe(true)
  })

  test('is not caught up while a transaction is open: its records are there, and come once it is committed', async () => {
    const topic = await newTopic()
    await write(topic, [100])
    const lineage = lineageOf(topic)
    await inOpenTransaction(topic, async () => {
      expect(await lineage.isCaughtUp('0', '0', never())).toBe(false)
      expect(await lineage.isCaughtUp('0', undefined, never(), 101)).toBe(false)
      // Pollers may deliver what is not committed: AWS does not say.
      expect(await lineage.isCaughtUp('0', '1', never())).toBe(true)
    })
    expect(await lineage.isCaughtUp('0', '0', never())).toBe(false)
    expect(await lineage.isCaughtUp('0', '1', never())).toBe(true)
  })

  test('a topic that ends before what was read of it is never taken for caught up', async () => {
    const topic = await newTopic()
    await write(topic, [100])
    await expect(lineageOf(topic).isCaughtUp('0', '7', never())).rejects.toMatchObject({
      name: 'RetryableError',
      code: 'topic-shrunk',
    })
  })

  test('what retention took of what was not read yet can be missed by nobody', async () => {
    const topic = await newTopic()
    await write(topic, [100, 200, 300])
    const deletes = new Admin({ clientId: 'millrace-test', ...plain })
    closing.push(() => deletes.close())
    const deleteBefore = (offset: bigint) =>
      deletes.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset }] }] })
    await deleteBefore(2n)
    expect(await lineageOf(topic).isCaughtUp('0', '0', never())).toBe(false)
    await deleteBefore(3n)
    expect(await lineageOf(topic).isCaughtUp('0', '0', never())).toBe(true)
  })

  test('a cluster that does not answer is asked until the signal aborts', async () => {
    const controller = new AbortController()
    let slept = 0
    const clock = { nowMs: () => 0, sleep: async () => void (++slept === 3 && controller.abort()) }
    const lineage = kafkaLineage({ reader: reader({ bootstrapBrokers: ['127.0.0.1:1'] }), topic: 'any', clock })
    await expect(lineage.list(controller.signal)).rejects.toMatchObject({ code: 'lineage-deadline' })
    expect(slept).toBe(3)
  })
})
