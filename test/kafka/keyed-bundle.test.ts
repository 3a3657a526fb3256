/**
 * The functions of keyed stages on topics as they are deployed: bundled through the constructs, one file each, and run where no
 * package is near, against a broker and an embedded DynamoDB.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateTableCommand } from '@aws-sdk/client-dynamodb'
import { App, Stack } from 'aws-cdk-lib'
import { SecurityGroup, Vpc } from 'aws-cdk-lib/aws-ec2'
import type { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs'
import { KafkaCluster } from '../../lib/cdk/index.ts'
import { renderedProperties } from '../../lib/cdk/rendered.ts'
import { localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { type DynamoService, startDynamoService } from '../../lib/local/services/dynamodb.ts'
import {
  type AnnouncerBindings,
  announceEvent,
  bindingsVariable,
  type StageBindings,
} from '../../lib/plan/stage-bindings.ts'
import { type TopicRequest, topicResourceType } from '../../lib/plan/topic-request.ts'
import { kafkaEvent } from '../../lib/testing/index.ts'
import { invokeBundle } from '../cdk/bundled-handler.ts'
import { ridesOnTopics } from '../cdk/kafka/keyed-world.ts'
import { allRecords, newTopic, plain, withBroker } from './broker.ts'

jest.setTimeout(180_000)

const brokers = plain.bootstrapBrokers as string[]
const cluster = { brokers, auth: { kind: 'none' }, tls: false } as const
const outdir = mkdtempSync(join(tmpdir(), 'millrace-keyed-bundle-'))
let bundles: Readonly<Record<'rides' | 'by-driver' | 'by-city' | 'announcer' | 'topics', string>>

beforeAll(() => {
  const app = new App({ outdir })
  const stack = new Stack(app, 'Bundled')
  const vpc = new Vpc(stack, 'Vpc')
  const network = { vpc, securityGroups: [new SecurityGroup(stack, 'Clients', { vpc })] }
  const application = ridesOnTopics(stack, { cluster: KafkaCluster.selfManaged({ brokers, auth: 'none', network }) })
  app.synth()
  const folderOf = (target: NodejsFunction | undefined) => {
    const { Code } = (target && renderedProperties(target)) ?? {}
    return join(outdir, `asset.${Object(Code).S3Key.replace('.zip', '')}`)
  }
  bundles = {
    rides: folderOf(application.stage('rides').function),
    'by-driver': folderOf(application.stage('by-driver').function),
    'by-city': folderOf(application.stage('by-city').function),
    announcer: folderOf(application.announcer?.function),
    topics: folderOf(application.topics?.function),
  }
})

afterAll(() => rmSync(outdir, { recursive: true }))

interface Invocation {
  readonly bindings?: object
  readonly endpoint?: string
  readonly remainingMs?: number
}

function invoke(
  bundle: keyof typeof bundles,
  event: unknown,
  { bindings, endpoint = 'http://127.0.0.1:1', remainingMs }: Invocation = {},
) {
  const environment = {
    ...(bindings && { [bindingsVariable]: JSON.stringify(bindings) }),
    AWS_ENDPOINT_URL: endpoint,
    AWS_LAMBDA_FUNCTION_NAME: bundle,
  }
  return invokeBundle(join(bundles[bundle], 'index.mjs'), event, environment, remainingMs)
}

const requestFor = (stage: string, slots: number, partitions: number): TopicRequest => ({
  formatVersion: 1,
  stage,
  slots,
  cluster,
  topic: { prefix: `rides-app-${stage}-` },
  partitions,
  retentionMs: 604_800_000,
  settings: {},
  isDeletedWithStage: false,
})

const creationOf = (request: TopicRequest) => ({
  RequestType: 'Create',
  StackId: `stack ${process.pid}`,
  RequestId: `request ${request.stage} ${Date.now()}`,
  LogicalResourceId: 'Topic',
  ResourceType: topicResourceType,
  ResourceProperties: { Request: JSON.stringify(request) },
})

describe('the bundles of keyed stages on topics', () => {
  it.each([
    ['rides', 1_700_000],
    ['by-driver', 1_700_000],
    ['by-city', 1_700_000],
    ['announcer', 1_400_000],
    ['topics', 1_000_000],
  ] as const)('%s is one file beside its map, below %d bytes', (name, most) => {
    expect(readdirSync(bundles[name]).sort()).toEqual(['index.mjs', 'index.mjs.map'])
    const { size } = statSync(join(bundles[name], 'index.mjs'))
    expect(size).toBeLessThan(most)
    const code = readFileSync(join(bundles[name], 'index.mjs'), 'utf8')
    expect(code.split(/from ?"[^"]*(?:aws-sdk|smithy|platformatic)/).length - 1).toBe(0)
  })

  it('that of the topics has nothing of the application, and says what is wrong without a broker', async () => {
    const code = readFileSync(join(bundles.topics, 'index.mjs'), 'utf8')
    expect(code.split('rides-app').length - 1).toBe(0)
    expect(code.split('DynamoDB_20120810').length - 1).toBe(0)
    const nobody = { ...requestFor('by-city', 64, 16), cluster: { ...cluster, brokers: ['127.0.0.1:1'] } }
    expect(await invoke('topics', creationOf(nobody), { remainingMs: 7_000 })).toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringContaining('could not be made or looked at, at 127.0.0.1:1'),
    })
  })
})

withBroker('the functions of keyed stages on topics', () => {
  let dynamodb: DynamoService
  beforeAll(async () => {
    dynamodb = await startDynamoService()
  })
  afterAll(() => dynamodb.close())

  async function newTable(name: string) {
    const client = localDynamoDBClient(dynamodb.url)
    await client.send(
      new CreateTableCommand({
        TableName: name,
        BillingMode: 'PAY_PER_REQUEST',
        KeySchema: [
          { AttributeName: 'pk', KeyType: 'HASH' },
          { AttributeName: 'sk', KeyType: 'RANGE' },
        ],
        AttributeDefinitions: ['pk', 'sk'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
      }),
    )
    return { tableName: name }
  }

  /** The records of a topic as an event of Lambda's pollers. */
  const eventOf = async (topic: string, partitions: number) => {
    const records = await allRecords(topic, partitions)
    const rows = records.map(
      ({ partition, offset, value }) =>
        [partition, { offset: Number(offset), value: value ?? new Uint8Array() }] as const,
    )
    const places = [...new Set(rows.map(([partition]) => partition))]
    return kafkaEvent(
      Object.fromEntries(
        places.map((place) => [
          `${topic}-${place}`,
          rows.filter(([partition]) => partition === place).map(([, row]) => row),
        ]),
      ),
      { selfManaged: true },
    )
  }

  it('make their topics, and pass records on from the source to the sink', async () => {
    // GIVEN topics as the custom resource makes them, and a source and a sink
    const made = async (stage: string, slots: number, partitions: number) => {
      const { Data } = Object(await invoke('topics', creationOf(requestFor(stage, slots, partitions))))
      return { topic: Data.Topic, topicId: Data.TopicId, cluster, partitions }
    }
    const [byDriver, byCity] = [await made('by-driver', 8, 8), await made('by-city', 64, 16)]
    const [source, sink] = [await newTopic(), await newTopic()]
    const table = { rides: await newTable('rides'), driver: await newTable('driver'), city: await newTable('city') }
    const shared = {
      formatVersion: 1,
      topology: 'rides-app',
      sinks: [],
      deadLetters: { kind: 'sqs', queueUrl: 'http://127.0.0.1:1/queue' },
    } as const
    const stages: Record<'rides' | 'by-driver' | 'by-city', StageBindings> = {
      rides: {
        ...shared,
        sources: [{ name: 'rides', kind: 'kafka', topic: source, cluster, mode: 'provisioned' }],
        state: table.rides,
        feeds: [{ stage: 'by-driver', slots: 8, ...byDriver }],
      },
      'by-driver': {
        ...shared,
        sources: [{ name: 'by-driver', kind: 'kafka', mode: 'provisioned', ...byDriver }],
        state: table.driver,
        feeds: [{ stage: 'by-city', slots: 64, ...byCity }],
      },
      'by-city': {
        ...shared,
        sources: [{ name: 'by-city', kind: 'kafka', mode: 'provisioned', ...byCity }],
        state: table.city,
        sinks: [{ name: 'cities', kind: 'kafka', topic: sink, cluster }],
      },
    }
    const announcer: AnnouncerBindings = {
      formatVersion: 1,
      topology: 'rides-app',
      announces: [
        { stage: 'rides', topic: source, cluster, state: table.rides },
        { stage: 'by-driver', ...byDriver, state: table.driver },
        { stage: 'by-city', ...byCity, state: table.city },
      ],
    }
    const run = (stage: keyof typeof stages, event: unknown) =>
      invoke(stage, event, { bindings: stages[stage], endpoint: dynamodb.url })
    const done = { batchItemFailures: [] }
    // WHEN
    const rides = kafkaEvent({ [`${source}-0`]: [{ offset: 0, value: 'Amsterdam' }] }, { selfManaged: true })
    expect(await run('rides', rides)).toEqual(done)
    expect(await run('by-driver', await eventOf(byDriver.topic, 8))).toEqual(done)
    expect(await run('by-city', await eventOf(byCity.topic, 16))).toEqual(done)
    // THEN
    expect((await allRecords(sink, 1)).map(({ value }) => String(Buffer.from(value ?? [])))).toEqual(['"Amsterdam"'])
    // AND the announcer tells the keyed stages of upstreams that they do not know of
    const before = (await allRecords(byCity.topic, 16)).length
    expect(await invoke('announcer', announceEvent, { bindings: announcer, endpoint: dynamodb.url })).toEqual(done)
    expect((await allRecords(byCity.topic, 16)).length).toBeGreaterThan(before)
  })
})
