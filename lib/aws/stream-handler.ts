/**
 * The Lambda handler of a topology: finds the stage by the event source, runs the batch, answers in the event source's
 * own words.
 *
 * Invariants (cited by test/aws/stream-handler.test.ts)
 * 1. The answer is exactly `{ batchItemFailures: [...] }`. Lambda takes any other shape for success, so there is none.
 * 2. Kinesis: at most one item, the sequence number of the first record that is not done; of an aggregate its parent's.
 * 3. Kafka: per partition, the first offset that is not done and every later one of the batch, because AWS does not say
 *    that it retries what lies behind a reported offset.
 * 4. What cannot be told by record (an unknown event source, a table that cannot be loaded) rejects: the batch comes again.
 * 5. Nothing of an invocation outlives it but the ports, the linked steps and the tables.
 */
import type { Context } from 'aws-lambda'
import { ConfigurationError } from '../core/errors.ts'
import type { SourceRecord } from '../core/record.ts'
import { type Plan, plan, stageNamed } from '../plan/plan.ts'
import type { BatchResult, PartitionBatch } from '../runtime/batch-run.ts'
import type { EventSource, HandlerPorts } from '../runtime/ports.ts'
import type { Sink } from '../runtime/sink.ts'
import { checkOptions, type RunnerOptions, StageRunner } from '../runtime/stage-runner.ts'
import type { SinkHandle } from '../topology/handles.ts'
import type { Topology } from '../topology/topology.ts'
import { EventError } from './event-error.ts'
import { type KafkaEvent, kafkaRecords } from './kafka-records.ts'
import { type KinesisEvent, kinesisRecords } from './kinesis-records.ts'

/** A sink that the handler file provides itself. */
export interface ProvidedSink {
  readonly name: string
  readonly sink: Sink
}

/**
 * Provides the user's own sink for a declared one.
 *
 * @example
 * export const handler = middy().handler(streamHandler(orders, { sinks: [provide(webhooks, webhookSink(url))] }))
 */
export function provide<T, Item>(handle: SinkHandle<T>, sink: Sink<NoInfer<T>, Item>): ProvidedSink {
  return { name: handle.name, sink: sink as Sink }
}

export interface StreamHandlerOptions extends RunnerOptions {
  /**
   * What the handler runs on. Tests name theirs, such as `memoryPorts()`; there is never a silent fallback to memory.
   * @default what the function's environment says it is bound to
   */
  readonly ports?: HandlerPorts
  /** The user's own sinks. @default none */
  readonly sinks?: readonly ProvidedSink[]
}

/** Names one record that is not done: a Kinesis sequence number, or a Kafka partition and offset. */
export type ItemIdentifier = string | { readonly partition: string; readonly offset: number }

/** The answer of 'partial batch response', for Kinesis and for Kafka. */
export interface StreamResponse {
  readonly batchItemFailures: { readonly itemIdentifier: ItemIdentifier }[]
}

/** A handler of Kinesis, MSK and self-managed Kafka events. */
export type StreamHandler = (
  event: unknown,
  context: Pick<Context, 'getRemainingTimeInMillis'>,
) => Promise<StreamResponse>

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
    const invocation = event as Partial<KinesisEvent & KafkaEvent> | null | undefined
    const other = otherService(invocation?.Records)
    if (other) {
      throw new EventError(
        'unknown-event',
        `topology "${planned.topology}" was invoked with records of ${other}, but its sources are Kinesis streams and Kafka topics: remove that event source mapping.`,
      )
    }
    if (Array.isArray(invocation?.Records)) return handleKinesis(invocation as KinesisEvent, context, stages)
    if (typeof invocation?.records === 'object') return handleKafka(invocation as KafkaEvent, context, stages)
    throw new EventError(
      'unknown-event',
      `topology "${planned.topology}" was invoked with an event that is neither of Kinesis nor of Kafka: it has ${describeKeys(event)}`,
    )
  }
}

/** The service whose records these are, where it says so and is not Kinesis: DynamoDB, SQS and S3 send `Records` too. */
function otherService(records: unknown): string | undefined {
  if (!Array.isArray(records)) return undefined
  const { eventSource } = (records[0] ?? {}) as { eventSource?: unknown }
  return typeof eventSource === 'string' && eventSource !== 'aws:kinesis' ? eventSource : undefined
}

