/** An event source mapping of a run, and what its checkpoints say. */
import type { Checkpoint, EventSourceMapping } from '../../emulator/event-source-mapping/index.ts'
import type { ShardLog, StreamState } from './streams.ts'

export interface Mapped {
  readonly mapping: EventSourceMapping
  readonly stage: string
  readonly stream: StreamState
  readonly checkpoints: Map<string, Checkpoint>
}

/** Whether a record is done as far as the checkpoint of its shard says. */
export function isBehind(checkpoint: Checkpoint | undefined, sequenceNumber: string): boolean {
  const position = checkpoint?.position
  return position?.at === 'after' && BigInt(position.sequenceNumber) >= BigInt(sequenceNumber)
}

/** Whether everything in a shard is done. */
export function isDone(shard: ShardLog, checkpoint: Checkpoint | undefined): boolean {
  if (shard.isClosed) return checkpoint?.drained === true
  const last = shard.records.at(-1)
  if (last === undefined) return true
  return checkpoint?.position.at === 'after' && checkpoint.position.sequenceNumber === last.sequenceNumber
}
