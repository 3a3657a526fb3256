/**
 * The Lambda handler of a topology: finds the stage by the event source, runs the batch, answers in the event source's
 * own words. A stage is found by its source or, where it is keyed, by its own stream.
 *
 * Invariants (cited by test/aws/handler/stream-handler.test.ts)
 * 1. The answer is exactly `{ batchItemFailures: [...] }`. Lambda takes any other shape for success, so there is none.
 * 2. Kinesis: at most one item, the sequence number of the first record that is not done; of an aggregate its parent's.
 * 3. DynamoDB Streams: as Kinesis. SQS: every message that is not done, by its id; of a FIFO queue's group the first and all behind it.
 * 4. Kafka with provisioned pollers: per partition, the first offset that is not done and every later one of the batch, because AWS
 *    does not say that it retries what lies behind a reported offset. Without them no answer is read: where anything is not done the
 *    invocation rejects, after every other partition's progress is written, and the whole batch comes again.
 * 5. What cannot be told by record (an unknown event source, a table that cannot be loaded) rejects: the batch comes again.
 * 6. Only an event of a redrive says that it is one, in a field that no event source mapping sends. A stage with progress, which
 *    is past the record, then steps it beside its log; a keyed stage refuses it.
 * 7. The event of an announcer's rule runs one round of it and no stage; that too is only what no event source mapping sends.
 * 8. Nothing of an invocation outlives it but the ports, the linked steps and the tables.
 */
import { ConfigurationError, describeError, RetryableError } from '../../core/errors.ts'
import type { SourceRecord } from '../../core/record.ts'
import { plan } from '../../plan/plan.ts'
import { announceEvent } from '../../plan/stage-bindings.ts'
import type { BatchResult, PartitionBatch, PartitionFailure } from '../../runtime/batch.ts'
import type { Redrive } from '../../runtime/dead-letter.ts'
import type { HandlerPorts } from '../../runtime/ports.ts'
import { checkOptions } from '../../runtime/stage-runner.ts'
import type { Topology } from '../../topology/topology.ts'
import { type DynamoDbStreamEvent, dynamoDbStreamRecords } from '../events/dynamodb-stream-records.ts'
import { EventError } from '../events/event-error.ts'
import { type KafkaEvent, kafkaRecords } from '../events/kafka-records.ts'
import { type KinesisEvent, kinesisRecords } from '../events/kinesis-records.ts'
import { type SqsEvent, sqsRecords } from '../events/sqs-records.ts'
import { tracesIn } from '../trace.ts'
import { notBundled } from './open-sinks.ts'
import { type InvocationContext, Stages, type StreamHandlerOptions } from './stages.ts'

/** Names one record that is not done: a sequence number, the id of an SQS message, or a Kafka partition and offset. */
export type ItemIdentifier = string | { readonly partition: string; readonly offset: number }

/** The answer of 'partial batch response', for every event source. */
export interface StreamResponse {
  readonly batchItemFailures: { readonly itemIdentifier: ItemIdentifier }[]
}

/** A handler of the events of Kinesis, DynamoDB Streams, SQS, MSK and self-managed Kafka. */
export type StreamHandler = (event: unknown, context: InvocationContext) => Promise<StreamResponse>

/**
 * Makes the handler of a topology. Steps are planned when the module loads, so a topology that cannot run fails the
 * deployment's first invocation with one clear {@link ConfigurationError}.
 *
 * @example
 * export const handler = middy().handler(streamHandler(bookings))
 *
 * @example
 * // in jest
 * const ports = memoryPorts()
 * const answer = await streamHandler(bookings, { ports })(kinesisEvent([booking]), lambdaContext())
 * expect(answer).toEqual({ batchItemFailures: [] })
 */
export function streamHandler(topology: Topology, options: StreamHandlerOptions = {}): StreamHandler {
  checkOptions(options)
  const planned = plan(topology)
  const stages = new Stages(planned, options)
  return async (event, context) => {
    const invocation = event as Partial<KinesisEvent & KafkaEvent & RedriveMark> | null | undefined
    if (isAnnouncement(event)) {
      await stages.announce(context)
      return { batchItemFailures: [] }
    }
    if (Array.isArray(invocation?.Records)) {
      const handle = handlerOf(invocation.Records, planned.topology)
      if (invocation.Records.length === 0) return { batchItemFailures: [] }
      return handle(invocation as RecordsEvent, context, stages)
    }
    if (typeof invocation?.records === 'object')
      return handleKafka(invocation as KafkaEvent & RedriveMark, context, stages)
    throw new EventError(
      'unknown-event',
      `topology "${planned.topology}" was invoked with an event of no source that it may have: it has ${describeKeys(event)}`,
    )
  }
}

