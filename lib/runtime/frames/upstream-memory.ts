/**
 * What a reader remembers of what it was sent, so that it takes each record once although frames come twice, cut
 * otherwise, or one before the other. The rules are M1 to M5 of docs/frames.md:
 *
 * 1. Of one upstream in one slot, all up to `high` was read or claimed, except the gaps. A record is new beyond `high` or
 *    in a gap; one that fills a gap was overtaken and comes out of order.
 * 2. After each frame at most thirty gaps are kept, the last ones. Most gaps are of positions that never held anything; an attempt
 *    that found keys committed ahead claims each record alone, so one frame of its may open a dozen.
 * 3. A close makes a gap of what was sent and did not come.
 * 4. A memory is a value and belongs to one slot, so it moves whole when shards split or merge.
 * 5. It takes less than eight bytes of progress where it has no gaps.
 */
import { invariant } from '../../core/errors.ts'
import type { ByteReader } from './byte-reader.ts'
import type { ByteWriter } from './byte-writer.ts'
import type { Frame, IncomingRecord, Upstream } from './frame.ts'
import { comparePositions, firstPosition, type Interval, type Position } from './position.ts'

/** How many gaps are remembered per slot and upstream. */
export const mostGaps = 30

/** What was read of one upstream in one slot. */
export interface Memory {
  readonly high: Position
  /** Ascending, apart, below `high`. */
  readonly gaps: readonly Interval[]
}

/** The memory of an upstream that sent nothing yet. */
export const blankMemory: Memory = { high: firstPosition, gaps: [] }

const isIn = (position: Position, { previous, last }: Interval): boolean =>
  comparePositions(previous, position) < 0 && comparePositions(position, last) <= 0

/** Rule 1. */
function isNew({ high, gaps }: Memory, position: Position): boolean {
  return comparePositions(position, high) > 0 || gaps.some((gap) => isIn(position, gap))
}

/** What is left of a gap when `claim` was read: nothing, the gap, or what lies before and behind the claim. */
function without(gap: Interval, claim: Interval): readonly Interval[] {
  if (comparePositions(claim.last, gap.previous) <= 0 || comparePositions(claim.previous, gap.last) >= 0) return [gap]
  const left: Interval[] = []
  if (comparePositions(gap.previous, claim.previous) < 0) left.push({ previous: gap.previous, last: claim.previous })
  if (comparePositions(claim.last, gap.last) < 0) left.push({ previous: claim.last, last: gap.last })
  return left
}

/** What is left of a gap after claims that ascend: only its last piece can meet the next claim. */
function remainder(gap: Interval, claims: readonly Interval[]): readonly Interval[] {
  const pieces = [gap]
  for (const claim of claims) {
    const last = pieces.pop()
    if (last === undefined) break
    pieces.push(...without(last, claim))
  }
  return pieces
}

/** The memory after the claims of one frame, which ascend: nothing that they cover will ever be new again. */
export function cover(memory: Memory, claims: readonly Interval[]): Memory {
  const gaps = memory.gaps.flatMap((gap) => remainder(gap, claims))
  let { high } = memory
  for (const { previous, last } of claims) {
    if (comparePositions(last, high) <= 0) continue
    if (comparePositions(previous, high) > 0) gaps.push({ previous: high, last: previous })
    high = last
  }
  return { high, gaps: gaps.slice(-mostGaps) }
}

/** The records of a frame that are to be applied, in the frame's order. */
export interface Reading {
  readonly news: readonly IncomingRecord[]
  /** Those of the news that others of their slot and upstream overtook: counted, and an alarm. */
  readonly overtaken: readonly IncomingRecord[]
}

const none: readonly IncomingRecord[] = []

/** Reads a frame: what is new in it, and the memory after it. */
export function accept(
  memory: Memory,
  { records, claims }: Frame<IncomingRecord>,
): Reading & { readonly memory: Memory } {
  const after = cover(memory, claims)
  const first = records[0]
  // Records ascend: where the first is beyond all that was read, so are the others.
  if (first === undefined || comparePositions(first.position, memory.high) > 0) {
    return { news: records, overtaken: none, memory: after }
  }
  const news = records.filter(({ position }) => isNew(memory, position))
  const overtaken = news.filter(({ position }) => comparePositions(position, memory.high) <= 0)
  return { news, overtaken, memory: after }
}

interface UpstreamSlots {
  readonly upstream: Upstream
  readonly slots: Map<number, Memory>
}

/** One text per upstream: the length says where its name ends, whatever the two hold. */
export const upstreamKey = ({ name, partition }: Upstream): string => `${name.length}/${name}/${partition}`

/** What the first upstream of a table is written against. */
export const noUpstream: Upstream = { name: '', partition: '' }

/** Orders entries by their keys, so that two attempts write the same bytes. */
export const byKey = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number =>
  a < b ? -1 : a > b ? 1 : 0

/** Writes an upstream by what it does not share with the one before. */
export function writeUpstreamAfter(writer: ByteWriter, before: Upstream, { name, partition }: Upstream): void {
  writer.textAfter(before.name, name)
  writer.textAfter(before.partition, partition)
}

