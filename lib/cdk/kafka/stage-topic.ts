/** What can be said of the topic of a keyed stage, with its defaults and its limits. */
import { Duration, RemovalPolicy, Token } from 'aws-cdk-lib'
import { ConfigurationError } from '../../core/errors.ts'
import { frameSettings, topicPartitionsOf } from '../../plan/topic-request.ts'
import type { Pollers } from './pollers.ts'

/** How topics of keyed stages are made and read. */
export interface KeyedTopicProps {
  /**
   * A power of two, at most the slots of the stage. It is fixed when the topic is made, as the partition of a slot is its number modulo
   * that count: as many batches of the stage run at once. @default 16, or the slots where those are fewer
   */
  readonly partitions?: number
  /** How many brokers hold each partition. @default what the cluster gives a new topic; 3 on MSK Serverless */
  readonly replicationFactor?: number
  /** For how long frames stay, an hour or more: what is not read by then is lost. The stage remembers emptied keys by it. @default 7 days */
  readonly retention?: Duration
  /**
   * Further settings of the topic, by their names in Kafka, such as `{ 'min.insync.replicas': '2' }`; those that frames depend on are
   * refused. @default the cluster's own
   */
  readonly settings?: Readonly<Record<string, string>>
  /**
   * Provisioned pollers, which are paid while nothing happens. Results are the same without: a batch of which a part failed comes again
   * whole, and what is done is dropped. With them a record that kills the function is found by bisecting.
   * @default pollers on demand, which cost nothing of their own
   */
  readonly pollers?: Pollers
  /**
   * Whether the topic goes, with all that it holds, when its stage or the stack does.
   * @default RemovalPolicy.RETAIN
   */
  readonly removalPolicy?: RemovalPolicy.RETAIN | RemovalPolicy.DESTROY
}

/** The topic of one stage: what is said here wins over what is said of all. */
export interface StageTopicProps extends KeyedTopicProps {
  /**
   * A topic that you bring, in the cluster of the keyed stages. It is never made, changed or deleted; a deployment refuses one of other
   * `partitions` or `retention`, with a `max.message.bytes` below 1,048,704, a `message.timestamp.type` that is not LogAppendTime, a
   * `cleanup.policy` that is not delete, or a limit of `retention.bytes`.
   * @default a topic of its own is made, whose name begins with those of topology and stage
   */
  readonly name?: string
}

/** The topic of a stage, complete. */
export type TopicSettings = Required<Pick<StageTopicProps, 'partitions' | 'retention' | 'settings' | 'removalPolicy'>> &
  Pick<StageTopicProps, 'name' | 'replicationFactor' | 'pollers'>

const ofTopicsOfOurs = ['replicationFactor', 'settings', 'removalPolicy'] as const

/**
 * Completes what is said of the topic of a stage by what is said of all. Throws a {@link ConfigurationError} that names stage, value and
 * remedy.
 */
export function topicSettingsOf(
  { name: stage, slots }: { readonly name: string; readonly slots: number },
  all: KeyedTopicProps,
  own: StageTopicProps,
): TopicSettings {
  if (own.name !== undefined) refuseForBrought(stage, own)
  const { partitions = topicPartitionsOf(slots), ...rest } = { ...all, ...own }
  const { retention = Duration.days(7), settings = {} } = rest
  const removalPolicy = own.name === undefined ? (rest.removalPolicy ?? RemovalPolicy.RETAIN) : RemovalPolicy.RETAIN
  checkPartitions(stage, partitions, slots)
  checkReplicas(stage, rest.replicationFactor)
  checkRetention(stage, retention)
  const owned = Object.keys(settings).find((setting) => setting in frameSettings(0))
  if (owned !== undefined) {
    throw new ConfigurationError(
      `the topic of stage "${stage}" has the setting ${owned} ${settings[owned]}, which is not yours to choose, as frames depend on it: leave it out${owned.startsWith('retention') ? ', and say `retention`' : ''}.`,
    )
  }
  return { ...rest, partitions, retention, settings, removalPolicy }
}

function refuseForBrought(stage: string, own: StageTopicProps): void {
  const said = ofTopicsOfOurs.find((setting) => own[setting] !== undefined)
  if (said === undefined) return
  throw new ConfigurationError(
    `the topic of stage "${stage}" has the \`name\` "${own.name}" and ${said}, and a topic that you bring is never changed: leave ${said} out, or leave \`name\` out to get a topic.`,
  )
}

function checkPartitions(stage: string, partitions: number, slots: number): void {
  if (Number.isInteger(Math.log2(partitions)) && partitions <= slots) return
  const shown = Token.isUnresolved(partitions) ? 'that only the deployment knows' : partitions
  throw new ConfigurationError(
    `the topic of stage "${stage}" has partitions ${shown}: give a power of two from 1 to ${slots}, the slots of the stage; its slots are dealt out to partitions once, for ever.`,
  )
}

function checkReplicas(stage: string, replicas: number | undefined): void {
  if (replicas === undefined || (Number.isInteger(replicas) && replicas >= 1 && replicas <= 32_767)) return
  throw new ConfigurationError(
    `the topic of stage "${stage}" has the replicationFactor ${replicas}: give a whole number of brokers, 3 as a rule, or leave it out for the cluster's own.`,
  )
}

function checkRetention(stage: string, retention: Duration): void {
  if (retention.toMilliseconds() >= Duration.hours(1).toMilliseconds()) return
  throw new ConfigurationError(
    `the topic of stage "${stage}" has the retention ${retention.toMilliseconds()} ms: give an hour or more, as frames that a short outage left unread would be lost.`,
  )
}
