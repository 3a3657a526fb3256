/** The topics of keyed stages, made and checked by the handler that CloudFormation asks through the CDK's provider. */
import type { CloudFormationCustomResourceEvent } from 'aws-lambda'
import { kafkaFramePublisher } from '../../lib/aws/kafka/frame-publisher-kafka.ts'
import { handler } from '../../lib/aws/kafka/topic-function.ts'
import type { TopicAnswer } from '../../lib/aws/kafka/topic-resource.ts'
import { type TopicRequest, topicCheckType, topicResourceType } from '../../lib/plan/topic-request.ts'
import { mostFrameBytes } from '../../lib/runtime/frames/frame-format.ts'
import { testPorts } from '../aws/sink-worlds.ts'
import { admin, never, newTopic, plain, producer, recordsIn, recreate, withBroker } from './broker.ts'

jest.setTimeout(60_000)

const context = { getRemainingTimeInMillis: () => 60_000 }
const cluster = { brokers: plain.bootstrapBrokers as string[], auth: { kind: 'none' }, tls: false } as const

const asked = (change: Partial<TopicRequest> = {}): TopicRequest => ({
  formatVersion: 1,
  stage: 'by-driver',
  slots: 64,
  cluster,
  topic: { prefix: 'rides-by-driver-' },
  partitions: 8,
  retentionMs: 604_800_000,
  replicas: 1,
  settings: {},
  isDeletedWithStage: false,
  ...change,
})

let requests = 0

/** An event as CloudFormation sends it; the same `id` is the same request come again. */
function eventOf(type: string, properties: object, rest: object): CloudFormationCustomResourceEvent {
  const base = {
    RequestType: 'Create',
    ServiceToken: 'arn:aws:lambda:eu-central-1:111122223333:function:provider',
    ResponseURL: 'https://example.com/answer',
    StackId: `arn:aws:cloudformation:eu-central-1:111122223333:stack/Rides/${process.pid}`,
    RequestId: `request-${++requests}`,
    LogicalResourceId: 'RidesByDriverTopic',
    ResourceType: type,
    ResourceProperties: { ServiceToken: 'arn', ...properties },
  }
  return { ...base, ...rest } as CloudFormationCustomResourceEvent
}

const keep = (request: TopicRequest, rest: object = {}): Promise<TopicAnswer> =>
  handler(eventOf(topicResourceType, { Request: JSON.stringify(request) }, rest), context)

const check = (request: TopicRequest, { Data }: TopicAnswer): Promise<TopicAnswer> =>
  handler(eventOf(topicCheckType, { Request: JSON.stringify(request), ...Data }, {}), context)

const update = (request: TopicRequest, { PhysicalResourceId }: TopicAnswer, before = asked()): Promise<TopicAnswer> =>
  keep(request, {
    RequestType: 'Update',
    PhysicalResourceId,
    OldResourceProperties: { Request: JSON.stringify(before) },
  })

const remove = (request: TopicRequest, { PhysicalResourceId }: TopicAnswer): Promise<TopicAnswer> =>
  keep(request, { RequestType: 'Delete', PhysicalResourceId })

