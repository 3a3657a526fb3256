/**
 * Cuts the outputs of one attempt into frames, and knows for which of them it can vouch (S1 to S4 of docs/frames.md).
 *
 * 1. A frame's claims hold all that was ever sent to its slot there. An attempt knows that only of what it computed
 *    itself: up to the last position that it found committed by another, each record claims itself alone.
 * 2. Where a number is complete, its last record in a slot claims the number to its end. That is true of every attempt,
 *    and the position kept by readers needs no index and no hash.
 * 3. A frame ends where a number ends if it can, and stays within the limit unless one record is larger.
 * 4. A record that fits in no frame is refused inside its step.
 */
import { invariant, TerminalError } from '../../core/errors.ts'
import type { EncodedFrame, OutgoingRecord, Upstream } from './frame.ts'
import { defaultFrameBytes, mostFrameBytes, sealFrame } from './frame-format.ts'
import {
  comparePositions,
  endOf,
  firstPosition,
  type Interval,
  justBefore,
  laterOf,
  type Position,
} from './position.ts'
import { mostHeaderBytes, mostRowBytes, RecordRows, type WrittenRows } from './record-rows.ts'

/** An output with the slot of its key in the stream it goes to. */
export interface SlottedRecord {
  readonly slot: number
  readonly record: OutgoingRecord
}

export interface SenderOptions {
  readonly upstream: Upstream
  readonly schemaVersion: number
  /** The last position that was claimed in each slot, as progress keeps it. */
  readonly sent: ReadonlyMap<number, Position>
  /** The number of slots of the stream. */
  readonly slots: number
  /** Where frames are cut, in bytes, up to 1 MiB. @default 262,144 */
  readonly frameBytes?: number
}

/** What the frames of one call have in common. */
export interface BatchOfOutputs {
  /** The upstream's mark when its batch began, in ms since 1970 UTC. */
  readonly markMs: number
  /** All that happens at this number and before it is in this call or was in an earlier one. */
  readonly completeThrough: number
}

/** More than a claim and, apart from its names, the head of a frame ever take. */
const mostClaimBytes = 80
const mostHeadBytes = 128

/**
 * The sender of one attempt at one batch.
 *
 * @example
 * const sender = new Sender({ upstream, schemaVersion: 1, sent: progress.sent, slots: 64 })
 * for (const key of loaded) if (key.position > progress.number) sender.foundAhead(endOf(key.position))
 * await publisher.publish(sender.frames(outputs, { markMs, completeThrough: 41 }), signal)
 */
export class Sender {
  readonly #options: SenderOptions
  readonly #sent: Map<number, Position>
  readonly #frameBytes: number
  #foundAhead = firstPosition
  /** Used for one frame after the other. */
  readonly #rows = new RecordRows()

  constructor(options: SenderOptions) {
    this.#options = options
    this.#sent = new Map(options.sent)
    const { name, partition } = options.upstream
    const frameBytes = Math.min(options.frameBytes ?? defaultFrameBytes, mostFrameBytes)
    this.#frameBytes = frameBytes - mostHeadBytes - (name.length + partition.length) * 3
  }

  /** Another attempt committed a key at this position: what it sent up to there this one cannot know. */
  foundAhead(position: Position): void {
    this.#foundAhead = laterOf(this.#foundAhead, position)
  }