/** What the event of a redrive has beside its records. */
export interface RedriveMark {
  readonly millrace?: { readonly redrive: Redrive }
}

/** Whether an event is that of the rule that invokes an application's announcer. */
function isAnnouncement(event: unknown): boolean {
  return Object(Object(event).millrace).announce === announceEvent.millrace.announce
}

/** What an event says of its redrive; undefined where it is of an event source mapping. */
function redriveIn({ millrace }: RedriveMark): Redrive | undefined {
  if (millrace === undefined) return undefined
  const { ownMarkMs, applied, generation = 1 } = Object(millrace.redrive)
  const isWhole = (ownMarkMs === null || Number.isFinite(ownMarkMs)) && typeof applied === 'boolean'
  if (isWhole && Number.isSafeInteger(generation)) return { ownMarkMs, applied, generation }
  throw new EventError(
    'malformed-event',
    'the event says that it is a redrive, and not of what: redrive with the release of Millrace that the function was deployed with.',
  )
}

/** An event with `Records`, read by what is known of its service. */
type RecordsEvent = KinesisEvent & DynamoDbStreamEvent & SqsEvent & RedriveMark

type Handle = (event: RecordsEvent, context: InvocationContext, stages: Stages) => Promise<StreamResponse>

/** What handles an event with `Records`, which S3, SNS and others send too. */
function handlerOf(records: readonly unknown[], topology: string): Handle {
  const { eventSource, EventSource: otherSource } = Object(records[0])
  const service = eventSource ?? otherSource
  switch (service) {
    case undefined:
    case 'aws:kinesis':
      return handleKinesis
    case 'aws:dynamodb':
      return handleDynamoDbStream
    case 'aws:sqs':
      return handleSqs
    default:
      throw new EventError(
        'unknown-event',
        `topology "${topology}" was invoked with records of ${service}, but sources are Kinesis streams, DynamoDB streams, SQS queues and Kafka topics: remove that event source mapping.`,
      )
  }
}

function describeKeys(event: unknown): string {
  if (typeof event !== 'object' || event === null) return `the type ${event === null ? 'null' : typeof event}`
  return `the keys ${Object.keys(event).slice(0, 10).join(', ') || '(none)'}`
}

/** The stage that the records of an event feed, open to the batches that they make. */
async function feedOf(
  kind: 'kinesis' | 'dynamodb-stream' | 'sqs',
  event: RedriveMark & { readonly Records: readonly { readonly eventSourceARN: string }[] },
  context: InvocationContext,
  stages: Stages,
) {
  const ports = await stages.ports()
  const stage = stages.stageOf(ports, { kind, arn: event.Records[0]?.eventSourceARN })
  if (kind !== 'kinesis') refuseProgress(stages, stage, kind)
  const run = async (batches: readonly PartitionBatch[]) => {
    const { failures } = await stages.run(ports, stage, batches, context, redriveIn(event))
    return failures
  }
  return { ports, stage, run }
}

/** A stage that keeps progress keeps it by shard; these events name none. The constructs refuse it at synth. */
function refuseProgress(stages: Stages, stage: string, kind: 'dynamodb-stream' | 'sqs'): void {
  if (!stages.keepsProgress(stage)) return
  const what = kind === 'sqs' ? 'an SQS queue' : 'a DynamoDB stream'
  throw new ConfigurationError(
    `source "${stage}" feeds a keyed stage, and its records come from ${what}, which has no partitions that its place could be kept by: bind it to a Kinesis stream or a Kafka topic.`,
  )
}

const handleKinesis: Handle = async (event, context, stages) => {
  const { ports, stage, run } = await feedOf('kinesis', event, context, stages)
  tellTraces(ports, stages, stage, () => event.Records.map(({ kinesis }) => kinesis.partitionKey))
  return firstNotDone(await run([kinesisRecords(event, stage)]))
}

