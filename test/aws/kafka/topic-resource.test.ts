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

/** A cluster that fails so often before it answers, each time later by the clock's second. */
function world(failure?: KafkaFailure, times = Number.POSITIVE_INFINITY) {
  const clock = new InstantClock()
  let opened = 0
  let left = times
  const admin: Partial<KafkaAdmin> = {
    async createTopic() {
      if (failure && left-- > 0) throw failure
      return { id: 'id-1', partitions: 8 }
    },
    settingsOf: async () => new Map(Object.entries(frameSettings(request.retentionMs))),
    close: async () => undefined,
  }
  const ports = {
    clock,
    open: () => {
      opened++
      return admin as KafkaAdmin
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
