/** The rules of lib/aws/kafka/kafka-group.ts, each against a broker. */
import { openGroupOffsets } from '../../lib/aws/kafka/group-offsets.ts'
import { openGroup } from '../../lib/aws/kafka/kafka-group.ts'
import { admin, broker, closing, never, newTopic, patiently, plain, withBroker, withOwnBroker } from './broker.ts'

jest.setTimeout(120_000)

function groupOf(topic: string, group = topic) {
  const opened = openGroup(plain, { group, topic })
  closing.push(() => opened.close())
  return opened
}

/** What the group has committed at the broker, asked for from outside of it. */
async function committedAt(topic: string, partitions: number): Promise<ReadonlyMap<number, bigint>> {
  const offsets = openGroupOffsets(plain)
  try {
    return await offsets.committed(topic, topic, partitions)
  } finally {
    await offsets.close()
  }
}

const ignored = () => undefined

withBroker('the group of a mapping', () => {
  test('commits by partition, and finds it again after it has left and joined', async () => {
    const topic = await newTopic(3)
    const group = groupOf(topic)
    const membership = await group.join(ignored)
    expect(await membership.committed()).toEqual(new Map())
    await Promise.all([membership.commit(0, 5n), membership.commit(2, 7n)])
    await membership.commit(0, 6n)
    expect(await committedAt(topic, 3)).toEqual(
      new Map([
        [0, 6n],
        [2, 7n],
      ]),
    )
    await group.close()
    expect(await (await group.join(ignored)).committed()).toEqual(await committedAt(topic, 3))
  })

  test('joins anew, and what the generation before commits is refused, without a word to the mapping', async () => {
    const topic = await newTopic()
    const group = groupOf(topic)
    const lost = jest.fn()
    const before = await group.join(lost)
    await before.commit(0, 5n)
    const after = await group.join(lost)
    await expect(before.commit(0, 3n)).rejects.toThrow()
    expect(lost).not.toHaveBeenCalled()
    await after.commit(0, 6n)
    expect(await committedAt(topic, 1)).toEqual(new Map([[0, 6n]]))
  })

  test('is told by a refused commit that somebody else joined, and overwrites nothing of his', async () => {
    const topic = await newTopic()
    const lost = jest.fn()
    const before = await groupOf(topic).join(lost)
    await before.commit(0, 5n)
    const other = groupOf(topic)
    const theirs = await other.join(ignored)
    // The client of the first joined again by itself, for the other to have a generation; its old one stays over.
    await expect(before.commit(0, 3n)).rejects.toMatchObject({ name: 'ILLEGAL_GENERATION' })
    expect(lost).toHaveBeenCalledTimes(1)
    await theirs.commit(0, 9n)
    expect(await committedAt(topic, 1)).toEqual(new Map([[0, 9n]]))
  })

  test('has the offsets of a partition that was added, and none of a topic that was made again', async () => {
    const topic = await newTopic()
    const group = groupOf(topic)
    await (await group.join(ignored)).commit(0, 5n)
    await admin().addPartitions(topic, 2, never())
    const membership = await group.join(ignored)
    await membership.commit(1, 1n)
    expect((await membership.committed()).size).toBe(2)
    await group.close()
    const { id } = await admin().createTopic(topic, { partitions: 2 }, never())
    await admin().deleteTopic(topic, never())
    while ((await admin().createTopic(topic, { partitions: 2 }, never())).id === id) await Promise.resolve()
    expect(await (await group.join(ignored)).committed()).toEqual(new Map())
  })
})

withOwnBroker('the group of a mapping, at a broker that restarts', () => {
  test('commits with the same membership when it is back', async () => {
    const topic = await newTopic()
    const membership = await groupOf(topic).join(ignored)
    await membership.commit(0, 5n)
    await broker('term')
    await expect(membership.commit(0, 6n)).rejects.toMatchObject({ passes: true })
    await broker('restart')
    await patiently(() => membership.commit(0, 6n))
    expect(await committedAt(topic, 1)).toEqual(new Map([[0, 6n]]))
  })
})