const handleDynamoDbStream: Handle = async (event, context, stages) => {
  if (process.env.MILLRACE_ADAPTER_EVENTS_DYNAMODB_STREAM === 'false') notBundled('events of DynamoDB streams')
  else return answerDynamoDbStream(event, context, stages)
}

const answerDynamoDbStream: Handle = async (event, context, stages) => {
  const { stage, run } = await feedOf('dynamodb-stream', event, context, stages)
  return firstNotDone(await run([dynamoDbStreamRecords(event, stage)]))
}

const firstNotDone = (failures: BatchResult['failures']): StreamResponse => ({
  batchItemFailures: failures.map(({ notDone }) => ({ itemIdentifier: (notDone[0] as SourceRecord).position })),
})

const handleSqs: Handle = async (event, context, stages) => {
  if (process.env.MILLRACE_ADAPTER_EVENTS_SQS === 'false') notBundled('events of SQS')
  else return answerSqs(event, context, stages)
}

const answerSqs: Handle = async (event, context, stages) => {
  const { stage, run } = await feedOf('sqs', event, context, stages)
  const batches = sqsRecords(event, stage)
  const failures = await run(batches)
  const batchOf = new Map(batches.map((batch) => [batch.partition, batch]))
  return {
    batchItemFailures: failures.flatMap(({ partition, index }) =>
      (batchOf.get(partition)?.messageIds.slice(index) ?? []).map((itemIdentifier) => ({ itemIdentifier })),
    ),
  }
}

/** The key as text, whatever its bytes are. */
const keyTextOf = ({ keyBytes }: SourceRecord): string => Buffer.from(keyBytes ?? []).toString()

/** Frames name the trace that wrote them in their key. */
function tellTraces(ports: HandlerPorts, stages: Stages, stage: string, keysOf: () => readonly string[]): void {
  if (!stages.isKeyed(stage)) return
  const upstreamTraces = tracesIn(keysOf())
  if (upstreamTraces.length > 0) ports.logger.info('continues traces', { upstreamTraces })
}

async function handleKafka(
  event: KafkaEvent & RedriveMark,
  context: InvocationContext,
  stages: Stages,
): Promise<StreamResponse> {
  if (process.env.MILLRACE_ADAPTER_EVENTS_KAFKA === 'false') notBundled('events of Kafka')
  else return answerKafka(event, context, stages)
}

async function answerKafka(
  event: KafkaEvent & RedriveMark,
  context: InvocationContext,
  stages: Stages,
): Promise<StreamResponse> {
  const ports = await stages.ports()
  const arn = event.eventSourceArn
  const batches = kafkaRecords(event, (topic) => stages.stageOf(ports, { kind: 'kafka', arn, topic }))
  const byStage = Map.groupBy(
    batches.filter(({ records }) => records.length > 0),
    ({ records }) => (records[0] as { source: string }).source,
  )
  const batchItemFailures: StreamResponse['batchItemFailures'] = []
  const unread: PartitionFailure[] = []
  for (const [stage, ofStage] of byStage) {
    const batch = ofStage.map(({ number, records }) => ({ partition: number, records }))
    const nameOf = new Map(ofStage.map(({ number, partition }) => [number, partition]))
    tellTraces(ports, stages, stage, () => ofStage.flatMap(({ records }) => records.map(keyTextOf)))
    const { failures } = await stages.run(ports, stage, batch, context, redriveIn(event))
    // Whoever redrives reads the answer, whatever the mapping does.
    if (event.millrace === undefined && ports.readsAnswers?.(stage) === false) unread.push(...failures)
    for (const { partition: number, notDone } of failures) {
      const partition = nameOf.get(number) as string
      for (const { position } of notDone)
        batchItemFailures.push({ itemIdentifier: { partition, offset: Number(position) } })
    }
  }
  if (unread.length > 0) rejectAll(unread)
  return { batchItemFailures }
}

/** The answer of a batch of which something is not done, to a mapping that reads none. */
function rejectAll(failures: readonly PartitionFailure[]): never {
  const where = failures.map(
    ({ partition, notDone }) => `partition ${partition} from offset ${notDone[0]?.position} on`,
  )
  const [{ error }] = failures as [PartitionFailure]
  throw new RetryableError(
    `what is not done of the batch (${where.join(', ')}) comes again, and the rest of it with that, as this mapping has no provisioned pollers: ${describeError(error).message}`,
    { code: 'records-not-done', cause: error },
  )
}