/** Asks again until it holds: what is changed takes a moment to be seen. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await Promise.resolve()
}

async function set(topic: string, name: string, value: string): Promise<void> {
  await admin().changeSettings(topic, { [name]: value }, never())
  await until(async () => (await settingsOf(topic))[name] === value)
}

const isGone = async (topic: string) => (await admin().topic(topic, never())) === undefined

const settingsOf = async (topic: string) => Object.fromEntries(await admin().settingsOf(topic, never()))

withBroker('the topic of a keyed stage', () => {
  test('is made with its partitions and what frames need, and takes the largest frame at once', async () => {
    const made = await keep(asked({ settings: { 'compression.type': 'zstd' } }))
    const { Topic: topic, TopicId: topicId } = made.Data
    expect(topic).toMatch(/^rides-by-driver-[0-9a-f]{10}$/)
    expect(made.PhysicalResourceId).toBe(`${topic}/${topicId}`)
    expect(await admin().topic(topic, never())).toEqual({ id: topicId, partitions: 8 })
    expect(await settingsOf(topic)).toMatchObject({
      'cleanup.policy': 'delete',
      'compression.type': 'zstd',
      'max.message.bytes': '1048704',
      'message.timestamp.type': 'LogAppendTime',
      'retention.bytes': '-1',
      'retention.ms': '604800000',
    })
    const publisher = kafkaFramePublisher({ producer: producer(), topic, topicId, partitions: 8, ...testPorts() })
    await publisher.publish([{ slot: 9, bytes: Buffer.alloc(mostFrameBytes, 7) }], never())
    expect(await recordsIn(topic, 1)).toHaveLength(1)
    expect(await check(asked(), made)).toMatchObject({ Data: made.Data })
  })

  test('is one where a request comes twice, and another where it is made again', async () => {
    const once = await keep(asked(), { RequestId: 'the-same' })
    expect(await keep(asked(), { RequestId: 'the-same' })).toEqual(once)
    expect((await keep(asked())).Data.Topic).not.toBe(once.Data.Topic)
  })

  test('gets the retention that it is to have, and what else was changed beside the deployment', async () => {
    const made = await keep(asked())
    await set(made.Data.Topic, 'max.message.bytes', '1000')
    const changed = asked({ retentionMs: 86_400_000 })
    expect(await update(changed, made)).toEqual(made)
    expect(await settingsOf(made.Data.Topic)).toMatchObject({
      'retention.ms': '86400000',
      'max.message.bytes': '1048704',
    })
    await check(changed, made)
  })

  test('stays where its stage goes, unless it is to go with it', async () => {
    const made = await keep(asked())
    expect(await remove(asked(), made)).toEqual(made)
    expect(await admin().topic(made.Data.Topic, never())).toMatchObject({ id: made.Data.TopicId })
    expect(await remove(asked({ isDeletedWithStage: true }), made)).toEqual(made)
    await until(() => isGone(made.Data.Topic))
    // CloudFormation asks again where the answer was lost.
    expect(await remove(asked({ isDeletedWithStage: true }), made)).toEqual(made)
  })
})

/** Each says what was done to the topic, what is asked for, and what is refused. */
const refusals: [string, (topic: string) => Promise<unknown>, Partial<TopicRequest>, RegExp][] = [
  [
    'another count is asked for',
    async () => undefined,
    { partitions: 16 },
    /^topic "(.+)" of stage "by-driver" has 8 partitions, and 16 are asked for: .*Say `partitions: 8` where/,
  ],
  [
    'partitions were added',
    (topic) => admin().addPartitions(topic, 12, never()),
    {},
    /^topic "(.+)" of stage "by-driver" has 12 partitions, and 8 are asked for: .*a power of two of at most 64, .*give the stage another name/,
  ],
  [
    'it was deleted and made again',
    (topic) => recreate(topic, 8),
    {},
    /^topic "(.+)" of stage "by-driver" has the id .+, and the stage was deployed with .+: the topic was deleted and made again, .*give the stage another name/,
  ],
  [
    'it was deleted',
    async (topic) => {
      await admin().deleteTopic(topic, never())
      await until(() => isGone(topic))
    },
    {},
    /^there is no topic "(.+)", which stage "by-driver" reads: it was deleted/,
  ],
  [
    'it takes too small a frame',
    (topic) => set(topic, 'max.message.bytes', '1048588'),
    {},
    /^topic "(.+)" of stage "by-driver" has max\.message\.bytes 1048588: the largest frame takes 1048704, .*; set it to 1048704\.$/,
  ],
  [
    'it has the time of its writers',
    (topic) => set(topic, 'message.timestamp.type', 'CreateTime'),
    {},
    /^topic "(.+)" of stage "by-driver" has message\.timestamp\.type CreateTime: .*set it to LogAppendTime\.$/,
  ],
  [
    'it keeps frames for longer than the stage knows of',
    (topic) => set(topic, 'retention.ms', '1209600000'),
    {},
    /^topic "(.+)" of stage "by-driver" has retention\.ms 1209600000: .*set it to 604800000, or say `retention: Duration\.millis\(1209600000\)`\.$/,
  ],
  [
    'it keeps the last of a key',
    (topic) => set(topic, 'cleanup.policy', 'compact'),
    {},
    /^topic "(.+)" of stage "by-driver" has cleanup\.policy compact: .*set it to delete\.$/,
  ],
  [
    'the stage is to read another',
    async () => undefined,
    { topic: { name: 'others' } },
    /^stage "by-driver" reads topic "(.+)", and is to read "others" now: .*give the stage another name/,
  ],
]

