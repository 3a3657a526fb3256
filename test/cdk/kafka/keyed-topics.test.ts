/** Keyed stages that read topics: what is made, who is told of it, what is granted and what is refused. */
import { Duration, RemovalPolicy, type Stack } from 'aws-cdk-lib'
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions'
import { Vpc } from 'aws-cdk-lib/aws-ec2'
import type { CfnFunction } from 'aws-cdk-lib/aws-lambda'
import type { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import {
  bind,
  CustomSink,
  DeadLetters,
  KafkaCluster,
  KafkaSource,
  KeyedStreams,
  type KeyedTopicsProps,
  KinesisSource,
  type StageProps,
  type StageTopicProps,
  StreamApplication,
} from '../../../lib/cdk/index.ts'
import { Topology, text } from '../../../lib/index.ts'
import { ridesIn } from '../rides.ts'
import { bindingsOf, bindingsOfFunction, entry, grantsOf, grantsOfRole, newStack, newStream, shopIn } from '../world.ts'
import { ridesOnTopics, topicsIn } from './keyed-world.ts'
import { arns, mskIn, networkIn, ofKafka } from './world.ts'

const topicOf = (stage: string) => ({
  'Fn::GetAtt': [expect.stringMatching(`^Rides${stage}Topic[0-9A-F]{8}$`), 'Topic'],
})
/** What whoever is told of a topic is told: by the check, so that it is deployed after it. */
const told = (stage: string, attribute: 'Topic' | 'TopicId') =>
  expect.stringMatching(`^.'Fn::GetAtt':.'Rides${stage}TopicCheck[0-9A-F]{8}[0-9a-f]{8}','${attribute}'..$`)

const makerOf = (application: StreamApplication) => application.topics?.function as NodejsFunction

describe('a keyed stage on a topic', () => {
  let stack: Stack
  let application: StreamApplication

  beforeAll(() => {
    stack = newStack()
    const cluster = mskIn(stack, { network: networkIn(stack), brokers: ['b-1:9098', 'b-2:9098'] })
    application = ridesOnTopics(stack, { cluster })
  })

  it('has a topic of 16 partitions, or of as many as it has slots, which keeps seven days and outlives the stack', () => {
    const topics = topicsIn(stack)
    expect(topics.map(({ request }) => request)).toEqual([
      {
        formatVersion: 1,
        stage: 'by-city',
        slots: 64,
        cluster: { brokers: ['b-1:9098', 'b-2:9098'], auth: { kind: 'iam', region: '<token>' }, tls: true },
        topic: { prefix: 'rides-app-by-city-' },
        partitions: 16,
        retentionMs: 604_800_000,
        settings: {},
        isDeletedWithStage: false,
      },
      expect.objectContaining({ stage: 'by-driver', slots: 8, partitions: 8 }),
    ])
    for (const topic of topics) expect(topic).toMatchObject({ DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' })
    Template.fromStack(stack).resourceCountIs('AWS::Kinesis::Stream', 0)
  })

  it('is checked against what its topic is remembered as, by one function for all of them', () => {
    const checks = topicsIn(stack, 'Custom::MillraceTopicCheck')
    expect(checks.map(({ request, Properties }) => [request.stage, Properties.Topic, Properties.TopicId])).toEqual([
      ['by-city', topicOf('bycity'), { 'Fn::GetAtt': [topicOf('bycity')['Fn::GetAtt'][0], 'TopicId'] }],
      ['by-driver', topicOf('bydriver'), { 'Fn::GetAtt': [topicOf('bydriver')['Fn::GetAtt'][0], 'TopicId'] }],
    ])
    const tokens = [...checks, ...topicsIn(stack)].map(({ Properties }) => JSON.stringify(Properties.ServiceToken))
    expect(new Set(tokens).size).toBe(1)
    // CloudFormation is answered from outside of the network, where nothing may lead out of it.
    const [framework] = Object.values(
      Template.fromStack(stack).findResources('AWS::Lambda::Function', {
        Properties: { Environment: { Variables: { USER_ON_EVENT_FUNCTION_ARN: Match.anyValue() } } },
      }),
    )
    expect(framework?.Properties.VpcConfig).toBeUndefined()
  })

  it('is read by pollers on demand from its oldest frame on, whole batches at a time', () => {
    const mappings = Object.values(Template.fromStack(stack).findResources('AWS::Lambda::EventSourceMapping'))
    const mapping = mappings.find(({ Properties }) => JSON.stringify(Properties.Topics).includes('bycity'))
    expect(mapping?.Properties).toMatchObject({ Topics: [topicOf('bycity')], StartingPosition: 'TRIM_HORIZON' })
    expect(mapping?.Properties).not.toHaveProperty('ProvisionedPollerConfig')
    expect(mapping?.Properties).not.toHaveProperty('FunctionResponseTypes')
    expect(mapping?.Properties).not.toHaveProperty('DestinationConfig')
  })

  it('is told of its topic with its count and its id, as is whoever feeds it and the announcer', () => {
    const cluster = {
      brokers: ['b-1:9098', 'b-2:9098'],
      auth: { kind: 'iam', region: "{'Ref':'AWS::Region'}" },
      tls: true,
    }
    const ofCity = { topic: told('bycity', 'Topic'), topicId: told('bycity', 'TopicId'), cluster, partitions: 16 }
    const ofDriver = { topic: told('bydriver', 'Topic'), topicId: told('bydriver', 'TopicId'), cluster, partitions: 8 }
    const read = { kind: 'kafka', mode: 'on-demand', clusterArn: expect.any(String) }
    const { sources, feeds, retentionMs, upstreamRetentionMs } = bindingsOf(stack, application, 'by-driver')
    expect(sources).toEqual([{ name: 'by-driver', ...read, ...ofDriver }])
    expect(feeds).toEqual([{ stage: 'by-city', slots: 64, ...ofCity }])
    expect([retentionMs, upstreamRetentionMs]).toEqual([604_800_000, 604_800_000])
    // What the source keeps is not known here, and so taken for seven days.
    expect(bindingsOf(stack, application, 'by-city').upstreamRetentionMs).toBe(2 * 604_800_000)
    // It lists the partitions of its source itself, to tell one that was added from one that was lost.
    expect(bindingsOf(stack, application, 'rides')).toMatchObject({
      sources: [{ name: 'rides', ...read, topic: 'rides', cluster }],
      feeds: [{ stage: 'by-driver', slots: 8, ...ofDriver }],
    })
    const state = { tableName: expect.any(String) }
    expect(bindingsOfFunction(stack, application.announcer?.function as never).announces).toEqual([
      { stage: 'rides', topic: 'rides', cluster, state },
      { stage: 'by-driver', ...ofDriver, state },
      { stage: 'by-city', ...ofCity, state },
    ])
  })

  it('stands in the network of the cluster, and so do all that speak to it', () => {
    const functions = Template.fromStack(stack).findResources('AWS::Lambda::Function', {
      Properties: { VpcConfig: { SecurityGroupIds: Match.anyValue() } },
    })
    expect(Object.keys(functions).map((id) => id.replace(/Function[0-9A-F]{8}$/, ''))).toEqual(
      expect.arrayContaining(['RidesAnnouncer', 'RidesTopics', 'Ridesbycity', 'Ridesbydriver', 'Ridesrides']),
    )
  })

  it('may read its own topic and write to the next, and the function of the topics may make and change them, and not write', () => {
    const named = (stage: string) => `"Rides${stage}Topic`
    const onTopics = (grants: readonly string[]) =>
      grants
        .filter((grant) => /^kafka-cluster:\w+(Topic|Data|Configuration) .*topic\//.test(grant))
        .map(
          (grant) =>
            /^kafka-cluster:(\w+) /.exec(grant)?.[1] +
            (grant.includes(named('bycity')) ? ' by-city' : grant.includes(named('bydriver')) ? ' by-driver' : ''),
        )
    expect(onTopics(grantsOf(stack, application, 'by-driver')).sort()).toEqual([
      'DescribeTopic by-city',
      'DescribeTopic by-driver',
      'ReadData by-driver',
      'WriteData by-city',
    ])
    expect(onTopics(grantsOf(stack, application, 'rides')).sort()).toEqual([
      'DescribeTopic',
      'DescribeTopic by-driver',
      'ReadData',
      'WriteData by-driver',
    ])
    const announcer = application.announcer?.function as never
    expect([...new Set(onTopics(grantsOfRole(stack, announcer)))].sort()).toEqual(
      [
        ...['DescribeTopic', 'ReadData'],
        ...['by-city', 'by-driver'].flatMap((stage) =>
          ['DescribeTopic', 'ReadData', 'WriteData'].map((action) => `${action} ${stage}`),
        ),
      ].sort(),
    )
    const administers = (topic: string) =>
      ['AlterTopicDynamicConfiguration', 'CreateTopic', 'DescribeTopic', 'DescribeTopicDynamicConfiguration'].map(
        (action) => `kafka-cluster:${action} ${arns.topic(`rides-app-${topic}-*`)}`,
      )
    expect(ofKafka(grantsOfRole(stack, makerOf(application)))).toEqual(
      [`kafka-cluster:Connect ${arns.cluster}`, ...administers('by-city'), ...administers('by-driver')].sort(),
    )
  })

  it('is reached by its name, and says where a stream is asked for', () => {
    const { topic } = application.stage('by-driver')
    expect(stack.resolve(topic.topicName)).toEqual(topicOf('bydriver'))
    expect(topic.partitions).toBe(8)
    expect(() => application.stage('by-driver').stream).toThrow(
      '"by-driver" has no stream of its own, as it reads a topic',
    )
    expect(() => application.stage('rides').topic).toThrow('stage "rides" has no topic of its own, as it is not keyed')
  })

  it('is watched by how many records it is behind, and by no age of a stream', () => {
    expect(application.alarms?.of('by-driver', 'offset-lag')).toBeDefined()
    expect(application.alarms?.of('by-driver', 'iterator-age')).toBeUndefined()
    expect(application.alarms?.of('by-driver', 'stream-throttles')).toBeUndefined()
  })
})

describe('the check of a topic', () => {
  const idOf = (topics: KeyedTopicsProps = {}, ofCity: StageProps = {}) => {
    const stack = newStack()
    return stack.resolve(
      ridesOnTopics(stack, { topics, stages: { 'by-city': ofCity } }).stage('by-city').topic.check.ref,
    ).Ref
  }

  it('is another resource where the code is other or what is asked for, and the same where nothing is', () => {
    const first = idOf()
    expect(first).toMatch(/^RidesbycityTopicCheck[0-9A-F]{8}[0-9a-f]{8}$/)
    expect(idOf()).toBe(first)
    expect(idOf({ retention: Duration.days(3) })).not.toBe(first)
    expect(idOf({ partitions: 4 })).not.toBe(first)
    expect(idOf({}, { bundling: { define: { 'process.env.RELEASE': '"2"' } } })).not.toBe(first)
    expect(idOf({}, { memorySize: 1_024 })).toBe(first)
  })
})

describe('what is said of topics', () => {
  it('is said of all, and of one stage where that has another', () => {
    const stack = newStack()
    const pollers = { minimum: 2, maximum: 8, group: 'rides' }
    const application = ridesOnTopics(stack, {
      topics: {
        partitions: 4,
        replicationFactor: 3,
        retention: Duration.days(2),
        settings: { 'min.insync.replicas': '2' },
        pollers,
      },
      stages: { 'by-city': { topic: { partitions: 32, removalPolicy: RemovalPolicy.DESTROY } } },
    })
    const [city, driver] = topicsIn(stack)
    const shared = { replicas: 3, retentionMs: 172_800_000, settings: { 'min.insync.replicas': '2' } }
    expect(city).toMatchObject({
      DeletionPolicy: 'Delete',
      request: { ...shared, partitions: 32, isDeletedWithStage: true },
    })
    expect(driver).toMatchObject({
      DeletionPolicy: 'Retain',
      request: { ...shared, partitions: 4, isDeletedWithStage: false },
    })
    Template.fromStack(stack).hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      Topics: [stack.resolve(application.stage('by-city').topic.topicName)],
      ProvisionedPollerConfig: { MinimumPollers: 2, MaximumPollers: 8, PollerGroupName: 'rides' },
      BisectBatchOnFunctionError: true,
      MaximumRetryAttempts: -1,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    })
    expect(bindingsOf(stack, application, 'by-city')).toMatchObject({
      sources: [{ mode: 'provisioned', partitions: 32 }],
      retentionMs: 172_800_000,
    })
    Annotations.fromStack(stack).hasInfo(
      '*',
      Match.stringLikeRegexp('by-city.* has provisioned pollers, which cost at least \\$\\d+ a month'),
    )
    const deletes = grantsOfRole(stack, makerOf(application)).filter((grant) => grant.includes(':DeleteTopic'))
    expect(deletes).toEqual([`kafka-cluster:DeleteTopic ${arns.topic('rides-app-by-city-*')}`])
  })

  it('may be a topic that is brought, at which the function of the topics only looks', () => {
    const stack = newStack()
    const application = ridesOnTopics(stack, {
      stages: { 'by-city': { topic: { name: 'city-frames', partitions: 32 } } },
    })
    expect(topicsIn(stack)[0]?.request).toMatchObject({ topic: { name: 'city-frames' }, partitions: 32 })
    expect(grantsOfRole(stack, makerOf(application)).filter((grant) => grant.includes('city'))).toEqual([
      `kafka-cluster:DescribeTopic ${arns.topic('city-frames')}`,
      `kafka-cluster:DescribeTopicDynamicConfiguration ${arns.topic('city-frames')}`,
    ])
    Template.fromStack(stack).hasResourceProperties('AWS::Lambda::EventSourceMapping', { Topics: ['city-frames'] })
  })

  it('may be in a cluster with users, of which functions are told no password', () => {
    const stack = newStack()
    const secret = new Secret(stack, 'User')
    const cluster = KafkaCluster.selfManaged({ brokers: ['kafka.example.com:9096'], auth: { secret } })
    const application = ridesOnTopics(stack, { cluster })
    for (const grants of [grantsOfRole(stack, makerOf(application)), grantsOf(stack, application, 'by-city')])
      expect(grants).toContain('secretsmanager:GetSecretValue {"Ref":"User00B015A1"}')
    expect(topicsIn(stack)[0]?.request.cluster).toEqual({
      brokers: ['kafka.example.com:9096'],
      auth: { kind: 'scram', secretArn: '<token>' },
      tls: true,
    })
  })

  it('leaves the network to the user where that is said', () => {
    const stack = newStack()
    const own = new Vpc(stack, 'Own')
    const application = ridesOnTopics(stack, {
      topics: { function: { vpc: own } },
      stages: { 'by-city': { function: { vpc: own } } },
      more: { announcer: { function: { vpc: own } } },
    })
    const subnets = stack.resolve(own.privateSubnets.map(({ subnetId }) => subnetId))
    for (const target of [
      makerOf(application),
      application.stage('by-city').function,
      application.announcer?.function,
    ]) {
      const id = stack.getLogicalId(target?.node.defaultChild as CfnFunction)
      expect(Template.fromStack(stack).toJSON().Resources[id].Properties.VpcConfig.SubnetIds).toEqual(subnets)
    }
  })
})

const refusals: [string, { topics?: KeyedTopicsProps; topic?: StageTopicProps; stage?: StageProps }, RegExp][] = [
  [
    'another number than a power of two',
    { topics: { partitions: 6 } },
    /^the topic of stage "by-city" has partitions 6: give a power of two from 1 to 64, the slots/,
  ],
  ['no partition', { topics: { partitions: 0 } }, /has partitions 0: give a power of two/],
  [
    'more partitions than slots',
    { topics: { partitions: 128 } },
    /has partitions 128: give a power of two from 1 to 64/,
  ],
  ['minutes', { topics: { retention: Duration.minutes(5) } }, /has the retention 300000 ms: give an hour or more/],
  ['half a broker', { topics: { replicationFactor: 1.5 } }, /has the replicationFactor 1.5: give a whole number/],
  [
    'a setting that frames depend on',
    { topics: { settings: { 'max.message.bytes': '1000' } } },
    /has the setting max\.message\.bytes 1000, which is not yours to choose.*: leave it out\./,
  ],
  [
    'a retention in settings',
    { topics: { settings: { 'retention.ms': '1000' } } },
    /has the setting retention\.ms 1000.*say `retention`/,
  ],
  [
    'a change of a topic that is brought',
    { topic: { name: 'frames', replicationFactor: 3 } },
    /has the `name` "frames" and replicationFactor, and a topic that you bring is never changed: leave replicationFactor out/,
  ],
  ['a name that is none', { topic: { name: 'a b' } }, /the topic "a b" of the cluster .* has no name that Kafka takes/],
  [
    'a stream beside it',
    { stage: { stream: { shardCount: 2 } } },
    /^stage "by-city" has the setting `stream`, but reads a topic, as `keyedStreams` says: say `topic` instead, or leave it out\./,
  ],
  [
    'a timeout that Lambda does not have behind Kafka',
    { stage: { timeout: Duration.minutes(15) } },
    /has a timeout of 900 s, and Lambda takes at most 14 minutes/,
  ],
]

describe('a keyed stage on a topic is refused', () => {
  it.each(refusals)('%s', (_, { topics = {}, topic, stage = {} }, message) => {
    const stages = { 'by-city': { ...stage, ...(topic && { topic }) } }
    expect(() => ridesOnTopics(newStack(), { topics, stages })).toThrow(message)
  })

  it('where its topic has another use in the application', () => {
    const shared = (name: string, more: (cluster: ReturnType<typeof mskIn>) => object = () => ({})) => {
      const stack = newStack()
      const cluster = mskIn(stack, { brokers: ['b-1:9098'] })
      return ridesOnTopics(stack, {
        cluster,
        stages: { 'by-city': { topic: { name } } },
        more: more(cluster),
      })
    }
    expect(() => shared('rides')).toThrow(/the topic of stage "by-city" is .*topic rides, which is also source "rides"/)
    const deadLetters = (cluster: ReturnType<typeof mskIn>) => ({ deadLetters: DeadLetters.topic(cluster, 'failed') })
    expect(() => shared('failed', deadLetters)).toThrow(/is .*topic failed, which is also where dead letters go/)
  })

  it('where the application has streams, or the stage is not keyed', () => {
    expect(() => ridesIn(newStack(), { 'by-city': { topic: { partitions: 8 } } })).toThrow(
      'stage "by-city" has the setting `topic`, but reads a stream: say `keyedStreams: KeyedStreams.topics(cluster)` too',
    )
    expect(() => ridesOnTopics(newStack(), { stages: { rides: { topic: {} } } })).toThrow(
      'stage "rides" has the setting `topic`, but only a keyed stage has a topic of its own',
    )
    expect(() => ridesIn(newStack()).stage('by-city').topic).toThrow('has no topic of its own, as it reads a stream')
    const stack = newStack()
    expect(() => shopIn(stack, () => ({ keyedStreams: KeyedStreams.topics(mskIn(stack)) }))).toThrow(
      'topology "shop" has no keyed stage, and so no topics that `keyedStreams` could make: leave it out.',
    )
  })
})

describe('sources and keyed stages of different kinds', () => {
  const lines = (stack: Stack, source: KinesisSource | KafkaSource, keyedStreams?: KeyedStreams) => {
    const app = new Topology('lines-app')
    const from = app.source('lines', text())
    const out = app.sink<string>('out')
    from
      .keyBy('by-line', (line) => line)
      .reduce('last', (_, line) => line, { emit: 'on-update' })
      .to(out)
    return new StreamApplication(stack, 'Lines', {
      topology: app,
      entry,
      bind: [bind(from, source), bind(out, new CustomSink())],
      ...(keyedStreams && { keyedStreams }),
    })
  }

  it('a stream may feed a topic, and a topic a stream', () => {
    const onTopic = newStack()
    const cluster = mskIn(onTopic, { brokers: ['b-1:9098'] })
    const fed = lines(onTopic, new KinesisSource(newStream(onTopic, 'In')), KeyedStreams.topics(cluster))
    expect(bindingsOf(onTopic, fed, 'lines')).toMatchObject({
      sources: [{ kind: 'kinesis' }],
      feeds: [{ stage: 'by-line', partitions: 16 }],
    })
    const onStream = newStack()
    const fromTopic = lines(onStream, new KafkaSource(mskIn(onStream, { brokers: ['b-1:9098'] }), 'lines'))
    expect(bindingsOf(onStream, fromTopic, 'lines')).toMatchObject({
      sources: [{ kind: 'kafka', topic: 'lines', cluster: { brokers: ['b-1:9098'] } }],
      feeds: [{ stage: 'by-line', streamArn: expect.any(String) }],
    })
    expect(bindingsOfFunction(onStream, fromTopic.announcer?.function as never).announces).toEqual([
      expect.objectContaining({ stage: 'lines', topic: 'lines' }),
      expect.objectContaining({ stage: 'by-line', streamArn: expect.any(String) }),
    ])
  })
})
