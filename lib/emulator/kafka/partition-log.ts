/**
 * Owns the records of one partition.
 *
 * 1. Offsets ascend and are never used twice. They have gaps where a control record stood or compaction took something.
 * 2. Below `startOffset` there is nothing; `endOffset` is what the next record gets. Both only grow.
 * 3. What is taken is taken from the front, but for compaction, which leaves the last record of each key and of the log.
 */
import { KafkaError } from './errors.ts'
import { ProducerStates } from './producer-state.ts'
import type { LogRecord, OffsetSpec } from './shapes.ts'

export class PartitionLog {
  readonly producers = new ProducerStates()
  #records: LogRecord[] = []
  #startOffset = 0
  #endOffset = 0

  get startOffset(): number {
    return this.#startOffset
  }

  get endOffset(): number {
    return this.#endOffset
  }

  /** Appends records; the answer is the offset of the first. */
  append(records: readonly Omit<LogRecord, 'offset'>[]): number {
    const first = this.#endOffset
    for (const record of records) {
      this.#records.push({ ...record, offset: this.#endOffset })
      this.#endOffset += 1
    }
    return first
  }

  /** Takes an offset for the mark of a transaction's end, which no reader ever sees. */
  appendControl(): void {
    this.#endOffset += 1
  }

  /** Records from an offset on. Throws a {@link KafkaError} where the log has no such offset. */
  read(offset: number, maxRecords: number): { readonly records: readonly LogRecord[]; readonly nextOffset: number } {
    if (offset < this.#startOffset || offset > this.#endOffset) {
      throw new KafkaError(
        'OFFSET_OUT_OF_RANGE',
        `The offset ${offset} is not within ${this.#startOffset} and ${this.#endOffset}, which the partition has.`,
      )
    }
    const from = this.#indexOf((record) => record.offset >= offset)
    const records = this.#records.slice(from, from + maxRecords)
    const isAll = from + records.length === this.#records.length
    const nextOffset = isAll ? this.#endOffset : (records.at(-1)?.offset ?? offset - 1) + 1
    return { records, nextOffset }
  }

  /** The offset at a place; undefined where no record has that timestamp or a later one. */
  offsetAt(spec: OffsetSpec): number | undefined {
    if (spec === 'earliest') return this.#startOffset
    if (spec === 'latest') return this.#endOffset
    // Timestamps of producers do not ascend, so each record is looked at.
    return this.#records.find(({ timestampMs }) => timestampMs >= spec.timestampMs)?.offset
  }

  /** Forgets what lies before an offset. */
  trimBefore(offset: number): void {
    if (offset > this.#endOffset) {
      throw new KafkaError(
        'OFFSET_OUT_OF_RANGE',
        `The offset ${offset} is behind the end of the log, ${this.#endOffset}.`,
      )
    }
    if (offset <= this.#startOffset) return
    this.#startOffset = offset
    this.#records = this.#records.slice(this.#indexOf((record) => record.offset >= offset))
  }

  /** Forgets from the front what has a timestamp before `horizonMs`: a younger record keeps all behind it. */
  expireBefore(horizonMs: number): void {
    const young = this.#records.findIndex(({ timestampMs }) => timestampMs >= horizonMs)
    if (young === 0 || this.#records.length === 0) return
    this.trimBefore(young < 0 ? this.#endOffset : (this.#records[young] as LogRecord).offset)
  }

  /** Keeps the last record of each key, tombstones since `tombstonesSinceMs` only, and the last record of the log. */
  compact(tombstonesSinceMs: number): void {
    const keyOf = ({ key }: LogRecord) => Buffer.from(key ?? []).toString('latin1')
    const last = new Map(this.#records.map((record) => [keyOf(record), record.offset]))
    const end = this.#records.at(-1)?.offset
    this.#records = this.#records.filter((record) => {
      if (record.offset === end) return true
      if (last.get(keyOf(record)) !== record.offset) return false
      return record.value !== null || record.timestampMs >= tombstonesSinceMs
    })
  }

  /** The index of the first record of which something holds that then holds of all behind it. */
  #indexOf(holds: (record: LogRecord) => boolean): number {
    let [low, high] = [0, this.#records.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (holds(this.#records[middle] as LogRecord)) high = middle
      else low = middle + 1
    }
    return low
  }
}