  /** The last position that was claimed, or found ahead, in each slot: what progress keeps and a close names. */
  sent(): ReadonlyMap<number, Position> {
    if (this.#foundAhead === firstPosition) return new Map(this.#sent)
    return new Map(Array.from({ length: this.#options.slots }, (_, slot) => [slot, this.#lastOf(slot)]))
  }

  /**
   * Throws a {@link TerminalError} `oversize` for a record that fits in no frame. Called inside the step, so that the
   * record becomes a dead letter; `frames` throws the same for whoever did not ask.
   */
  checkFits(record: OutgoingRecord): void {
    const { name, partition } = this.#options.upstream
    const byteLength = mostRowBytes(record) + mostClaimBytes + mostHeadBytes + (name.length + partition.length) * 3
    if (byteLength <= mostFrameBytes) return
    const { key, value, headers } = record
    const [beside, andSmaller] =
      headers === undefined ? ['', ''] : [` and headers that take up to ${mostHeaderBytes(headers)}`, ' or the headers']
    throw new TerminalError(
      `the output to key of ${key.length} characters has a value of ${Buffer.byteLength(value)} bytes${beside}: a record between stages takes ${mostFrameBytes} with its key and coordinates, so make the value${andSmaller} smaller`,
      { code: 'oversize' },
    )
  }

  /** Cuts outputs, given in the order of their positions, into frames: slot by slot, each slot's in order. */
  frames(outputs: readonly SlottedRecord[], batch: BatchOfOutputs): EncodedFrame[] {
    const bySlot = new Map<number, OutgoingRecord[]>()
    for (const { slot, record } of outputs) {
      const own = bySlot.get(slot)
      if (own === undefined) bySlot.set(slot, [record])
      else own.push(record)
    }
    const frames: EncodedFrame[] = []
    for (const [slot, records] of bySlot) this.#addFrames(frames, slot, records, batch)
    return frames
  }

  #lastOf(slot: number): Position {
    return laterOf(this.#sent.get(slot) ?? firstPosition, this.#foundAhead)
  }

  #addFrames(frames: EncodedFrame[], slot: number, records: readonly OutgoingRecord[], batch: BatchOfOutputs): void {
    checkAscending(records)
    for (let from = 0; from < records.length; ) {
      const rows = this.#fill(slot, records, from)
      const until = from + rows.count
      const claims = this.#claim(slot, records, from, until, batch.completeThrough)
      const { upstream, schemaVersion } = this.#options
      frames.push(sealFrame({ upstream, slot, schemaVersion, markMs: batch.markMs, claims }, rows))
      from = until
    }
  }

  /** As many rows, from `from` on, as make one frame: a view that the next frame's rows overwrite. */
  #fill(slot: number, records: readonly OutgoingRecord[], from: number): WrittenRows {
    const last = this.#lastOf(slot)
    const rows = this.#rows
    rows.restart()
    let claimBytes = mostClaimBytes
    let numberFrom = from
    let number = -1
    let bytesBeforeNumber = 0
    for (let i = from; i < records.length; i++) {
      const record = records[i] as OutgoingRecord
      const { position } = record
      const bytesBefore = rows.byteLength
      if (position.number !== number) {
        number = position.number
        numberFrom = i
        bytesBeforeNumber = bytesBefore
      }
      rows.add(record)
      if (number <= last.number && comparePositions(position, last) <= 0) claimBytes += mostClaimBytes
      if (i === from || rows.byteLength + claimBytes <= this.#frameBytes) continue
      if (numberFrom > from) return rows.written(numberFrom - from, bytesBeforeNumber)
      return rows.written(i - from, bytesBefore)
    }
    return rows.written(records.length - from)
  }

  /** The claims of one frame; from here on they count as sent. */
  #claim(
    slot: number,
    records: readonly OutgoingRecord[],
    from: number,
    until: number,
    completeThrough: number,
  ): readonly Interval[] {
    const before = this.#lastOf(slot)
    if (comparePositions(before, positionAt(records, from)) < 0) {
      // All are ours, and each claim begins where the one before ends: together they are one.
      const last = claimedBy(records, until - 1, completeThrough)
      this.#sent.set(slot, last)
      return [{ previous: before, last }]
    }
    const claims: Interval[] = []
    for (let i = from; i < until; i++) append(claims, this.#claimOne(slot, records, i, completeThrough))
    return claims
  }

  #claimOne(slot: number, records: readonly OutgoingRecord[], index: number, completeThrough: number): Interval {
    const position = positionAt(records, index)
    const before = this.#lastOf(slot)
    const isOurs = comparePositions(before, position) < 0
    const last = isOurs ? claimedBy(records, index, completeThrough) : position
    this.#sent.set(slot, laterOf(before, last))
    return { previous: isOurs ? before : justBefore(position), last }
  }
}

const positionAt = (records: readonly OutgoingRecord[], index: number): Position =>
  (records[index] as OutgoingRecord).position

/** Up to where a record of ours claims: to the end of its number, where that is complete and none of it follows. */
function claimedBy(records: readonly OutgoingRecord[], index: number, completeThrough: number): Position {
  const position = positionAt(records, index)
  const endsNumber = position.number <= completeThrough && records[index + 1]?.position.number !== position.number
  return endsNumber ? endOf(position.number) : position
}

function checkAscending(records: readonly OutgoingRecord[]): void {
  for (let i = 1; i < records.length; i++) {
    const [before, position] = [positionAt(records, i - 1), positionAt(records, i)]
    if (before.number < position.number || comparePositions(before, position) < 0) continue
    invariant(false, 'outputs are published out of order')
  }
}

/** Adds a claim, as one with the claim before where they touch. */
function append(claims: Interval[], claim: Interval): void {
  const end = claims.at(-1)
  if (end === undefined || comparePositions(end.last, claim.previous) !== 0) claims.push(claim)
  else claims[claims.length - 1] = { previous: end.previous, last: claim.last }
}
