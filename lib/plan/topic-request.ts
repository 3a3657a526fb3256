/**
 * What a deployment asks for of the topic of a keyed stage. The constructs write it as JSON into the properties of custom resources,
 * since CloudFormation turns every number there into text; the function that makes and checks topics reads it.
 */
import type { KafkaCluster } from './stage-bindings.ts'

export interface TopicRequest {
  readonly formatVersion: 1
  /** The keyed stage that reads it. */
  readonly stage: string
  readonly slots: number
  readonly cluster: KafkaCluster
  /** What its name begins with, where it is ours; the name of one that the user brings, which is only looked at. */
  readonly topic: { readonly prefix: string } | { readonly name: string }
  /** How many partitions it has for ever. */
  readonly partitions: number
  /** For how long it is to keep frames, in ms: the stage forgets what it knows of a key by it. */
  readonly retentionMs: number
  /** @default the cluster's own number */
  readonly replicas?: number
  /** Further settings of a topic of ours. */
  readonly settings: Readonly<Record<string, string>>
  /** Whether a topic of ours is deleted, with all that it holds, when its stage or the stack is. */
  readonly isDeletedWithStage: boolean
}

/** The type of the custom resource that makes a topic and keeps its settings. */
export const topicResourceType = 'Custom::MillraceTopic'
/** The type of the one that is made anew with each deployment of the stage, and refuses a topic that is not what it was. */
export const topicCheckType = 'Custom::MillraceTopicCheck'

/** How many partitions the topic of a stage with so many slots has where nobody says otherwise: 16, or a slot each. */
export const topicPartitionsOf = (slots: number): number => Math.min(16, slots)

/** What the largest frame takes of a topic's `max.message.bytes`. Kafka's own limit is less. */
export const leastMessageBytes = 1_048_704

/** Settings by which a topic keeps frames as they came and for as long as is said; a user cannot have others. */
export function frameSettings(retentionMs: number): Readonly<Record<string, string>> {
  return {
    'cleanup.policy': 'delete',
    'max.message.bytes': String(leastMessageBytes),
    // The broker's time: one clock for all writers, as Kinesis has it.
    'message.timestamp.type': 'LogAppendTime',
    // Of a topic that is cut by size, frames would go before they are read.
    'retention.bytes': '-1',
    'retention.ms': String(retentionMs),
  }
}

/** How the name of a topic of ours begins, which goes on with what tells one deployment's from another's. */
export const topicPrefixOf = (topology: string, stage: string): string => `${topology}-${stage}-`
