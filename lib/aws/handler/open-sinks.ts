/** Opens the sinks of a deployed function. Each adapter is imported only where it is bound; see `open-ports.ts`. */
import { ConfigurationError } from '../../core/errors.ts'
import type { SinkBinding, StreamPlace } from '../../plan/stage-bindings.ts'
import type { Sink } from '../../runtime/sink.ts'
import { type Environment, endpointOf } from '../function-environment.ts'
import type { OpenKafka } from '../kafka/open-kafka.ts'
import type { DeliveryPorts } from '../ordered-delivery.ts'

type Bound<K extends SinkBinding['kind']> = Extract<SinkBinding, { readonly kind: K }>

/** What opening a sink takes beside its binding. */
export interface SinkOpening {
  readonly topology: string
  readonly delivery: DeliveryPorts
  readonly environment: Environment
  /** As {@link kafkaOpener} makes it. */
  readonly kafka: KafkaOpener
}

/** Gives what opens adapters of Kafka, the same each time: those of one cluster share its clients. */
export type KafkaOpener = () => Promise<OpenKafka>

/** Kafka for one function. It is loaded with the first adapter that asks. */
export function kafkaOpener(environment: Environment, delivery: DeliveryPorts): KafkaOpener {
  let opened: Promise<OpenKafka> | undefined
  return async () => {
    if (
      process.env.MILLRACE_ADAPTER_KAFKA_SINK === 'false' &&
      process.env.MILLRACE_ADAPTER_DEAD_LETTERS_KAFKA === 'false' &&
      process.env.MILLRACE_ADAPTER_FRAMES_KAFKA === 'false' &&
      process.env.MILLRACE_ADAPTER_LINEAGE_KAFKA === 'false'
    )
      notBundled('Kafka')
    else {
      opened ??= import('../kafka/open-kafka.ts').then(({ OpenKafka }) => new OpenKafka(environment, delivery))
      return opened
    }
  }
}

/** Says that an adapter was left out of the bundle. */
export function notBundled(what: string): never {
  throw new ConfigurationError(
    `the bundle has no adapter for ${what}: it was left out because nothing was bound to it when the function was bundled.`,
  )
}

/** The place of a stream, without what else a binding says. */
export const placeOf = (place: StreamPlace): StreamPlace =>
  'streamArn' in place ? { streamArn: place.streamArn } : { streamName: place.streamName }

/** Opens one sink. Rejects with a {@link ConfigurationError} where its adapter is not in the bundle. */
export async function openSink(binding: Exclude<SinkBinding, { kind: 'custom' }>, opening: SinkOpening): Promise<Sink> {
  switch (binding.kind) {
    case 'kinesis':
      return openKinesis(binding, opening)
    case 'dynamodb':
      return openDynamoDb(binding, opening)
    case 'sqs':
      return openSqs(binding, opening)
    case 'eventbridge':
      return openEventBridge(binding, opening)
    case 'firehose':
      return openFirehose(binding, opening)
    case 'kafka':
      return openKafkaTopic(binding, opening)
  }
}

async function openKinesis(binding: Bound<'kinesis'>, { delivery, environment }: SinkOpening): Promise<Sink> {
  if (process.env.MILLRACE_ADAPTER_KINESIS_SINK === 'false') notBundled('Kinesis sinks')
  else {
    const [{ kinesisSink }, { createKinesisClient }] = await Promise.all([
      import('../sinks/kinesis.ts'),
      import('../clients/kinesis.ts'),
    ])
    const client = createKinesisClient(endpointOf('KINESIS', environment))
    return kinesisSink({ client, ...placeOf(binding), ordering: binding.ordering, ...delivery }) as Sink
  }
}

async function openDynamoDb(binding: Bound<'dynamodb'>, { delivery, environment }: SinkOpening): Promise<Sink> {
  if (process.env.MILLRACE_ADAPTER_DYNAMODB_SINK === 'false') notBundled('DynamoDB sinks')
  else {
    const [{ dynamodbTableSink }, { createDynamoDBClient }] = await Promise.all([
      import('../sinks/dynamodb-table.ts'),
      import('../clients/dynamodb.ts'),
    ])
    const client = createDynamoDBClient(endpointOf('DYNAMODB', environment))
    return dynamodbTableSink({ ...binding, client, ...delivery }) as Sink
  }
}

async function openSqs(binding: Bound<'sqs'>, { topology, delivery, environment }: SinkOpening): Promise<Sink> {
  if (process.env.MILLRACE_ADAPTER_SQS_SINK === 'false') notBundled('SQS sinks')
  else {
    const [{ sqsSink }, { createSQSClient }] = await Promise.all([
      import('../sinks/sqs.ts'),
      import('../clients/sqs.ts'),
    ])
    const client = createSQSClient(endpointOf('SQS', environment))
    return sqsSink({ ...binding, origin: `${topology}/${binding.name}`, client, ...delivery }) as Sink
  }
}

async function openEventBridge(
  binding: Bound<'eventbridge'>,
  { topology, delivery, environment }: SinkOpening,
): Promise<Sink> {
  if (process.env.MILLRACE_ADAPTER_EVENTBRIDGE_SINK === 'false') notBundled('EventBridge sinks')
  else {
    const [{ eventBridgeSink }, { createEventBridgeClient }] = await Promise.all([
      import('../sinks/eventbridge.ts'),
      import('../clients/eventbridge.ts'),
    ])
    const client = createEventBridgeClient(endpointOf('EVENTBRIDGE', environment))
    return eventBridgeSink({ ...binding, origin: `${topology}/${binding.name}`, client, ...delivery }) as Sink
  }
}

async function openFirehose(binding: Bound<'firehose'>, { delivery, environment }: SinkOpening): Promise<Sink> {
  if (process.env.MILLRACE_ADAPTER_FIREHOSE_SINK === 'false') notBundled('Firehose sinks')
  else {
    const [{ firehoseSink }, { createFirehoseClient }] = await Promise.all([
      import('../sinks/firehose.ts'),
      import('../clients/firehose.ts'),
    ])
    const client = createFirehoseClient(endpointOf('FIREHOSE', environment))
    return firehoseSink({ ...binding, client, ...delivery }) as Sink
  }
}

async function openKafkaTopic(binding: Bound<'kafka'>, { topology, kafka }: SinkOpening): Promise<Sink> {
  if (process.env.MILLRACE_ADAPTER_KAFKA_SINK === 'false') notBundled('Kafka sinks')
  else return (await kafka()).sink(binding, `${topology}/${binding.name}`)
}
