/** What the topics of keyed stages do without a broker: when a cluster is asked, how patiently, and when not at all. */
import type { CloudFormationCustomResourceEvent } from 'aws-lambda'
import { KafkaFailure } from '../../../lib/aws/kafka/kafka-failure.ts'
import type { KafkaAdmin } from '../../../lib/aws/kafka/kafka-port.ts'
import { answerDeployment } from '../../../lib/aws/kafka/topic-resource.ts'
import { frameSettings, type TopicRequest, topicCheckType, topicResourceType } from '../../../lib/plan/topic-request.ts'
import { InstantClock, never } from '../sink-worlds.ts'

const request: TopicRequest = {
  formatVersion: 1,
  stage: 'by-driver',
  slots: 64,
  cluster: { brokers: ['b-1:9098'], auth: { kind: 'iam', region: 'eu-central-1' }, tls: true },
  topic: { prefix: 'rides-by-driver-' },
  partitions: 8,
  retentionMs: 604_800_000,
  settings: {},
  isDeletedWithStage: false,
}

/** A deployment that finds a cluster like that. */
function deployment(admin: Partial<KafkaAdmin>) {
  const clock = new InstantClock()
  let opened = 0
  const ports = {
    clock,
    open: () => {
      opened++
      return { close: async () => undefined, ...admin } as KafkaAdmin
    },
  }
  const answer = (rest: object = {}, change: object = {}) => {
    const event = {
      RequestType: 'Create',
      StackId: 'stack',
      RequestId: 'request',
      LogicalResourceId: 'Topic',
      ResourceType: topicResourceType,
      ResourceProperties: { Request: JSON.stringify({ ...request, ...change }) },
      ...rest,
    }
    return answerDeployment(event as unknown as CloudFormationCustomResourceEvent, ports, never())
  }
  return { answer, clock, opened: () => opened }
}

/** A cluster that fails so often before it answers, each time later by the clock's second. */
function world(failure?: KafkaFailure, times = Number.POSITIVE_INFINITY) {
  let left = times
  return deployment({
    async createTopic() {
      if (failure && left-- > 0) throw failure
      return { id: 'id-1', partitions: 8 }
    },
    settingsOf: async () => new Map(Object.entries(frameSettings(request.retentionMs))),
  })
}

/** A cluster that has one topic, as a user may have made it. What is changed is seen so many looks later. */
function clusterWith(topic: string, looksUntilSeen = 0) {
  let settings = { ...frameSettings(request.retentionMs), 'max.message.bytes': '2097152' }
  let changed = settings
  let looks = 0
  const deleted: string[] = []
  const made = deployment({
    topic: async (name) => (name === topic ? { id: 'id-1', partitions: 8 } : undefined),
    async settingsOf() {
      if (changed !== settings && looks-- <= 0) settings = changed
      return new Map(Object.entries(settings))
    },
    async changeSettings(_, changes) {
      changed = { ...settings, ...changes }
      looks = looksUntilSeen
    },
    async deleteTopic(name) {
      deleted.push(name)
    },
  })
  return { ...made, deleted, changed: () => changed }
}

const failure = (name: string, passes = false) => new KafkaFailure(name, 'said the broker', { passes })

test.each(['TOPIC_AUTHORIZATION_FAILED', 'CLUSTER_AUTHORIZATION_FAILED', 'SASL_AUTHENTICATION_FAILED'])(
  '%s is waited out for a minute, as a role takes a while to come into effect',
  async (name) => {
    const settling = world(failure(name), 30)
    expect(await settling.answer()).toMatchObject({ Data: { TopicId: 'id-1' } })
    expect(settling.clock.nowMs()).toBe(30_000)
    const refused = world(failure(name))
    await expect(refused.answer()).rejects.toMatchObject({ name: 'ConfigurationError', code: 'topic-unreachable' })
    expect(refused.clock.nowMs()).toBe(60_000)
  },
)

test('what passes by itself is asked again, and what does not is said at once', async () => {
  const passing = world(failure('LEADER_NOT_AVAILABLE', true), 120)
  expect(await passing.answer()).toMatchObject({ Data: { TopicId: 'id-1' } })
  const refused = world(failure('POLICY_VIOLATION'))
  await expect(refused.answer()).rejects.toThrow(
    'the topic of stage "by-driver" could not be made or looked at, at b-1:9098 (POLICY_VIOLATION: said the broker): the cluster has a rule against such topics: have one made by who may, and say its `name`.',
  )
  expect(refused.clock.sleptMs).toEqual([])
})

const doomed = { isDeletedWithStage: true, retentionMs: 3_600_000 }

test.each([
  ['by its creation, whatever its name is like', 'rides-by-driver-1700000000', undefined],
  // As a release wrote it that did not know of brought topics what it knows now.
  ['by its name', 'frames-1700000000', 'frames-1700000000/id-1'],
  ['by its name, which a longer one of ours would begin with', 'rides-by-driver-1', 'rides-by-driver-1/id-1'],
])(
  'a topic that the user brought is known %s, and neither changed nor deleted where `name` is taken away',
  async (_, name, known) => {
    const { answer, changed, deleted } = clusterWith(name)
    const before = changed()
    const brought = await answer({}, { topic: { name } })
    expect(brought.Data).toEqual({ Topic: name, TopicId: 'id-1' })
    const PhysicalResourceId = known ?? brought.PhysicalResourceId
    for (const RequestType of ['Update', 'Delete']) {
      // With another id CloudFormation would delete what it takes for replaced.
      expect(await answer({ RequestType, PhysicalResourceId }, doomed)).toEqual({ ...brought, PhysicalResourceId })
    }
    expect(changed()).toBe(before)
    expect(deleted).toEqual([])
  },
)

test('a topic of ours is changed, and deleted where that is asked', async () => {
  const { answer, changed, deleted } = clusterWith('rides-by-driver-0123456789')
  const PhysicalResourceId = 'rides-by-driver-0123456789/id-1'
  expect(await answer({ RequestType: 'Update', PhysicalResourceId }, doomed)).toMatchObject({ PhysicalResourceId })
  expect(changed()).toEqual(frameSettings(3_600_000))
  await answer({ RequestType: 'Delete', PhysicalResourceId }, doomed)
  expect(deleted).toEqual(['rides-by-driver-0123456789'])
})

test('what was changed is waited for until the brokers say so, as a check may come at once', async () => {
  const { answer, clock } = clusterWith('rides-by-driver-0123456789', 3)
  await answer({ RequestType: 'Update', PhysicalResourceId: 'rides-by-driver-0123456789/id-1' }, doomed)
  expect(clock.sleptMs).toEqual([200, 200, 200, 200])
})

test('a stack goes without its cluster being asked, and a check is made and never changed', async () => {
  const { answer, opened } = world()
  const PhysicalResourceId = 'rides-by-driver-0123456789/id-1'
  const same = { PhysicalResourceId, Data: { Topic: 'rides-by-driver-0123456789', TopicId: 'id-1' } }
  expect(await answer({ RequestType: 'Delete', PhysicalResourceId })).toEqual(same)
  for (const RequestType of ['Update', 'Delete'])
    expect(await answer({ ResourceType: topicCheckType, RequestType, PhysicalResourceId })).toEqual(same)
  expect(opened()).toBe(0)
})

test('a request of a newer release is refused', async () => {
  await expect(world().answer({}, { formatVersion: 2 })).rejects.toThrow(
    'the resource Topic asks for a topic in the format version 2, and this release of Millrace reads 1',
  )
})
