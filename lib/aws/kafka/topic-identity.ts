/**
 * Whether a topic is still the one that a stage was made with. Positions in it are offsets, which say nothing in another topic of the
 * same name; and a slot's partition is its number modulo the count of partitions, so that of a keyed stage's topic never changes.
 *
 * Progress remembers the id of the topic that it is of: see `lib/runtime/progress/log-identity.ts`.
 */
import { ConfigurationError } from '../../core/errors.ts'
import type { KafkaTopic } from './kafka-port.ts'

/** What is known of a topic from when it was made. */
export interface TopicIdentity {
  readonly topic: string
  /** Of the topic of a keyed stage, how many it was made with. @default any */
  readonly partitions?: number | undefined
  /** @default any */
  readonly topicId?: string | undefined
}

/** Throws a {@link ConfigurationError} (`recreated-topic`, `partitions-changed`) where the topic is another one now. */
export function checkTopic({ topic, partitions, topicId }: TopicIdentity, found: KafkaTopic): void {
  if (topicId !== undefined && topicId !== found.id) {
    throw new ConfigurationError(
      `topic "${topic}" has the id ${found.id}, but the application was deployed with ${topicId}: the topic was deleted and made again, and what was read of it is no measure of this one. Deploy the application with the topic that is there, under another name of the stage, which begins anew.`,
      { code: 'recreated-topic' },
    )
  }
  if (partitions === undefined || partitions === found.partitions) return
  throw new ConfigurationError(
    `topic "${topic}" has ${found.partitions} partitions, but it was made with ${partitions}: the partition of a slot is its number modulo that count, so keys would go to partitions that do not hold their state. Partitions cannot be taken away: give the stage another name, with which it gets a topic of its own.`,
    { code: 'partitions-changed' },
  )
}