function describeKeys(event: unknown): string {
  if (typeof event !== 'object' || event === null) return `the type ${event === null ? 'null' : typeof event}`
  return `the keys ${Object.keys(event).slice(0, 10).join(', ') || '(none)'}`
}

/** The runners of a topology's stages, each made when its first batch comes. */
class Stages {
  readonly #plan: Plan
  readonly #options: StreamHandlerOptions
  readonly #runners = new Map<string, StageRunner>()
  #ports: Promise<HandlerPorts> | undefined

  constructor(planned: Plan, options: StreamHandlerOptions) {
    this.#plan = planned
    this.#options = options
    const foreign = options.sinks?.find(({ name }) => !planned.graph.sinks.some((sink) => sink.name === name))
    if (foreign)
      throw new ConfigurationError(`provide("${foreign.name}", ...) names no sink of topology "${planned.topology}".`)
  }

  /** The ports, opened once; where that failed, opened again with the next invocation. */
  ports(): Promise<HandlerPorts> {
    this.#ports ??= this.#openPorts().catch((error) => {
      this.#ports = undefined
      throw error
    })
    return this.#ports
  }

  async #openPorts(): Promise<HandlerPorts> {
    const ports = this.#options.ports ?? (await (await import('./open-ports.ts')).openPorts(this.#plan, process.env))
    const provided = new Map((this.#options.sinks ?? []).map(({ name, sink }) => [name, sink]))
    // Not spread: ports may be an object of a class, whose methods a spread would lose.
    const { clock, logger, metrics, deadLetters } = ports
    return {
      clock,
      logger,
      metrics,
      deadLetters,
      sink: (name) => provided.get(name) ?? ports.sink(name),
      sourceOf: (eventSource, declared) => ports.sourceOf(eventSource, declared),
      freezesValues: ports.freezesValues === true,
      flush: () => ports.flush(),
    }
  }

  source(ports: HandlerPorts, eventSource: EventSource): string {
    const declared = this.#plan.graph.sources.map((source) => source.name)
    const source = ports.sourceOf(eventSource, declared)
    if (source !== undefined) return source
    const { arn, topic } = eventSource
    throw new ConfigurationError(
      `the event source ${[arn, topic].filter(Boolean).join(' topic ') || '(unnamed)'} is bound to no source of topology "${this.#plan.topology}" (${declared.join(', ')}): bind it, or remove its event source mapping.`,
      { code: 'unknown-event-source' },
    )
  }

  run(
    ports: HandlerPorts,
    source: string,
    batch: readonly PartitionBatch[],
    context: Parameters<StreamHandler>[1],
  ): Promise<BatchResult> {
    const runner =
      this.#runners.get(source) ??
      new StageRunner(this.#plan.topology, stageNamed(this.#plan, source), ports, this.#options)
    this.#runners.set(source, runner)
    return runner
      .run(batch, { deadlineMs: ports.clock.nowMs() + context.getRemainingTimeInMillis() })
      .finally(() => ports.flush())
  }
}

async function handleKinesis(
  event: KinesisEvent,
  context: Parameters<StreamHandler>[1],
  stages: Stages,
): Promise<StreamResponse> {
  if (event.Records.length === 0) return { batchItemFailures: [] }
  const ports = await stages.ports()
  const source = stages.source(ports, { kind: 'kinesis', arn: event.Records[0]?.eventSourceARN })
  const { failures } = await stages.run(ports, source, [kinesisRecords(event, source)], context)
  return {
    batchItemFailures: failures.map(({ notDone }) => ({ itemIdentifier: (notDone[0] as SourceRecord).position })),
  }
}

async function handleKafka(
  event: KafkaEvent,
  context: Parameters<StreamHandler>[1],
  stages: Stages,
): Promise<StreamResponse> {
  const ports = await stages.ports()
  const arn = event.eventSourceArn
  const batches = kafkaRecords(event, (topic) => stages.source(ports, { kind: 'kafka', arn, topic }))
  const bySource = Map.groupBy(
    batches.filter(({ records }) => records.length > 0),
    ({ records }) => (records[0] as { source: string }).source,
  )
  const batchItemFailures: StreamResponse['batchItemFailures'] = []
  for (const [source, batch] of bySource) {
    const { failures } = await stages.run(ports, source, batch, context)
    for (const { partition, notDone } of failures) {
      for (const { position } of notDone)
        batchItemFailures.push({ itemIdentifier: { partition, offset: Number(position) } })
    }
  }
  return { batchItemFailures }
}
