/**
 * The streams of keyed stages in memory, for tests that run the real runner.
 *
 * 1. A frame goes to the shard whose hash range holds its slot's first hash, and stays there: each shard is a log.
 * 2. Frames are published by the production publisher; an aborted publish appends nothing.
 * 3. Shards are neither split nor merged, so none has parents and none is ever closed.
 */
import { firstHashOf } from '../core/slot.ts'
import type { EncodedFrame } from '../runtime/frames/frame.ts'
import { type FramePublisher, framePublisher } from '../runtime/frames/publisher.ts'
import type { Logger, RunnerClock } from '../runtime/ports.ts'
import { comparePartitionPositions, type PartitionLineage } from '../runtime/progress/lineage.ts'
import { sequenceNumber } from './events.ts'

const hashes = 2n ** 128n

export interface MemoryStreamOptions {
  /** The keyed stage that reads it. */
  readonly stage: string
  readonly slots: number
  readonly clock: RunnerClock
  readonly logger: Logger
  /** Shards of equal size, so that a stage is tested over several partitions. @default 2 */
  readonly shards?: number
}

/** One frame in a shard's log. */
export interface StreamedFrame extends EncodedFrame {
  /** Its place in the shard, from 0; `sequenceNumber(index)` is its position there. */
  readonly index: number
  /** When it was appended, in ms since 1970 UTC. */
  readonly arrivalTimeMs: number
}

/** A shard with frames of its own that nobody took yet. */
export interface TakenFrames {
  readonly shardId: string
  readonly frames: readonly StreamedFrame[]
}

interface Shard {
  readonly shardId: string
  readonly startHash: string
  readonly endHash: string
  appended: number
  waiting: StreamedFrame[]
}

/**
 * The stream of one keyed stage.
 *
 * @example
 * const stream = new MemoryStream({ stage: 'by-hotel', slots: 64, clock, logger })
 * await stream.publisher.publish(frames, signal)
 * for (const { shardId, frames } of stream.take()) console.log(shardId, frames.length)
 */
export class MemoryStream {
  readonly publisher: FramePublisher
  readonly lineage: PartitionLineage
  readonly #shards: readonly Shard[]

  constructor({ stage, slots, clock, logger, shards = 2 }: MemoryStreamOptions) {
    this.#shards = shardsOf(shards)
    const put = async (frames: readonly EncodedFrame[]) => {
      for (const frame of frames) this.#append(frame, firstHashOf(frame.slot, slots), clock.nowMs())
      return undefined
    }
    const label = `the stream of stage "${stage}" in memory`
    // Nothing is refused here, so nothing depends on the randomness.
    this.publisher = framePublisher({ label, put }, { clock, logger, random: () => 0, passesByItself: () => false })
    this.lineage = {
      list: async () =>
        this.#shards.map((shard) => ({ partition: shard.shardId, isClosed: false, ...descriptionOf(shard) })),
      describe: async (partition) => {
        const shard = this.#shards.find(({ shardId }) => shardId === partition)
        return shard && descriptionOf(shard)
      },
      isCaughtUp: async (partition, after) => {
        const appended = this.#shards.find(({ shardId }) => shardId === partition)?.appended ?? 0
        if (appended === 0) return true
        return after !== undefined && comparePartitionPositions(after, sequenceNumber(appended - 1)) >= 0
      },
      isDrained: async () => false,
    }
  }

  /** What was published since the last call, by shard; shards without news are left out. */
  take(): readonly TakenFrames[] {
    return this.#shards.flatMap((shard) => {
      const frames = shard.waiting
      shard.waiting = []
      return frames.length === 0 ? [] : [{ shardId: shard.shardId, frames }]
    })
  }

  #append(frame: EncodedFrame, hash: string, arrivalTimeMs: number): void {
    const shard = this.#shards.findLast(({ startHash }) => BigInt(startHash) <= BigInt(hash)) as Shard
    shard.waiting.push({ ...frame, index: shard.appended, arrivalTimeMs })
    shard.appended += 1
  }
}

const descriptionOf = ({ startHash, endHash }: Shard) => ({ parents: [], startHash, endHash })

function shardsOf(count: number): readonly Shard[] {
  const startOf = (index: number): bigint => (hashes / BigInt(count)) * BigInt(index)
  return Array.from({ length: count }, (_, index) => ({
    shardId: `shardId-${String(index).padStart(12, '0')}`,
    startHash: String(startOf(index)),
    endHash: String(index === count - 1 ? hashes - 1n : startOf(index + 1) - 1n),
    appended: 0,
    waiting: [],
  }))
}

/** A partition without parents that holds every key. */
export const wholePartition = { parents: [], startHash: '0', endHash: String(hashes - 1n) } as const

/** The partitions of sources in tests: whatever a test sends to is one, whole and open. */
export const sourceLineage: PartitionLineage = {
  list: async () => [],
  isCaughtUp: async () => false,
  describe: async () => wholePartition,
  isDrained: async () => false,
}

/**
 * The partitions of one source as handlers come to know them: each event brings one. They are whole, open and caught up, since
 * what a test has invoked the handler with is all there is.
 */
export class SeenPartitions implements PartitionLineage {
  readonly #seen = new Set<string>()

  async list() {
    return [...this.#seen].map((partition) => ({ ...wholePartition, partition, isClosed: false }))
  }

  async describe(partition: string) {
    this.#seen.add(partition)
    return wholePartition
  }

  async isCaughtUp() {
    return true
  }

  async isDrained() {
    return false
  }
}