/** Reads what {@link writeUpstreamAfter} wrote. */
export const readUpstreamAfter = (reader: ByteReader, before: Upstream): Upstream => ({
  name: reader.textAfter(before.name),
  partition: reader.textAfter(before.partition),
})

/** What a partition remembers of all its upstreams, by slot. */
export class UpstreamMemories {
  readonly #upstreams = new Map<string, UpstreamSlots>()

  /** What is remembered; undefined where nothing was read. */
  of(upstream: Upstream, slot: number): Memory | undefined {
    return this.#upstreams.get(upstreamKey(upstream))?.slots.get(slot)
  }

  /** Reads a frame and remembers it. */
  accept(frame: Frame<IncomingRecord>): Reading {
    const slots = this.#slotsOf(frame.upstream)
    const reading = accept(slots.get(frame.slot) ?? blankMemory, frame)
    slots.set(frame.slot, reading.memory)
    return reading
  }

  /** Notes of a closed upstream what was sent to a slot last; what of that was not read is a gap. */
  close(upstream: Upstream, slot: number, lastSent: Position): void {
    const slots = this.#slotsOf(upstream)
    slots.set(slot, cover(slots.get(slot) ?? blankMemory, [{ previous: lastSent, last: lastSent }]))
  }

  /** Forgets all of an upstream. */
  forget(upstream: Upstream): void {
    this.#upstreams.delete(upstreamKey(upstream))
  }

  /** The same memories, which then go their own way. */
  copy(): UpstreamMemories {
    const copy = new UpstreamMemories()
    for (const [name, { upstream, slots }] of this.#upstreams) {
      copy.#upstreams.set(name, { upstream, slots: new Map(slots) })
    }
    return copy
  }

  /** The memories of a child that holds `slots`: of each slot, those of the one parent that held it. */
  static merge(parents: readonly UpstreamMemories[], slots: ReadonlySet<number>): UpstreamMemories {
    const merged = new UpstreamMemories()
    for (const parent of parents) {
      for (const { upstream, slots: held } of parent.#upstreams.values()) {
        for (const [slot, memory] of held) {
          if (!slots.has(slot)) continue
          const child = merged.#slotsOf(upstream)
          invariant(!child.has(slot), `two parents held slot ${slot}`)
          child.set(slot, memory)
        }
      }
    }
    return merged
  }

  /** Writes all memories; without gaps one of them usually takes four to six bytes. */
  write(writer: ByteWriter): void {
    writer.count(this.#upstreams.size)
    let before: Upstream = noUpstream
    for (const [, { upstream, slots }] of [...this.#upstreams].sort(byKey)) {
      writeUpstreamAfter(writer, before, upstream)
      writeSlots(writer, slots)
      before = upstream
    }
  }

  static read(reader: ByteReader): UpstreamMemories {
    const memories = new UpstreamMemories()
    let before: Upstream = noUpstream
    for (let left = reader.size(); left > 0; left--) {
      const upstream = readUpstreamAfter(reader, before)
      memories.#upstreams.set(upstreamKey(upstream), { upstream, slots: readSlots(reader) })
      before = upstream
    }
    return memories
  }

  #slotsOf(upstream: Upstream): Map<number, Memory> {
    const name = upstreamKey(upstream)
    const found = this.#upstreams.get(name)
    if (found) return found.slots
    const slots = new Map<number, Memory>()
    this.#upstreams.set(name, { upstream, slots })
    return slots
  }
}

/** Gaps fit beside the slot's distance in one number. */
const gapCodes = 32

/**
 * Slots ascending, each as its distance from the one before with the number of its gaps; positions downwards, from the
 * largest number of the upstream to `high` and on through the gaps, so that all distances are small.
 */
function writeSlots(writer: ByteWriter, memories: ReadonlyMap<number, Memory>): void {
  const slots = [...memories].sort(([a], [b]) => a - b)
  const top = slots.reduce((most, [, { high }]) => Math.max(most, high.number), 0)
  writer.count(slots.length)
  writer.count(top)
  let slotBefore = 0
  for (const [slot, { high, gaps }] of slots) {
    writer.count((slot - slotBefore) * gapCodes + gaps.length)
    slotBefore = slot
    let before = top
    const down = (position: Position) => {
      writer.count(before - position.number)
      writer.place(position)
      before = position.number
    }
    down(high)
    for (const { previous, last } of gaps.toReversed()) {
      down(last)
      down(previous)
    }
  }
}

function readSlots(reader: ByteReader): Map<number, Memory> {
  const memories = new Map<number, Memory>()
  let left = reader.size()
  const top = reader.count()
  let slot = 0
  for (; left > 0; left--) {
    const code = reader.count()
    slot += Math.floor(code / gapCodes)
    let before = top
    const down = (): Position => {
      before -= reader.count()
      if (before < 0) reader.refuse('a number is negative')
      return reader.place(before)
    }
    const high = down()
    const gaps = Array.from({ length: code % gapCodes }, () => {
      const last = down()
      return { previous: down(), last }
    })
    memories.set(slot, { high, gaps: gaps.toReversed() })
  }
  return memories
}
