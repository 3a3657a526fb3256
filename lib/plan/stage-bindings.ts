/**
 * What a deployed function is told of the world: written by the constructs into one environment variable, read by the
 * handler at start. Plain data with a format version, so that a function and its stack may differ by a release.
 */

/** The environment variable that carries {@link StageBindings} as JSON. */
export const bindingsVariable = 'MILLRACE_BINDINGS'

export interface StageBindings {
  readonly formatVersion: 1
  readonly topology: string
  /**
   * What this function is invoked with: the source of its stage; for a keyed stage its own stream, under the stage's name.
   */
  readonly sources: readonly SourceBinding[]
  readonly sinks: readonly SinkBinding[]
  readonly deadLetters: DeadLetterBinding
  /** The stage's own table, of keys and progress. @default none: the stage keeps nothing */
  readonly state?: StateBinding
  /** The keyed stages that this one feeds. @default none */
  readonly feeds?: readonly FeedBinding[]
  /** For how long the stream of a keyed stage keeps records, in ms. @default what `streamHandler` is told */
  readonly retentionMs?: number
  /**
   * For how long, in ms, what the stream of a keyed stage takes may have waited before: the retentions of what the stages before
   * it read, summed along the longest way. @default what `streamHandler` is told, else seven days
   */
  readonly upstreamRetentionMs?: number
}

/** What the function of an application's announcer is told, in the same variable. */
export interface AnnouncerBindings {
  readonly formatVersion: 1
  readonly topology: string
  /** Every stage that keeps progress. */
  readonly announces: readonly AnnouncedStage[]
}

/** A stage that keeps progress: the stream that it reads, and its own table, which its progress is in. */
export type AnnouncedStage = {
  readonly stage: string
  readonly state: StateBinding
  /** When the reading of a source begins, in ms since 1970 UTC. @default the oldest record of each partition */
  readonly startingAtMs?: number
} & (StreamPlace | TopicPlace)

/**
 * The event with which the rule of an application invokes its announcer, each minute. In tests of a handler it closes the
 * windows of silent sources, once the clock of its ports has moved.
 *
 * @example
 * const clock = new VirtualClock()
 * const ports = memoryPorts({ clock })
 * clock.advance(minutes(9).ms)
 * await handler(announceEvent, lambdaContext())
 * for (const event of ports.takeFrames('by-hotel')) await handler(event, lambdaContext())
 */
export const announceEvent = { millrace: { announce: true } } as const

/** Where a keyed stage keeps its keys and its progress, and a feeding stage its progress. */
export interface StateBinding {
  /** The table's name, or its ARN, which names account and region too. */
  readonly tableName: string
}

/** The stream of a keyed stage, as a stage that feeds it is told of it. */
export type FeedBinding = {
  /** The name of the keyed stage. */
  readonly stage: string
  /** Its number of slots: what the stream is written by. */
  readonly slots: number
} & (StreamPlace | (TopicPlace & { readonly partitions: number }))

/** What events of the source name: the ARN of a stream or a queue; for Kafka, the cluster's ARN where it has one, and the topic. */
export type SourceBinding =
  | {
      readonly name: string
      readonly kind: 'kinesis'
      readonly streamArn: string
      /** When its reading begins, in ms since 1970 UTC. @default the oldest record of each shard */
      readonly startingAtMs?: number
    }
  | {
      readonly name: string
      readonly kind: 'kafka'
      readonly topic: string
      /** Of MSK, as events carry it. @default none: a cluster of the user's own */
      readonly clusterArn?: string | undefined
      /** Needed where the source feeds a keyed stage, or is the topic of one. */
      readonly cluster?: KafkaCluster | undefined
      /** When its reading begins, in ms since 1970 UTC. @default the oldest record of each partition */
      readonly startingAtMs?: number | undefined
      /** Of the topic of a keyed stage, how many it was made with. @default any */
      readonly partitions?: number
      /** The id that the topic was made with. @default any topic of the name */
      readonly topicId?: string
      /** Whether the mapping has provisioned pollers: only these read which records are not done. @default 'provisioned' */
      readonly mode?: 'on-demand' | 'provisioned'
    }
  /** A table's stream. It feeds no keyed stage. */
  | { readonly name: string; readonly kind: 'dynamodb-stream'; readonly streamArn: string }
  /** It feeds no keyed stage. */
  | { readonly name: string; readonly kind: 'sqs'; readonly queueArn: string }

