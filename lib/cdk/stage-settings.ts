/** What can be tuned of one stage, with its defaults and its limits. */
import { Duration, Token } from 'aws-cdk-lib'
import type { ITable } from 'aws-cdk-lib/aws-dynamodb'
import type { IStream } from 'aws-cdk-lib/aws-kinesis'
import { Architecture } from 'aws-cdk-lib/aws-lambda'
import type { BundlingOptions, NodejsFunctionProps } from 'aws-cdk-lib/aws-lambda-nodejs'
import { RetentionDays } from 'aws-cdk-lib/aws-logs'
import { ConfigurationError } from '../core/errors.ts'
import { refuseParallelization } from '../plan/parallelization.ts'
import type { StagePlan } from '../plan/plan.ts'
import type { StageTopicProps } from './kafka/stage-topic.ts'
import type { StageStreamProps, StageTableProps } from './keyed-resources.ts'

/** What is left to Lambda's own construct: network, layers, concurrency and the like. */
export type FunctionOverrides = Omit<
  NodejsFunctionProps,
  | keyof StageProps
  | 'code'
  | 'runtime'
  | 'projectRoot'
  | 'depsLockFilePath'
  | 'bundling'
  | 'events'
  | 'logGroup'
  | 'durableConfig'
  | 'tenancyConfig'
>

export interface StageProps {
  /** Memory in MiB, 128 to 10,240; CPU grows with it. @default 512 */
  readonly memorySize?: number
  /** The longest that one invocation may take, 1 s to 15 min, behind a topic of Kafka to 14. @default 1 minute */
  readonly timeout?: Duration
  /** The most records of one invocation, 1 to 10,000. Lambda also ends a batch at 6 MB. @default 500 */
  readonly batchSize?: number
  /** How long Lambda gathers records for a batch, 0 to 300 s in whole seconds. @default 1 second */
  readonly maxBatchingWindow?: Duration
  /**
   * Batches of one shard in flight at once, 1 to 10. Above 1 order is kept per partition key only, which is why a stage that is
   * keyed, or feeds one, refuses it.
   * @default 1
   */
  readonly parallelizationFactor?: number
  /** Whether the mapping reads. A mapping that is enabled again goes on where it stopped. @default true */
  readonly enabled?: boolean
  /** Further environment variables of the function. No secrets: pass the ARN of one instead. @default none */
  readonly environment?: Readonly<Record<string, string>>
  /** How long the function's logs are kept. @default one month */
  readonly logRetention?: RetentionDays
  /** The handler file of this stage, relative to the working directory of the CDK app. @default the application's */
  readonly entry?: string
  /** The exported name of the handler; an entry that exports no such name is refused. @default 'handler' */
  readonly handler?: string
  /** The processor that the function runs on. @default Architecture.ARM_64 */
  readonly architecture?: Architecture
  /**
   * Options of esbuild, such as `loader`. They win over ours; `define` adds to ours.
   * @default one minified ES module with a source map, which contains the AWS SDK
   */
  readonly bundling?: BundlingOptions
  /**
   * Environments that are kept ready, 1 or more. The mapping then invokes the alias `live` of the version that was deployed last;
   * who invokes the function itself, as a redrive does, still reaches the same code. Costs money while nothing runs.
   * @default none: the mapping invokes the function
   */
  readonly provisionedConcurrency?: number
  /**
   * Any other option of the function: `vpc`, `layers`, `reservedConcurrentExecutions`, `role`, `tracing`. It wins over ours.
   * @default none; tracing is off, and the function has a role of its own
   */
  readonly function?: FunctionOverrides
  /**
   * Keyed stages only: any option of the stage's stream, of which `shardCount` makes it provisioned, or a stream that you bring. The
   * function is told how long the stream keeps records; of a stream that is imported that is not known here, and
   * `streamHandler` takes it as `retention`.
   * @default on demand, 7 days of retention, encrypted with the key that AWS manages, and it stays when the stack is deleted
   */
  readonly stream?: StageStreamProps | IStream
  /**
   * Keyed stages whose application has `keyedStreams: KeyedStreams.topics(...)`: what is other than there of the stage's topic, or the
   * name of a topic that you bring. @default as said there
   */
  readonly topic?: StageTopicProps
  /**
   * Stages that are keyed or feed a keyed one: any option of their table but its keys and TTL, or a table that you bring. Its
   * partition key must be `pk` and its sort key `sk`, both of type S, and its time to live in `ttl`.
   * @default on demand, recoverable to any point in time, encrypted with the key that AWS manages, and it stays when the stack
   * is deleted
   */
  readonly table?: StageTableProps | ITable
}

/** The settings of one stage, complete and within the limits of Lambda. */
export type StageSettings = Required<
  Omit<StageProps, 'entry' | 'stream' | 'topic' | 'table' | 'provisionedConcurrency'>
> &
  Pick<StageProps, 'provisionedConcurrency'>

