/**
 * The stream of a table: one shard that takes a record per changed item and keeps it for 24 hours.
 *
 * AWS splits and rolls the shards of a stream; here there is one from the table's creation to its deletion, which closes it. What it
 * holds can be read on, as at AWS, until it is too old.
 */
import type { Item, KeySchemaElement, StreamView } from './shapes.ts'

export const STREAM_RETENTION_MS = 86_400_000

export interface Change {
  readonly atMs: number
  readonly keys: Item
  readonly before: Item | undefined
  readonly after: Item | undefined
  /** True for what TTL deleted. */
  readonly expired: boolean
}

/** Of 21 digits at least, growing with the number, as the API asks. */
export function sequenceOf(number: number): string {
  return `1${String(number).padStart(20, '0')}`
}

/** The number of a sequence number; undefined for any other text. */
export function numberOf(sequence: string): number | undefined {
  const digits = /^1(\d{20})$/.exec(sequence)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

export class TableStream {
  readonly arn: string
  readonly label: string
  readonly table: string
  readonly view: StreamView
  readonly keySchema: readonly KeySchemaElement[]
  readonly createdAtMs: number
  closedAtMs: number | undefined
  #changes: Change[] = []
  /** How many of the changes in the array are trimmed; they are taken out many at a time. */
  #trimmed = 0
  #firstNumber = 1

  constructor(options: Pick<TableStream, 'arn' | 'label' | 'table' | 'view' | 'keySchema' | 'createdAtMs'>) {
    this.arn = options.arn
    this.label = options.label
    this.table = options.table
    this.view = options.view
    this.keySchema = options.keySchema
    this.createdAtMs = options.createdAtMs
  }

  get shardId(): string {
    return `shardId-${String(this.createdAtMs).padStart(20, '0')}-00000001`
  }

  /** The number of the oldest change that is kept, or of the next one where there is none. */
  get firstNumber(): number {
    return this.#firstNumber + this.#trimmed
  }

  /** The number that the next change will get. */
  get nextNumber(): number {
    return this.#firstNumber + this.#changes.length
  }

  append(change: Change): void {
    this.trim(change.atMs)
    this.#changes.push(change)
  }

  /** Forgets what is older than the retention. */
  trim(nowMs: number): void {
    while ((this.#changes[this.#trimmed]?.atMs ?? Number.POSITIVE_INFINITY) < nowMs - STREAM_RETENTION_MS) {
      this.#trimmed += 1
    }
    if (this.#trimmed > this.#changes.length / 2) {
      this.#changes = this.#changes.slice(this.#trimmed)
      this.#firstNumber += this.#trimmed
      this.#trimmed = 0
    }
  }

  at(number: number): Change | undefined {
    return number < this.firstNumber ? undefined : this.#changes[number - this.#firstNumber]
  }

  /** Whether it was closed so long ago that nothing of it can be left. */
  isGone(nowMs: number): boolean {
    return this.closedAtMs !== undefined && this.closedAtMs < nowMs - STREAM_RETENTION_MS
  }
}
