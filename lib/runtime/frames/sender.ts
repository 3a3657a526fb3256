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
import type { EncodedFrame, FrameRecord, Upstream } from './frame.ts'
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
import { mostRowBytes, RecordRows } from './record-rows.ts'

/** An output with the slot of its key in the stream it goes to. */
export interface SlottedRecord {
  readonly slot: number
  readonly record: FrameRecord
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
  checkFits(record: FrameRecord): void {
    const { name, partition } = this.#options.upstream
    const byteLength = mostRowBytes(record) + mostClaimBytes + mostHeadBytes + (name.length + partition.length) * 3
    if (byteLength <= mostFrameBytes) return
    throw new TerminalError(
      `the output to key of ${record.key.length} characters has a value of ${record.value.byteLength} bytes: a record between stages takes ${mostFrameBytes} with its key and coordinates, so make the value smaller`,
      { code: 'oversize' },
    )
  }

  /** Cuts outputs, given in the order of their positions, into frames: slot by slot, each slot's in order. */
  frames(outputs: readonly SlottedRecord[], batch: BatchOfOutputs): EncodedFrame[] {
    const bySlot = Map.groupBy(outputs, ({ slot }) => slot)
    return [...bySlot].flatMap(([slot, own]) => this.#framesOf(slot, own, batch))
  }

  #lastOf(slot: number): Position {
    return laterOf(this.#sent.get(slot) ?? firstPosition, this.#foundAhead)
  }

  #framesOf(slot: number, outputs: readonly SlottedRecord[], batch: BatchOfOutputs): EncodedFrame[] {
    const frames: EncodedFrame[] = []
    for (let from = 0; from < outputs.length; ) {
      const { until, rows } = this.#fill(slot, outputs, from)
      const claims = this.#claim(slot, outputs, from, until, batch.completeThrough)
      const { upstream, schemaVersion } = this.#options
      frames.push(sealFrame({ upstream, slot, schemaVersion, markMs: batch.markMs, claims }, until - from, rows))
      from = until
    }
    return frames
  }

  /** As many rows, from `from` on, as make one frame. */
  #fill(slot: number, outputs: readonly SlottedRecord[], from: number): { until: number; rows: Uint8Array } {
    const last = this.#lastOf(slot)
    const rows = new RecordRows()
    let claimBytes = mostClaimBytes
    let numberFrom = from
    let bytesBeforeNumber = 0
    for (let i = from; i < outputs.length; i++) {
      const { position } = recordAt(outputs, i)
      if (i > from && position.number !== recordAt(outputs, i - 1).position.number) {
        numberFrom = i
        bytesBeforeNumber = rows.byteLength
      }
      const bytesBefore = rows.byteLength
      rows.add(recordAt(outputs, i))
      if (comparePositions(position, last) <= 0) claimBytes += mostClaimBytes
      if (i === from || rows.byteLength + claimBytes <= this.#frameBytes) continue
      if (numberFrom > from) return { until: numberFrom, rows: rows.bytes.subarray(0, bytesBeforeNumber) }
      return { until: i, rows: rows.bytes.subarray(0, bytesBefore) }
    }
    return { until: outputs.length, rows: rows.bytes }
  }

  /** The claims of one frame; from here on they count as sent. */
  #claim(
    slot: number,
    outputs: readonly SlottedRecord[],
    from: number,
    until: number,
    completeThrough: number,
  ): readonly Interval[] {
    const claims: Interval[] = []
    for (let i = from; i < until; i++) {
      const { position } = recordAt(outputs, i)
      const next = outputs[i + 1]?.record.position
      invariant(next === undefined || comparePositions(position, next) < 0, 'outputs are published out of order')
      const before = this.#lastOf(slot)
      const isOurs = comparePositions(before, position) < 0
      const endsNumber = position.number <= completeThrough && next?.number !== position.number
      const last = isOurs && endsNumber ? endOf(position.number) : position
      append(claims, { previous: isOurs ? before : justBefore(position), last })
      this.#sent.set(slot, laterOf(before, last))
    }
    return claims
  }
}

const recordAt = (outputs: readonly SlottedRecord[], index: number): FrameRecord =>
  (outputs[index] as SlottedRecord).record

/** Adds a claim, as one with the claim before where they touch. */
function append(claims: Interval[], claim: Interval): void {
  const end = claims.at(-1)
  if (end === undefined || comparePositions(end.last, claim.previous) !== 0) claims.push(claim)
  else claims[claims.length - 1] = { previous: end.previous, last: claim.last }
}
