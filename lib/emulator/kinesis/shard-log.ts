/**
 * Owns the records of one shard, in order.
 *
 * 1. Records are numbered from 1 without gaps; a number never names another record.
 * 2. Arrival times never fall from one record to the next.
 * 3. Bytes are copied into segments of at most 1 MiB (or one larger record), so a record costs its bytes, its key and two
 *    numbers; finding a position is a binary search over segments, never a scan of records.
 * 4. Trimming moves `firstNumber` up and frees whole segments; it never changes what stays.
 */
const FIRST_SEGMENT_BYTES = 4 * 1_024
const LARGEST_SEGMENT_BYTES = 1_024 * 1_024

interface Segment {
  readonly firstNumber: number
  readonly bytes: Buffer
  /** Where the i-th record's data ends in `bytes`. */
  readonly ends: number[]
  readonly arrivalsMs: number[]
  readonly partitionKeys: string[]
}

/** A record as it is stored. `data` is a view into the log: it must not be changed. */
export interface StoredRecord {
  readonly number: number
  readonly partitionKey: string
  readonly arrivalMs: number
  readonly data: Buffer
}

/** The least index in [0, count) for which `holds` is true, or `count`; `holds` must turn from false to true once. */
function firstIndexWhere(count: number, holds: (index: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

const endOf = (segment: Segment, index: number): number => (index < 0 ? 0 : (segment.ends[index] ?? 0))
const lastNumberOf = (segment: Segment): number => segment.firstNumber + segment.ends.length - 1

/** What a record counts against size and throughput limits: its data and its partition key in UTF-8. */
export function billedBytes(partitionKey: string, data: Uint8Array): number {
  return Buffer.byteLength(partitionKey) + data.byteLength
}

export class ShardLog {
  readonly #segments: Segment[] = []
  #nextSegmentBytes = FIRST_SEGMENT_BYTES
  #lastArrivalMs: number
  #firstNumber = 1
  #nextNumber = 1

  /** `notBeforeMs`: the arrival time that no record of this log may precede, a parent's last for a child shard. */
  constructor(notBeforeMs: number) {
    this.#lastArrivalMs = notBeforeMs
  }

  /** The number of the oldest record that can still be read; equal to {@link nextNumber} when there is none. */
  get firstNumber(): number {
    return this.#firstNumber
  }

  /** The number that the next record will have. */
  get nextNumber(): number {
    return this.#nextNumber
  }

  get lastArrivalMs(): number {
    return this.#lastArrivalMs
  }

  append(partitionKey: string, data: Uint8Array, nowMs: number): { number: number; arrivalMs: number } {
    const segment = this.#segmentWithRoomFor(data.byteLength)
    const start = endOf(segment, segment.ends.length - 1)
    segment.bytes.set(data, start)
    segment.ends.push(start + data.byteLength)
    segment.partitionKeys.push(partitionKey)
    const arrivalMs = Math.max(nowMs, this.#lastArrivalMs)
    segment.arrivalsMs.push(arrivalMs)
    this.#lastArrivalMs = arrivalMs
    const number = this.#nextNumber
    this.#nextNumber += 1
    return { number, arrivalMs }
  }

  /** Up to `limit` records from `fromNumber` on, at least one if there is one, else no more than `maxBytes` of them. */
  read(fromNumber: number, limit: number, maxBytes: number): StoredRecord[] {
    const records: StoredRecord[] = []
    let number = Math.max(fromNumber, this.#firstNumber)
    let bytes = 0
    for (let s = firstIndexWhere(this.#segments.length, (i) => this.#reaches(i, number)); ; s += 1) {
      const segment = this.#segments[s]
      if (segment === undefined) return records
      for (let i = number - segment.firstNumber; i < segment.ends.length; i += 1, number += 1) {
        const record = recordAt(segment, i)
        bytes += billedBytes(record.partitionKey, record.data)
        if (records.length === limit || (records.length > 0 && bytes > maxBytes)) return records
        records.push(record)
      }
    }
  }

  /** The number of the first readable record that arrived at or after `timeMs`, or {@link nextNumber}. */
  firstNumberAtOrAfter(timeMs: number): number {
    const s = firstIndexWhere(this.#segments.length, (i) => (this.#segments[i]?.arrivalsMs.at(-1) ?? 0) >= timeMs)
    const segment = this.#segments[s]
    if (segment === undefined) return this.#nextNumber
    const i = firstIndexWhere(segment.ends.length, (index) => (segment.arrivalsMs[index] ?? 0) >= timeMs)
    return Math.max(segment.firstNumber + i, this.#firstNumber)
  }

  /** Forgets the records that arrived before `horizonMs`. */
  trimBefore(horizonMs: number): void {
    if ((this.#segments[0]?.arrivalsMs[0] ?? Number.POSITIVE_INFINITY) >= horizonMs) return
    this.#firstNumber = this.firstNumberAtOrAfter(horizonMs)
    this.#segments.splice(
      0,
      firstIndexWhere(this.#segments.length, (i) => this.#reaches(i, this.#firstNumber)),
    )
  }

  #reaches(segmentIndex: number, number: number): boolean {
    const segment = this.#segments[segmentIndex]
    return segment !== undefined && lastNumberOf(segment) >= number
  }

  #segmentWithRoomFor(dataBytes: number): Segment {
    const last = this.#segments.at(-1)
    if (last !== undefined && endOf(last, last.ends.length - 1) + dataBytes <= last.bytes.length) return last
    const segment: Segment = {
      firstNumber: this.#nextNumber,
      bytes: Buffer.allocUnsafeSlow(Math.max(this.#nextSegmentBytes, dataBytes)),
      ends: [],
      arrivalsMs: [],
      partitionKeys: [],
    }
    this.#nextSegmentBytes = Math.min(LARGEST_SEGMENT_BYTES, this.#nextSegmentBytes * 4)
    this.#segments.push(segment)
    return segment
  }
}

function recordAt(segment: Segment, index: number): StoredRecord {
  return {
    number: segment.firstNumber + index,
    partitionKey: segment.partitionKeys[index] ?? '',
    arrivalMs: segment.arrivalsMs[index] ?? 0,
    data: segment.bytes.subarray(endOf(segment, index - 1), segment.ends[index]),
  }
}
