/** The log of one attempt at a keyed batch: its entries, folded into lines, and progress behind any of them. */
import { TerminalError } from '../../core/errors.ts'
import type { SourceRecord } from '../../core/record.ts'
import type { SlotMemo } from '../../core/slot.ts'
import type { Halt } from '../batch.ts'
import { type FoldOptions, KeyedFold, type Line } from '../progress/fold.ts'
import { unapplied } from '../progress/line.ts'
import { type KeyedProgress, reachedMarkMs } from '../progress/progress.ts'
import { hasRecord } from './keyed-line.ts'
import type { KeyedParts } from './keyed-parts.ts'

export class KeyedLog {
  readonly entries: readonly SourceRecord[]
  readonly lines: Line[] = []
  /** The keys of the batch's records, in the order in which they come first. */
  readonly keys = new Set<string>()
  readonly #before: KeyedProgress
  readonly #options: FoldOptions
  readonly #slots: SlotMemo
  readonly #isBisected: boolean
  readonly #fold: KeyedFold

  constructor(
    entries: readonly SourceRecord[],
    before: KeyedProgress,
    parts: Pick<KeyedParts, 'retentionMs' | 'slots' | 'shortTexts' | 'stage' | 'isBisected'>,
  ) {
    this.entries = entries
    this.#before = before
    this.#slots = parts.slots
    this.#isBisected = parts.isBisected
    const reads = { stage: parts.stage.name, version: parts.stage.input.schema.version }
    this.#options = { retentionMs: parts.retentionMs, reads, shortTexts: parts.shortTexts }
    this.#fold = this.#newFold()
  }

  #newFold(): KeyedFold {
    return new KeyedFold(this.#before, this.#options)
  }

  /** Numbers everything; a frame of a newer release or deployment ends the batch, and is the halt of what lies before it. */
  foldAll(): Halt | undefined {
    for (const [index, entry] of this.entries.entries()) {
      try {
        for (const line of this.#fold.fold(entry, index)) {
          const checked = this.#inItsSlot(line)
          if (hasRecord(checked)) this.keys.add(checked.record.key)
          this.lines.push(checked)
        }
      } catch (error) {
        return { number: this.#fold.result().number + 1, error, counts: false }
      }
    }
    return undefined
  }

  /**
   * A key in a slot that is not its own was sent by a stage that takes another number of slots for true. It may have numbers of
   * another shard's log, so applying it could drop what came before or comes after.
   */
  #inItsSlot(line: Line): Line {
    const { record, slot } = line
    if (record === undefined || this.#slots.of(record.key) === slot) return line
    const failure = new TerminalError(
      `a record came in slot ${slot}, but its key belongs to slot ${this.#slots.of(record.key)}: the stage that sent it was deployed with another number of slots; deploy both with the number that the state was made with, and redrive the dead letters`,
      { code: 'foreign-slot' },
    )
    return unapplied(line, failure)
  }

  /** The last number of the batch. */
  get lastNumber(): number {
    return this.lines.at(-1)?.number ?? this.#before.number
  }

  /**
   * When its only entry arrived, in ms since 1970 UTC; undefined where it has several. A batch that is never bisected is suspected as
   * one: then it is when its first entry did.
   */
  get loneArrivalMs(): number | undefined {
    return this.entries.length === 1 || !this.#isBisected ? this.entries[0]?.arrivalTimeMs : undefined
  }

  /** Records that were dropped as they had been read before. */
  get duplicates(): number {
    return this.#fold.duplicates
  }

  /** Redriven records that were dropped as they had been given up in an older generation. */
  get redrivesDropped(): number {
    return this.#fold.redrivesDropped
  }

  /** What the stage's watermark was before the line of that index; of a partition of several parents, that of the slowest. */
  watermarkBefore(index: number): number {
    return this.lines[index - 1]?.watermarkMs ?? reachedMarkMs(this.#before)
  }

  /** How many entries, from the first on, lie as a whole within the numbers up to `doneThrough`. */
  entriesThrough(doneThrough: number): number {
    const open = this.lines.find(({ number }) => number > doneThrough)
    return open?.entry ?? (this.lines.at(-1)?.entry ?? -1) + 1
  }

  /** The fold's value behind the first `entries` of the batch. */
  progressBehind(entries: number): KeyedProgress {
    if (entries >= this.entries.length) return this.#fold.result()
    const fold = this.#newFold()
    for (let i = 0; i < entries; i++) fold.fold(this.entries[i] as SourceRecord, i)
    return fold.result()
  }
}