/** The ARN that the events and the mapping of a source name; undefined for self-managed Kafka. */
export function eventSourceArnOf(source: SourceBinding): string | undefined {
  switch (source.kind) {
    case 'kafka':
      return source.clusterArn
    case 'sqs':
      return source.queueArn
    default:
      return source.streamArn
  }
}

/**
 * Which stream to write to. The ARN names account and region too, so that a stream elsewhere is never taken for one of the
 * same name here; a local run, which has one of each, may say the name alone.
 */
export type StreamPlace = { readonly streamArn: string } | { readonly streamName: string }

/** How a client reaches a Kafka cluster. Secrets are named, never contained. */
export interface KafkaCluster {
  /** Where a client begins, as `host:port`. One text may name several, with commas between, as MSK does. */
  readonly brokers: readonly string[]
  readonly auth:
    | { readonly kind: 'none' }
    /** MSK with IAM, by the role of the function. */
    | { readonly kind: 'iam'; readonly region: string }
    | {
        readonly kind: 'scram'
        /** A secret of Secrets Manager that holds `{"username":...,"password":...}`, as MSK and Lambda keep it. */
        readonly secretArn: string
        /** @default 'SCRAM-SHA-512' */
        readonly mechanism?: 'SCRAM-SHA-512' | 'SCRAM-SHA-256'
      }
  /** With `caPem` the brokers' certificates are signed by that authority, in PEM; with true by one that Node knows. */
  readonly tls: boolean | { readonly caPem: string }
}

/** Which topic to write to. */
export interface TopicPlace {
  readonly topic: string
  readonly cluster: KafkaCluster
  /** How many partitions the topic of a keyed stage was made with: it keeps them for ever. */
  readonly partitions?: number
  /** The id that it was made with. @default any topic of the name */
  readonly topicId?: string
}

/** The type of a key attribute of a table: text, number or bytes. */
export type KeyType = 'S' | 'N' | 'B'

export type SinkBinding =
  | ({
      readonly name: string
      readonly kind: 'kinesis'
      /** Whether records of one key keep their order, at the price of one unacknowledged record per key. */
      readonly ordering: 'per-key' | 'none'
    } & StreamPlace)
  | {
      readonly name: string
      readonly kind: 'dynamodb'
      /** The table's name, or its ARN, which names account and region too. */
      readonly tableName: string
      /** The table's partition key attribute: it takes the sink's key, where the sink declares one. */
      readonly partitionKey: string
      /** Where the stack knows it. */
      readonly partitionKeyType?: KeyType
      /** The table's sort key attribute, if it has one: a field of the value. */
      readonly sortKey?: string
      readonly sortKeyType?: KeyType
    }
  | {
      readonly name: string
      readonly kind: 'sqs'
      readonly queueUrl: string
      /** Said, as the URL may be a token at synth: a FIFO queue takes a group and an id with each message. */
      readonly fifo: boolean
      /** As of Kinesis; a FIFO queue has 'per-key'. @default 'per-key' */
      readonly ordering?: 'per-key' | 'none'
      /** @default 1,048,576, the limit of SQS itself */
      readonly maxMessageBytes?: number
    }
  | {
      readonly name: string
      readonly kind: 'eventbridge'
      /** The bus' name, or its ARN, which names account and region too. */
      readonly eventBusName: string
      /** The `source` and the `detail-type` of every event. */
      readonly source: string
      readonly detailType: string
      /** As of Kinesis. @default 'per-key' */
      readonly ordering?: 'per-key' | 'none'
    }
  | {
      readonly name: string
      readonly kind: 'firehose'
      readonly deliveryStreamName: string
      /** What stands behind each record. */
      readonly delimiter: string
      /** As of Kinesis. @default 'per-key' */
      readonly ordering?: 'per-key' | 'none'
    }
  | { readonly name: string; readonly kind: 'kafka'; readonly topic: string; readonly cluster: KafkaCluster }
  /** The user's own: the handler file provides it. */
  | { readonly name: string; readonly kind: 'custom' }