/** Completes what the user said of a stage, or throws a {@link ConfigurationError} that names the stage and the limit. */
export function settingsOf(planned: StagePlan, props: StageProps): StageSettings {
  const stage = planned.name
  refuseNotOffered(stage, props)
  refuseKeyedSettings(planned, props)
  refuseParallelization(planned, props.parallelizationFactor ?? 1)
  return {
    memorySize: within(stage, 'memorySize', props.memorySize ?? 512, 128, 10_240),
    timeout: withinSeconds(stage, 'timeout', props.timeout ?? Duration.minutes(1), 1, 900),
    batchSize: within(stage, 'batchSize', props.batchSize ?? 500, 1, 10_000),
    maxBatchingWindow: withinSeconds(
      stage,
      'maxBatchingWindow',
      props.maxBatchingWindow ?? Duration.seconds(1),
      0,
      300,
    ),
    parallelizationFactor: within(stage, 'parallelizationFactor', props.parallelizationFactor ?? 1, 1, 10),
    enabled: props.enabled ?? true,
    environment: props.environment ?? {},
    logRetention: props.logRetention ?? RetentionDays.ONE_MONTH,
    handler: props.handler ?? 'handler',
    bundling: props.bundling ?? {},
    function: props.function ?? {},
    provisionedConcurrency: checkedConcurrency(stage, props),
    architecture: props.architecture ?? Architecture.ARM_64,
  }
}

/** What the mappings of the CDK take, and what a stage cannot have. The types refuse it too; plain JavaScript and a cast do not. */
const notOffered: Readonly<Record<string, string>> = {
  tumblingWindow: "Lambda's windows follow arrival time and lose their state when the stream is resharded",
  filters: 'what a mapping filters out is counted nowhere and moves no event time; filter in the topology',
  retryAttempts: 'Lambda would drop what it gives up; a record that fails becomes a dead letter of the stage itself',
  maxRecordAge: 'Lambda would drop what it gives up; a record that fails becomes a dead letter of the stage itself',
  onFailure: 'a mapping that never gives up sends nothing there; say `deadLetters` to the application',
  bisectBatchOnError: 'a record that kills the function is found by bisecting, which is on wherever Lambda has it',
  reportBatchItemFailures: 'the function answers by record wherever Lambda reads that',
  startingPosition: 'it belongs to the source: new KinesisSource(stream, { startingPosition })',
  provisionedPollerConfig: 'it belongs to a source on Kafka: new KafkaSource(cluster, topic, { pollers })',
  runtime: 'functions run on Node 24, which is what Millrace is tested on',
}

function refuseNotOffered(stage: string, props: StageProps): void {
  for (const [setting, why] of Object.entries(notOffered)) {
    if (!(setting in props)) continue
    throw new ConfigurationError(
      `stage "${stage}" has the setting ${setting}, which is not offered: ${why}; leave it out.`,
    )
  }
}

function checkedConcurrency(stage: string, props: StageProps): number | undefined {
  const { provisionedConcurrency } = props
  if (provisionedConcurrency === undefined) return undefined
  const reserved = props.function?.reservedConcurrentExecutions ?? Number.MAX_SAFE_INTEGER
  const most = Token.isUnresolved(reserved) ? Number.MAX_SAFE_INTEGER : reserved
  if (Token.isUnresolved(provisionedConcurrency) || provisionedConcurrency <= most)
    return within(stage, 'provisionedConcurrency', provisionedConcurrency, 1, Number.MAX_SAFE_INTEGER)
  throw new ConfigurationError(
    `stage "${stage}" has provisionedConcurrency ${provisionedConcurrency} and reservedConcurrentExecutions ${most}: environments that are kept ready count against those that are reserved; reserve as many, or keep fewer ready.`,
  )
}

function refuseKeyedSettings({ kind, name }: StagePlan, props: StageProps): void {
  for (const own of ['stream', 'topic'] as const) {
    if (kind === 'keyed' || props[own] === undefined) continue
    throw new ConfigurationError(
      `stage "${name}" has the setting \`${own}\`, but only a keyed stage has a ${own} of its own: set it on the stage that is named after the keyBy.`,
    )
  }
  if (kind === 'stateless' && props.table !== undefined) {
    throw new ConfigurationError(
      `stage "${name}" has the setting \`table\`, but it keeps nothing and has no table: set it on a stage that is named after a keyBy, or on one that feeds it.`,
    )
  }
}

function within(stage: string, setting: string, value: number, least: number, most: number): number {
  if (Token.isUnresolved(value) || (Number.isInteger(value) && value >= least && value <= most)) return value
  throw new ConfigurationError(
    `stage "${stage}" has ${setting} ${value}: give a whole number from ${least} to ${most.toLocaleString('en')}.`,
  )
}

function withinSeconds(stage: string, setting: string, value: Duration, least: number, most: number): Duration {
  if (value.isUnresolved()) return value
  const seconds = value.toMilliseconds() / 1_000
  if (Number.isInteger(seconds) && seconds >= least && seconds <= most) return value
  throw new ConfigurationError(
    `stage "${stage}" has ${setting} ${seconds} s: give whole seconds from ${least} to ${most}.`,
  )
}