withBroker('a deployment', () => {
  test.each(refusals)('is refused where %s, and can be taken back', async (_, done, change, message) => {
    const made = await keep(asked())
    await done(made.Data.Topic)
    const refused = await check(asked(change), made).catch((thrown) => thrown)
    expect(refused).toMatchObject({ name: 'ConfigurationError', message: expect.stringMatching(message) })
    expect(message.exec(refused.message)?.[1]).toBe(made.Data.Topic)
    // One line, which is all that CloudFormation shows.
    expect(refused.stack).toBe(`ConfigurationError: ${refused.message}`)
    expect(refused.message).not.toContain('\n')
    // The resource goes to what is asked for and back, whatever the check says: else the stack could not roll back.
    expect(await update(asked(change), made)).toEqual(made)
    expect(await update(asked(), made, asked(change))).toEqual(made)
  })

  test('neither changes nor deletes another topic that took the name', async () => {
    const made = await keep(asked())
    await recreate(made.Data.Topic, 8)
    const doomed = asked({ isDeletedWithStage: true, retentionMs: 86_400_000 })
    await update(doomed, made)
    expect(await settingsOf(made.Data.Topic)).toMatchObject({ 'max.message.bytes': '1048588' })
    await remove(doomed, made)
    expect(await admin().topic(made.Data.Topic, never())).toBeDefined()
  })
})

withBroker('a topic that the user brings', () => {
  const fitting = {
    'max.message.bytes': '2097152',
    'message.timestamp.type': 'LogAppendTime',
    'retention.bytes': '-1',
    'retention.ms': '604800000',
  }

  test('is remembered by its id, and never changed or deleted', async () => {
    const name = await newTopic(4, fitting)
    const request = asked({ topic: { name }, partitions: 4 })
    const brought = await keep(request)
    expect(brought.Data).toEqual({ Topic: name, TopicId: (await admin().topic(name, never()))?.id })
    await check(request, brought)
    await update({ ...request, retentionMs: 86_400_000 }, brought, request)
    await remove({ ...request, isDeletedWithStage: true }, brought)
    expect(await settingsOf(name)).toMatchObject(fitting)
  })

  test('is refused where there is none, and where it was made with another count or for smaller messages', async () => {
    await expect(keep(asked({ topic: { name: 'nowhere' } }))).rejects.toThrow(
      /^there is no topic "nowhere", which stage "by-driver" is to read: make it first, or leave `name` out/,
    )
    const name = await newTopic(6, { ...fitting, 'max.message.bytes': '1048588' })
    const request = asked({ topic: { name } })
    const brought = await keep(request)
    await expect(check(request, brought)).rejects.toThrow(
      /has 6 partitions, and 8 are asked for: .*It must be a power of two/,
    )
    await expect(check({ ...request, partitions: 6 }, brought)).rejects.toThrow(/has max\.message\.bytes 1048588: /)
  })
})

withBroker('what a cluster refuses', () => {
  test('is said with the name that it has there, and what to do', async () => {
    await expect(keep(asked({ replicas: 3 }))).rejects.toThrow(
      /^the topic of stage "by-driver" could not be made or looked at, at 127.*\(INVALID_REPLICATION_FACTOR: .*\): the cluster has fewer brokers/,
    )
    await expect(keep(asked({ settings: { 'min.insync.replicas': '-3' } }))).rejects.toThrow(/\(INVALID_CONFIG: /)
  })
})

test('a cluster that nobody answers for is given up before the function is', async () => {
  const nobody = asked({ cluster: { ...cluster, brokers: ['127.0.0.1:1'] } })
  const event = eventOf(topicResourceType, { Request: JSON.stringify(nobody) }, {})
  await expect(handler(event, { getRemainingTimeInMillis: () => 7_000 })).rejects.toThrow(
    /could not be made or looked at, at 127\.0\.0\.1:1 \(.*\): check that the brokers are right, and that the cluster's security group lets/,
  )
})