export type DeadLetterBinding = {
  /** Where payloads go that are too large for the transport. */
  readonly offloadBucket?: string
} & (
  | ({ readonly kind: 'kinesis' } & StreamPlace)
  | { readonly kind: 'sqs'; readonly queueUrl: string }
  | { readonly kind: 's3'; readonly bucket: string }
  | { readonly kind: 'kafka'; readonly topic: string; readonly cluster: KafkaCluster }
)

/**
 * Every kind of adapter that a bundle may hold; the constructs leave out those that are not bound. Without `state-dynamodb` the
 * runners of stages that keep progress are left out too; the announcer brings its own streams and tables, and what it needs for each
 * service.
 */
export const adapters = [
  'events-kafka',
  'events-dynamodb-stream',
  'events-sqs',
  'kinesis-sink',
  'dynamodb-sink',
  'sqs-sink',
  'eventbridge-sink',
  'firehose-sink',
  'kafka-sink',
  'dead-letters-kinesis',
  'dead-letters-sqs',
  'dead-letters-s3',
  'dead-letters-kafka',
  'state-dynamodb',
  'frames-kinesis',
  'frames-kafka',
  'lineage-kinesis',
  'lineage-kafka',
  'announcer-kinesis',
  'announcer-kafka',
] as const
export type Adapter = (typeof adapters)[number]

const serviceOf = (place: StreamPlace | TopicPlace): 'kinesis' | 'kafka' => ('topic' in place ? 'kafka' : 'kinesis')

/** The adapters that a function with these bindings needs. */
export function adaptersOf(bindings: StageBindings | AnnouncerBindings): ReadonlySet<Adapter> {
  if ('announces' in bindings) {
    // The function's own part is that of Kinesis; Kafka's comes beside it.
    const onKafka = bindings.announces.some((stage) => serviceOf(stage) === 'kafka')
    return new Set<Adapter>(onKafka ? ['announcer-kinesis', 'announcer-kafka'] : ['announcer-kinesis'])
  }
  const needed = new Set<Adapter>()
  for (const sink of bindings.sinks) if (sink.kind !== 'custom') needed.add(`${sink.kind}-sink`)
  needed.add(`dead-letters-${bindings.deadLetters.kind}`)
  // Those of Kinesis are those of keyed stages too, and always there.
  for (const { kind } of bindings.sources) if (kind !== 'kinesis') needed.add(`events-${kind}`)
  if (bindings.deadLetters.offloadBucket) needed.add('dead-letters-s3')
  for (const feed of bindings.feeds ?? []) needed.add(`frames-${serviceOf(feed)}`)
  if (bindings.state) {
    needed.add('state-dynamodb')
    for (const { kind } of bindings.sources) if (kind === 'kinesis' || kind === 'kafka') needed.add(`lineage-${kind}`)
    // Marks are told to every open partition of what is fed.
    for (const feed of bindings.feeds ?? []) needed.add(`lineage-${serviceOf(feed)}`)
  }
  return needed
}

/**
 * What a bundler puts in place of the switches of the adapters that are not bound: with an adapter's switch at `"false"`
 * its import is dead code, and the bundler leaves it out. Keys are expressions, such as
 * `process.env.MILLRACE_ADAPTER_KINESIS_SINK`; values are JavaScript text.
 */
export function adapterSwitches(bindings: StageBindings | AnnouncerBindings): Readonly<Record<string, string>> {
  const needed = adaptersOf(bindings)
  const leftOut = adapters.filter((adapter) => !needed.has(adapter))
  return Object.fromEntries(
    leftOut.map((adapter) => [`process.env.MILLRACE_ADAPTER_${adapter.toUpperCase().replaceAll('-', '_')}`, '"false"']),
  )
}
