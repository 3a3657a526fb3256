/**
 * Opens the ports of a deployed function from what its environment says it is bound to.
 *
 * Each adapter is imported only where it is bound. The constructs replace the switch of an adapter that is not by
 * `"false"` when they bundle, so the bundler drops the import and with it the adapter's SDK client.
 */
import { ConfigurationError, describeError } from '../core/errors.ts'
import type { Plan } from '../plan/plan.ts'
import {
  bindingsVariable,
  type DeadLetterBinding,
  type SinkBinding,
  type StageBindings,
  type StreamPlace,
} from '../plan/stage-bindings.ts'
import type { DeadLetter } from '../runtime/dead-letter.ts'
import type { EventSource, HandlerPorts } from '../runtime/ports.ts'
import type { Sink } from '../runtime/sink.ts'
import type { DeadLetterOffload } from './dead-letter-offload.ts'
import { lambdaLogger, lambdaMetrics } from './observability.ts'
import type { DeliveryPorts } from './ordered-delivery.ts'
import { systemClock } from './system-clock.ts'

type Environment = Readonly<Record<string, string | undefined>>

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
  const sinks = new Map<string, Sink>()
  for (const binding of bindings.sinks) {
    if (binding.kind !== 'custom') sinks.set(binding.name, await openSink(binding, delivery, environment))
  }
  return {
    clock: systemClock,
    logger,
    metrics,
    sink: (name) => sinks.get(name),
    deadLetters: await openDeadLetters(bindings.deadLetters, delivery, environment),
    sourceOf: (eventSource) => sourceOf(bindings, eventSource),
    flush: () => metrics.flush(),
  }
}

function readBindings(planned: Plan, environment: Environment): StageBindings {
  const text = environment[bindingsVariable]
  if (text === undefined || text === '') {
    throw new ConfigurationError(
      `the environment variable ${bindingsVariable} is missing: deploy the handler of topology "${planned.topology}" with StreamApplication, or give streamHandler its ports (in tests, memoryPorts()).`,
    )
  }
  let bindings: StageBindings
  try {
    bindings = JSON.parse(text)
  } catch (error) {
    throw new ConfigurationError(
      `the environment variable ${bindingsVariable} is not JSON (${describeError(error).name}): it is written by StreamApplication and not to be edited.`,
    )
  }
  if (bindings.formatVersion !== 1) {
    throw new ConfigurationError(
      `the environment variable ${bindingsVariable} has format version ${bindings.formatVersion}, and this release of Millrace reads 1: deploy handler and stack with the same release.`,
    )
  }
  if (bindings.topology !== planned.topology) {
    throw new ConfigurationError(
      `the function is bound for topology "${bindings.topology}", but its handler runs "${planned.topology}": check the \`entry\` of its StreamApplication.`,
    )
  }
  return bindings
}

function sourceOf(bindings: StageBindings, eventSource: EventSource): string | undefined {
  return bindings.sources.find((source) =>
    source.kind === 'kinesis'
      ? eventSource.kind === 'kinesis' && source.streamArn === eventSource.arn
      : eventSource.kind === 'kafka' && source.topic === eventSource.topic && source.clusterArn === eventSource.arn,
  )?.name
}

/** Where the clients of a service go: the SDK's own variables, so that emulators are set as for any other program. */
const endpointOf = (service: string, environment: Environment) => {
  const endpoint = environment[`AWS_ENDPOINT_URL_${service}`] ?? environment.AWS_ENDPOINT_URL
  return endpoint === undefined ? {} : { endpoint }
}

function notBundled(what: string): never {
  throw new ConfigurationError(
    `the bundle has no adapter for ${what}: it was left out because nothing was bound to it when the function was bundled.`,
  )
}

async function openSink(
  binding: Exclude<SinkBinding, { kind: 'custom' }>,
  delivery: DeliveryPorts,
  environment: Environment,
): Promise<Sink> {
  if (binding.kind === 'kinesis') {
    if (process.env.MILLRACE_ADAPTER_KINESIS_SINK === 'false') notBundled('Kinesis sinks')
    else {
      const [{ kinesisSink }, client] = await Promise.all([import('./kinesis-sink.ts'), kinesisClient(environment)])
      return kinesisSink({ client, ...placeOf(binding), ordering: binding.ordering, ...delivery }) as Sink
    }
  }
  if (process.env.MILLRACE_ADAPTER_DYNAMODB_SINK === 'false') notBundled('DynamoDB sinks')
  else {
    const [{ dynamodbTableSink }, { createDynamoDBClient }] = await Promise.all([
      import('./dynamodb-table-sink.ts'),
      import('./dynamodb-client.ts'),
    ])
    const client = createDynamoDBClient(endpointOf('DYNAMODB', environment))
    return dynamodbTableSink({ ...binding, client, ...delivery }) as Sink
  }
}

const placeOf = (place: StreamPlace): StreamPlace =>
  'streamArn' in place ? { streamArn: place.streamArn } : { streamName: place.streamName }

async function kinesisClient(environment: Environment) {
  const { createKinesisClient } = await import('./kinesis-client.ts')
  return createKinesisClient(endpointOf('KINESIS', environment))
}

async function openDeadLetters(
  binding: DeadLetterBinding,
  delivery: DeliveryPorts,
  environment: Environment,
): Promise<Sink<DeadLetter>> {
  const options = {
    ...delivery,
    ...(binding.offloadBucket === undefined ? {} : { offload: offloadTo(binding.offloadBucket, environment) }),
  }
  if (binding.kind === 'kinesis') {
    if (process.env.MILLRACE_ADAPTER_DEAD_LETTERS_KINESIS === 'false') notBundled('dead letters on Kinesis')
    else {
      const { kinesisDeadLetters } = await import('./dead-letter-kinesis.ts')
      const client = await kinesisClient(environment)
      return kinesisDeadLetters({ client, ...placeOf(binding), ...options }) as Sink<DeadLetter>
    }
  }
  if (binding.kind === 'sqs') {
    if (process.env.MILLRACE_ADAPTER_DEAD_LETTERS_SQS === 'false') notBundled('dead letters on SQS')
    else {
      const [{ sqsDeadLetters }, { createSQSClient }] = await Promise.all([
        import('./dead-letter-sqs.ts'),
        import('./sqs-client.ts'),
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
    const [adapter, { createS3Client }] = await Promise.all([import('./dead-letter-s3.ts'), import('./s3-client.ts')])
    return { ...adapter, client: createS3Client(endpointOf('S3', environment)) }
  }
}
