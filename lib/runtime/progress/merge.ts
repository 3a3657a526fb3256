/**
 * Where a partition begins that was split or merged from others: rules G5 to G8 of docs/progress.md.
 */
import { UpstreamMemories } from '../frames/upstream-memory.ts'
import {
  blankKeyedProgress,
  blankSourceProgress,
  type KeyedProgress,
  reachedMarkMs,
  type SlotStates,
  type SourceProgress,
  type UpstreamStatus,
} from './progress.ts'

/**
 * Numbers go on from here. A parent that retention cut short may have done a part of its last entry, and the positions of
 * its keys are that far.
 */
function numbersOf(parents: readonly Pick<SourceProgress, 'number' | 'doneThrough'>[]) {
  const number = parents.reduce((most, parent) => Math.max(most, parent.number, parent.doneThrough), 0)
  return { number, doneThrough: number }
}

/**
 * Where a source partition begins that follows these parents. Of those that had a record, the one whose largest event time is
 * least counts, with its arrival: fewer records are late.
 */
export function mergeSource(parents: readonly SourceProgress[]): SourceProgress {
  const had = parents.filter(({ largestEventTimeMs }) => largestEventTimeMs > Number.NEGATIVE_INFINITY)
  const { largestEventTimeMs, largestArrivedAtMs } = had.reduce(
    (least, parent) => (parent.largestEventTimeMs < least.largestEventTimeMs ? parent : least),
    had[0] ?? blankSourceProgress,
  )
  return { ...blankSourceProgress, ...numbersOf(parents), largestEventTimeMs, largestArrivedAtMs }
}

/** What each of two parents knew of an upstream is so: closed for one is closed, and open for one is not idle. */
const certainty = ['closed', 'open', 'idle'] as const

function mergeStatus(a: UpstreamStatus | undefined, b: UpstreamStatus): UpstreamStatus {
  if (a === undefined) return b
  return {
    upstream: b.upstream,
    state: certainty.indexOf(a.state) <= certainty.indexOf(b.state) ? a.state : b.state,
    markMs: Math.max(a.markMs, b.markMs),
    closedAtMs: Math.max(a.closedAtMs, b.closedAtMs),
  }
}

/**
 * A parent behind the largest watermark may have left something due, which the child's first number fires. Its results are no
 * later than the mark that the parent had come to, so that is the child's until then.
 */
function openingMarkOf(parents: readonly KeyedProgress[], watermarkMs: number): number | undefined {
  const behind = parents.filter(({ earliest }) => [...earliest.event.values()].some((timeMs) => timeMs <= watermarkMs))
  const leastMs = Math.min(watermarkMs, ...behind.map(reachedMarkMs))
  return leastMs < watermarkMs ? leastMs : undefined
}

/**
 * Where a partition begins that holds the slots `held` of `slots` and follows these parents. What belongs to a slot comes
 * from the parent that held it; marks and watermark, which only grow, are the largest; numbers go on from the largest, so
 * that a key's position is one number. Nothing was sent yet and nothing has failed.
 */
export function mergeKeyed(parents: readonly KeyedProgress[], slots: number, held: readonly number[]): KeyedProgress {
  const mine = new Set(held)
  const upstreams = new Map<string, UpstreamStatus>()
  const operatorStates = new Map<number, SlotStates>()
  for (const parent of parents) {
    for (const [key, status] of parent.upstreams) upstreams.set(key, mergeStatus(upstreams.get(key), status))
    for (const [slot, states] of parent.operatorStates) if (mine.has(slot)) operatorStates.set(slot, states)
  }
  const watermarkMs = parents.reduce((most, parent) => Math.max(most, parent.watermarkMs), Number.NEGATIVE_INFINITY)
  return {
    ...blankKeyedProgress(slots, held),
    ...numbersOf(parents),
    watermarkMs,
    openingMarkMs: openingMarkOf(parents, watermarkMs),
    known: parents.some(({ known }) => known),
    upstreams,
    memories: UpstreamMemories.merge(
      parents.map(({ memories }) => memories),
      mine,
    ),
    operatorStates,
    processingMs: parents.reduce((most, { processingMs }) => Math.max(most, processingMs), 0),
    earliest: {
      event: ofSlots(
        parents.map(({ earliest }) => earliest.event),
        mine,
      ),
      processing: ofSlots(
        parents.map(({ earliest }) => earliest.processing),
        mine,
      ),
    },
  }
}

/** What the parents hold of these slots: each slot was held by one of them. */
function ofSlots(parents: readonly ReadonlyMap<number, number>[], mine: ReadonlySet<number>): Map<number, number> {
  return new Map(parents.flatMap((parent) => [...parent].filter(([slot]) => mine.has(slot))))
}
