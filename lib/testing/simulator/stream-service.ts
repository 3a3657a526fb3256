/** What keeps the streams of a run: Kinesis or Kafka, as models. What goes wrong with it is the business of streams.ts. */
import type { SlotPlace } from '../../core/slot.ts'
import type { ReadPosition, ShardRead } from '../../emulator/event-source-mapping/index.ts'
import type { Random } from './random.ts'

/** A shard or partition as its service lists it. */
export interface ListedShard {
  readonly id: string
  readonly parents: readonly string[]
  readonly place: SlotPlace
  readonly isClosed: boolean
}

/** What is put, and where: by the slot of a keyed stage's stream, else by the key. */
export interface NewEntry {
  readonly partitionKey: string
  readonly data: Uint8Array
  readonly slot?: { readonly slot: number; readonly of: number } | undefined
}

export interface StreamService {
  create(name: string, partitions: number): void
  /** In the order in which they came to be, parents first. */
  list(name: string): readonly ListedShard[]
  put(name: string, entry: NewEntry): { readonly shard: string; readonly sequenceNumber: string }
  open(name: string, shard: string, position: ReadPosition): string
  read(iterator: string, limit: number): ShardRead
  /**
   * Changes which shards a stream has, `isSource` where it is that of the source. Says what it did, and how that is counted;
   * undefined where the service lets nothing be changed.
   */
  change(name: string, isSource: boolean, random: Random): Change | undefined
  /** What tells a topic from another of its name. @default the service has no such thing */
  identity?(name: string): string
}

export interface Change {
  readonly what: string
  readonly kind: string
}
