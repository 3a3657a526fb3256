/** That a topic which was made can be written to: what makes it waits for the leaders of its partitions. */
import { Admin } from '@platformatic/kafka'
import { admin, never, newTopic, withBroker } from './broker.ts'

type Metadata = Admin['metadata']

/** The broker's answers, the first `looks` of them as while leaders are still elected: one partition is without. */
function withoutLeader(looks: number) {
  const metadata = Admin.prototype.metadata as (...all: unknown[]) => ReturnType<Metadata>
  let left = looks
  return jest.spyOn(Admin.prototype, 'metadata').mockImplementation(async function (this: Admin, ...all: unknown[]) {
    const answer = await metadata.apply(this, all)
    if (left-- <= 0) return answer
    for (const { partitions } of answer.topics.values()) {
      const last = partitions.at(-1)
      if (last) partitions[partitions.length - 1] = { ...last, leader: -1 }
    }
    return answer
  } as Metadata)
}

withBroker('who makes topics', () => {
  afterEach(() => jest.restoreAllMocks())

  test('is answered once each partition has a leader, and not before', async () => {
    const looks = withoutLeader(2)
    await newTopic(3)
    // The broker itself may take a look more.
    expect(looks.mock.calls.length).toBeGreaterThanOrEqual(3)
  })

  test('waits for the leaders of partitions that are added, too', async () => {
    const topic = await newTopic(2)
    const looks = withoutLeader(2)
    expect(await admin().addPartitions(topic, 4, never())).toMatchObject({ partitions: 4 })
    expect(looks.mock.calls.length).toBeGreaterThanOrEqual(3)
  })

  test('is told that leaders are missing where the time is over', async () => {
    withoutLeader(Number.POSITIVE_INFINITY)
    const controller = new AbortController()
    const making = admin().createTopic(`unled-${process.pid}-${Date.now()}`, { partitions: 1 }, controller.signal)
    controller.abort()
    await expect(making).rejects.toMatchObject({ name: 'DEADLINE', passes: true })
  })
})
