/**
 * Opens the ports of a deployed function from what its environment says it is bound to.
 *
 * Each adapter is imported only where it is bound. The constructs replace the switch of an adapter that is not by
 * `"false"` when they bundle, so the bundler drops the import and with it the adapter's SDK client.
 */
import { ConfigurationError } from '../../core/errors.ts'
import type { Plan } from '../../plan/plan.ts'
import {
  type DeadLetterBinding,
  eventSourceArnOf,
  type FeedBinding,
  type KafkaCluster,
  type SourceBinding,
  type StageBindings,
  type StateBinding,
  type StreamPlace,
  type TopicPlace,
} from '../../plan/stage-bindings.ts'
import type { DeadLetter } from '../../runtime/dead-letter.ts'
import type { EventSource, FramePublisher, HandlerPorts, Metrics } from '../../runtime/ports.ts'
import type { PartitionLineage } from '../../runtime/progress/lineage.ts'
import type { Sink } from '../../runtime/sink.ts'
import type { StateStore } from '../../state/state-store.ts'
import type { DeadLetterOffload } from '../dead-letters/offload.ts'
import { type Environment, endpointOf, parseBindings } from '../function-environment.ts'
import type { DeliveryPorts } from '../ordered-delivery.ts'
import { systemClock } from '../system-clock.ts'
import { sampledTrace } from '../trace.ts'
import { lambdaLogger, lambdaMetrics, meteredBy } from './observability.ts'
import { type KafkaOpener, kafkaOpener, notBundled, openSink, placeOf } from './open-sinks.ts'

/**
 * Reads the bindings and opens what they name. Rejects with a {@link ConfigurationError} where the variable is missing,
 * is not what this release reads, or belongs to another topology.
 */
export async function openPorts(planned: Plan, environment: Environment): Promise<HandlerPorts> {
  const bindings = readBindings(planned, environment)
  const speaker = { application: planned.topology, stage: bindings.sources.map((source) => source.name).join('+') }
  const logger = lambdaLogger(speaker)
  const metrics = lambdaMetrics(speaker)
  const delivery: DeliveryPorts = { clock: systemClock, logger }
  const kafka = kafkaOpener(environment, delivery)
  const sinks = new Map<string, Sink>()
  for (const binding of bindings.sinks) {
    if (binding.kind !== 'custom')
      sinks.set(binding.name, await openSink(binding, { topology: planned.topology, delivery, environment, kafka }))
  }
  return {
    ...(await openStagePorts(bindings, { delivery, environment, metrics, kafka })),
    clock: systemClock,
    logger,
    metrics,
    sink: (name) => sinks.get(name),
    deadLetters: await openDeadLetters(bindings.deadLetters, { delivery, environment, kafka }),
    retentionMs: () => bindings.retentionMs,
    upstreamRetentionMs: () => bindings.upstreamRetentionMs,
    sourceOf: (eventSource) => sourceOf(bindings, eventSource),
    readsAnswers: (stage) => !bindings.sources.some((source) => source.name === stage && isOnDemand(source)),
    flush: () => metrics.flush(),
  }
}

function readBindings(planned: Plan, environment: Environment): StageBindings {
  const bindings = parseBindings(planned, environment)
  if (!('announces' in bindings)) return bindings
  throw new ConfigurationError(
    `the function announces for topology "${planned.topology}" and runs no stage: remove its event source mapping.`,
  )
}

const isOnDemand = (source: SourceBinding): boolean => source.kind === 'kafka' && source.mode === 'on-demand'

function sourceOf(bindings: StageBindings, eventSource: EventSource): string | undefined {
  return bindings.sources.find(
    (source) =>
      source.kind === eventSource.kind &&
      eventSourceArnOf(source) === eventSource.arn &&
      (source.kind !== 'kafka' || source.topic === eventSource.topic),
  )?.name
}

/** What opening takes beside what is bound. */
interface Opening {
  readonly delivery: DeliveryPorts
  readonly environment: Environment
  readonly kafka: KafkaOpener
}

/** What a keyed or feeding stage needs beside its sinks. Ports that nothing is bound to are left out. */
async function openStagePorts(
  bindings: StageBindings,
  opening: Opening & { readonly metrics: Metrics },
): Promise<Pick<HandlerPorts, 'state' | 'frames' | 'lineage'>> {
  const { state, feeds = [], sources } = bindings
  const publishers = new Map<string, FramePublisher>()
  for (const feed of feeds) publishers.set(feed.stage, await openFrames(feed, opening))
  const frames = { frames: (stage: string) => publishers.get(stage) }
  if (state === undefined) return frames
  const stores = new Map<string, StateStore>()
  const lineages = new Map<string, PartitionLineage>()
  for (const source of sources) {
    stores.set(source.name, await openState(source.name, state, opening.environment, opening.metrics))
    lineages.set(source.name, await openLineage(source, opening))
  }
  // Marks are told to every open partition of the stages below.
  for (const feed of feeds) {
    const isTopic = 'topic' in feed
    lineages.set(
      feed.stage,
      await (isTopic ? openTopic(feed, opening) : openShards(placeOf(feed), opening.environment)),
    )
  }
  return { ...frames, state: (stage) => stores.get(stage), lineage: (stage) => lineages.get(stage) }
}

