/** An event source mapping of a run, and what its checkpoints say. */
import type { Checkpoint } from '../../emulator/event-source-mapping/index.ts'
import type { ShardLog, StreamState } from './streams.ts'

/** Whose mappings a run has: of Kinesis, or of Kafka without or with provisioned pollers. */
export type MappingKind = 'kinesis' | 'on-demand' | 'provisioned'

/** For which mapping a function answers; the last is what a canary does on Kafka. */
export type AnswerKind = MappingKind | 'first-offset-alone'

export interface Mapped {
  readonly start: () => Promise<void>
  /** Gives a shard another poller, at its checkpoint or behind an older record; on Kafka every partition of the topic. */
  readonly failOver: (shardId: string, after: string | undefined) => void
  readonly stage: string
  readonly stream: StreamState
  readonly checkpoints: Map<string, Checkpoint>
}

/** Whether a record is done as far as the checkpoint of its shard says. */
export function isBehind(checkpoint: Checkpoint | undefined, sequenceNumber: string): boolean {
  const position = checkpoint?.position
  return position?.at === 'after' && !isLess(position.sequenceNumber, sequenceNumber)
}

/** Whole numbers as they are written, without zeros before them: the shorter is less. */
const isLess = (one: string, other: string): boolean =>
  one.length === other.length ? one < other : one.length < other.length

/** Whether everything in a shard is done. */
export function isDone(shard: ShardLog, checkpoint: Checkpoint | undefined): boolean {
  if (shard.isClosed) return checkpoint?.drained === true
  const last = shard.records.at(-1)
  if (last === undefined) return true
  return checkpoint?.position.at === 'after' && checkpoint.position.sequenceNumber === last.sequenceNumber
}
