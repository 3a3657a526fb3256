/**
 * The dead letters of an application as its dead-letter stream holds them.
 *
 * Invariants:
 * 1. A dead letter is known by its id. It may be in the stream several times: delivered again, or failed again in a redrive. The
 *    last entry speaks for it.
 * 2. A dead letter is open while any of its places in the stream is not settled.
 * 3. All of the stream is read, from its beginning; entries are kept in memory.
 */
import type { DeadLetterEntry } from '../../aws/dead-letters/entry.ts'
import { deadLetterHandle, readDeadLetter } from '../../aws/dead-letters/reading.ts'
import type { ReadPosition, ShardReader } from '../../emulator/event-source-mapping/index.ts'

/** One dead letter, however often it is in the stream. */
export interface LoggedDeadLetter {
  readonly handle: string
  /** The last entry. */
  readonly entry: DeadLetterEntry
  /** Where its entries are, as `<shard>:<sequence number>`. */
  readonly places: readonly string[]
}

const readLimit = 10_000

export class DeadLetterLog {
  readonly #reader: ShardReader
  readonly #letters = new Map<string, LoggedDeadLetter>()
  /** How far each shard was read. */
  readonly #positions = new Map<string, ReadPosition>()
  /** What is in the stream and is no dead letter. */
  readonly unreadable: { readonly place: string; readonly problem: string }[] = []

  constructor(reader: ShardReader) {
    this.#reader = reader
  }

  /** Every dead letter, in the order in which they were first seen. */
  get letters(): readonly LoggedDeadLetter[] {
    return [...this.#letters.values()]
  }

  get(id: string): LoggedDeadLetter | undefined {
    return this.#letters.get(id)
  }

  /** Reads on to what is the end of the stream by now, and resolves with what came. Rejects where the stream cannot be read. */
  async refresh(): Promise<readonly DeadLetterEntry[]> {
    const came: DeadLetterEntry[] = []
    for (const { shardId } of await this.#reader.listShards()) await this.#readShard(shardId, came)
    return came
  }

  async #readShard(shardId: string, came: DeadLetterEntry[]): Promise<void> {
    const position = this.#positions.get(shardId) ?? { at: 'trim-horizon' }
    let iterator: string | null = await this.#reader.open(shardId, position)
    while (iterator !== null) {
      const { records, nextIterator, millisBehindLatest } = await this.#reader.read(iterator, readLimit)
      for (const { sequenceNumber, data } of records) {
        this.#take(`${shardId}:${sequenceNumber}`, data, came)
        this.#positions.set(shardId, { at: 'after', sequenceNumber })
      }
      // An empty answer alone does not mean the end: Kinesis answers so in the middle of a shard, too.
      iterator = millisBehindLatest === 0 ? null : nextIterator
    }
  }

  #take(place: string, data: Uint8Array, came: DeadLetterEntry[]): void {
    const entry = readDeadLetter(data)
    if ('problem' in entry) {
      this.unreadable.push({ place, problem: entry.problem })
      return
    }
    const places = [...(this.#letters.get(entry.id)?.places ?? []), place]
    this.#letters.set(entry.id, { handle: deadLetterHandle(entry.id), entry, places })
    came.push(entry)
  }
}
