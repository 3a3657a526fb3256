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
  /** When the reading of a source begins, in ms since 1970 UTC. @default the oldest record of each shard */
  readonly startingAtMs?: number
} & StreamPlace

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
} & StreamPlace

/** `eventSource` is what events of the source name: a stream's ARN; for Kafka, the cluster's ARN where it has one, and the topic. */
export type SourceBinding =
  | {
      readonly name: string
      readonly kind: 'kinesis'
      readonly streamArn: string
      /** When its reading begins, in ms since 1970 UTC. @default the oldest record of each shard */
      readonly startingAtMs?: number
    }
  | { readonly name: string; readonly kind: 'kafka'; readonly clusterArn?: string; readonly topic: string }

/**
 * Which stream to write to. The ARN names account and region too, so that a stream elsewhere is never taken for one of the
 * same name here; a local run, which has one of each, may say the name alone.
 */
export type StreamPlace = { readonly streamArn: string } | { readonly streamName: string }

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
  /** The user's own: the handler file provides it. */
  | { readonly name: string; readonly kind: 'custom' }

export type DeadLetterBinding = {
  /** Where payloads go that are too large for the transport. */
  readonly offloadBucket?: string
} & (
  | ({ readonly kind: 'kinesis' } & StreamPlace)
  | { readonly kind: 'sqs'; readonly queueUrl: string }
  | { readonly kind: 's3'; readonly bucket: string }
)

/**
 * Every kind of adapter that a bundle may hold; the constructs leave out those that are not bound. Without `state-dynamodb` the
 * runners of stages that keep progress are left out too; `announcer-kinesis` brings its own streams and tables.
 */
export const adapters = [
  'kinesis-sink',
  'dynamodb-sink',
  'dead-letters-kinesis',
  'dead-letters-sqs',
  'dead-letters-s3',
  'state-dynamodb',
  'frames-kinesis',
  'lineage-kinesis',
  'announcer-kinesis',
] as const
export type Adapter = (typeof adapters)[number]

/** The adapters that a function with these bindings needs. */
export function adaptersOf(bindings: StageBindings | AnnouncerBindings): ReadonlySet<Adapter> {
  if ('announces' in bindings) return new Set(['announcer-kinesis'])
  const needed = new Set<Adapter>()
  for (const sink of bindings.sinks) if (sink.kind !== 'custom') needed.add(`${sink.kind}-sink`)
  needed.add(`dead-letters-${bindings.deadLetters.kind}`)
  if (bindings.deadLetters.offloadBucket) needed.add('dead-letters-s3')
  if (bindings.feeds?.length) needed.add('frames-kinesis')
  if (bindings.state) {
    needed.add('state-dynamodb')
    if (bindings.sources.some(({ kind }) => kind === 'kinesis')) needed.add('lineage-kinesis')
    // Marks are told to every open shard of what is fed.
    if (bindings.feeds?.length) needed.add('lineage-kinesis')
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
