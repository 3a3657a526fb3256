/** What the topic of a keyed stage must be, whether we made it or the user brings it. */
import { ConfigurationError } from '../../core/errors.ts'
import { frameSettings, leastMessageBytes, type TopicRequest } from '../../plan/topic-request.ts'
import type { KafkaTopic } from './kafka-port.ts'

/** Whether a name is like those that we give for this request: its prefix, and ten digits that tell one creation from another. */
export const isLikeOurs = (topic: string, { topic: asked }: TopicRequest): boolean =>
  'prefix' in asked && topic.startsWith(asked.prefix) && /^[0-9a-f]{10}$/.test(topic.slice(asked.prefix.length))

/** A topic with the settings that hold for it. */
export interface HeldTopic extends KafkaTopic {
  readonly settings: ReadonlyMap<string, string>
}

const refused = (code: string, message: string): ConfigurationError => new ConfigurationError(message, { code })

const anew = 'give the stage another name, with which it gets a topic of its own and begins anew'

/**
 * Throws a {@link ConfigurationError} where a topic is not the one that was deployed with, or would lose frames or their order. `found`
 * is undefined where there is none.
 */
export function checkKeyedTopic(
  request: TopicRequest,
  { topic, topicId }: { readonly topic: string; readonly topicId: string },
  found: HeldTopic | undefined,
): void {
  const { stage, partitions } = request
  const isAnother = 'name' in request.topic ? request.topic.name !== topic : !isLikeOurs(topic, request)
  if (isAnother) {
    const asked = 'name' in request.topic ? `"${request.topic.name}"` : 'one of its own'
    throw refused(
      'topic-changed',
      `stage "${stage}" reads topic "${topic}", and is to read ${asked} now: what is unread of the first would be lost. Leave it as it was, or ${anew}.`,
    )
  }
  if (found === undefined) {
    throw refused(
      'unknown-topic',
      `there is no topic "${topic}", which stage "${stage}" reads: it was deleted, and what was unread of it is lost. To go on without it, ${anew}.`,
    )
  }
  if (found.id !== topicId) {
    throw refused(
      'recreated-topic',
      `topic "${topic}" of stage "${stage}" has the id ${found.id}, and the stage was deployed with ${topicId}: the topic was deleted and made again, and its offsets start over, so that what is written to it now would pass for done. To go on without what was unread, ${anew}.`,
    )
  }
  if (found.partitions !== partitions) {
    throw refused(
      'partitions-changed',
      `topic "${topic}" of stage "${stage}" has ${found.partitions} partitions, and ${partitions} are asked for: the partition of a slot is its number modulo that count, so it is fixed when the topic is made. ${partitionsRemedy(request, found.partitions)}`,
    )
  }
  checkSettings(request, topic, found)
}

function checkSettings({ stage, retentionMs }: TopicRequest, topic: string, { settings }: HeldTopic): void {
  for (const [name, wanted] of Object.entries(frameSettings(retentionMs))) {
    const held = settings.get(name)
    if (held === undefined || fits(name, held, wanted)) continue
    const instead =
      name === 'retention.ms' && Number(held) > 0 ? `, or say \`retention: Duration.millis(${held})\`` : ''
    throw refused(
      'topic-settings',
      `topic "${topic}" of stage "${stage}" has ${name} ${held}: ${reasons[name]}; set it to ${wanted}${instead}.`,
    )
  }
}

function partitionsRemedy({ slots }: TopicRequest, found: number): string {
  const isPossible = found > 0 && found <= slots && Number.isInteger(Math.log2(found))
  if (!isPossible) return `It must be a power of two of at most ${slots}, the slots of the stage: ${anew}.`
  return `Say \`partitions: ${found}\` where it was made with so many; where some were added later, keys went to partitions that do not hold their state: ${anew}.`
}

const fits = (name: string, held: string, wanted: string): boolean =>
  name === 'max.message.bytes' ? Number(held) >= leastMessageBytes : held === wanted

const reasons: Readonly<Record<string, string>> = {
  'cleanup.policy': 'frames of one slot share a key, and all but the last would be taken for outdated',
  'max.message.bytes': `the largest frame takes ${leastMessageBytes}, and one that is refused stops what writes it`,
  'message.timestamp.type': 'how late a record is, is told by the time at which the broker took it',
  'retention.bytes': 'frames would go by size, before they are read',
  'retention.ms': 'the stage forgets by it what it knows of a key, and must be told for how long frames stay',
}