async function openState(
  stage: string,
  { tableName }: StateBinding,
  environment: Environment,
  metrics: Metrics,
): Promise<StateStore> {
  if (process.env.MILLRACE_ADAPTER_STATE_DYNAMODB === 'false') notBundled('state in DynamoDB')
  else {
    const [{ DynamoDBStateStore }, { createDynamoDBClient }] = await Promise.all([
      import('../state-table/store.ts'),
      import('../clients/dynamodb.ts'),
    ])
    const client = createDynamoDBClient(endpointOf('DYNAMODB', environment))
    return new DynamoDBStateStore({ client, tableName, stage, clock: systemClock, ...meteredBy(metrics) })
  }
}

async function openFrames(feed: FeedBinding, { delivery, environment, kafka }: Opening): Promise<FramePublisher> {
  if ('topic' in feed) {
    if (process.env.MILLRACE_ADAPTER_FRAMES_KAFKA === 'false') notBundled('topics of keyed stages')
    else return (await kafka()).frames(feed)
  }
  if (process.env.MILLRACE_ADAPTER_FRAMES_KINESIS === 'false') notBundled('streams of keyed stages on Kinesis')
  else {
    const [{ kinesisFramePublisher }, client] = await Promise.all([
      import('../kinesis/frame-publisher.ts'),
      kinesisClient(environment),
    ])
    return kinesisFramePublisher({
      client,
      ...placeOf(feed),
      slots: feed.slots,
      trace: () => sampledTrace(environment),
      ...delivery,
    })
  }
}

async function openLineage(source: SourceBinding, opening: Opening): Promise<PartitionLineage> {
  const { environment } = opening
  if (source.kind === 'kafka') return openTopic({ ...source, cluster: clusterOf(source) }, opening, source.startingAtMs)
  if (source.kind === 'kinesis') return openShards({ streamArn: source.streamArn }, environment, source.startingAtMs)
  throw new ConfigurationError(
    `source "${source.name}" feeds a keyed stage, and its events name no partitions: bind it to a Kinesis stream.`,
  )
}

async function openShards(
  place: StreamPlace,
  environment: Environment,
  startingAtMs?: number,
): Promise<PartitionLineage> {
  if (process.env.MILLRACE_ADAPTER_LINEAGE_KINESIS === 'false') notBundled('the shards of Kinesis streams')
  else {
    const [{ kinesisLineage }, client] = await Promise.all([
      import('../kinesis/lineage.ts'),
      kinesisClient(environment),
    ])
    return kinesisLineage({ client, ...place, clock: systemClock, startingAtMs })
  }
}

async function openTopic(place: TopicPlace, { kafka }: Opening, startingAtMs?: number): Promise<PartitionLineage> {
  if (process.env.MILLRACE_ADAPTER_LINEAGE_KAFKA === 'false') notBundled('the partitions of Kafka topics')
  else return (await kafka()).lineage(place, startingAtMs)
}

function clusterOf({ name, topic, cluster }: Extract<SourceBinding, { readonly kind: 'kafka' }>): KafkaCluster {
  if (cluster !== undefined) return cluster
  throw new ConfigurationError(
    `source "${name}" feeds a keyed stage, and its binding does not say how topic "${topic}" is reached: deploy it again with this release.`,
  )
}

async function kinesisClient(environment: Environment) {
  const { createKinesisClient } = await import('../clients/kinesis.ts')
  return createKinesisClient(endpointOf('KINESIS', environment))
}

async function openDeadLetters(
  binding: DeadLetterBinding,
  { delivery, environment, kafka }: Opening,
): Promise<Sink<DeadLetter>> {
  const offload = binding.offloadBucket === undefined ? undefined : offloadTo(binding.offloadBucket, environment)
  const options = { ...delivery, ...(offload && { offload }) }
  if (binding.kind === 'kafka') {
    if (process.env.MILLRACE_ADAPTER_DEAD_LETTERS_KAFKA === 'false') notBundled('dead letters on Kafka')
    else return (await kafka()).deadLetters(binding, offload)
  }
  if (binding.kind === 'kinesis') {
    if (process.env.MILLRACE_ADAPTER_DEAD_LETTERS_KINESIS === 'false') notBundled('dead letters on Kinesis')
    else {
      const { kinesisDeadLetters } = await import('../dead-letters/kinesis.ts')
      const client = await kinesisClient(environment)
      return kinesisDeadLetters({ client, ...placeOf(binding), ...options }) as Sink<DeadLetter>
    }
  }
  if (binding.kind === 'sqs') {
    if (process.env.MILLRACE_ADAPTER_DEAD_LETTERS_SQS === 'false') notBundled('dead letters on SQS')
    else {
      const [{ sqsDeadLetters }, { createSQSClient }] = await Promise.all([
        import('../dead-letters/sqs.ts'),
        import('../clients/sqs.ts'),
      ])
      const client = createSQSClient(endpointOf('SQS', environment))
      return sqsDeadLetters({ client, queueUrl: binding.queueUrl, ...options }) as Sink<DeadLetter>
    }
  }
  const { s3DeadLetters, client } = await s3(environment)
  return s3DeadLetters({ client, bucket: binding.bucket, ...delivery }) as Sink<DeadLetter>
}

function offloadTo(bucket: string, environment: Environment): DeadLetterOffload {
  return {
    bucket,
    async open() {
      const { s3Offload, client } = await s3(environment)
      return s3Offload({ client, bucket }).open()
    },
  }
}

async function s3(environment: Environment) {
  if (process.env.MILLRACE_ADAPTER_DEAD_LETTERS_S3 === 'false') notBundled('dead letters on S3')
  else {
    const [adapter, { createS3Client }] = await Promise.all([
      import('../dead-letters/s3.ts'),
      import('../clients/s3.ts'),
    ])
    return { ...adapter, client: createS3Client(endpointOf('S3', environment)) }
  }
}
