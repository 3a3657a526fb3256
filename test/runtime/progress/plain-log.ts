/** Plain entries, for properties, and the records of a stream that say the same. */
import fc from 'fast-check'
import { SourceRecord } from '../../../lib/core/record.ts'
import { encodeControl, encodeFrame, encodeRedriveFrame } from '../../../lib/runtime/frames/frame-format.ts'
import {
  firingPosition,
  ownPosition,
  type Position,
  positionHashOf,
  startOf,
} from '../../../lib/runtime/frames/position.ts'
import type { Line } from '../../../lib/runtime/progress/fold.ts'
import { recordAt } from '../frames/arbitrary-frames.ts'
import { never, type PlainEntry, type PlainLine, type Span } from './naive-fold.ts'

const hash = positionHashOf('customer-1')

/** Whole numbers as positions in the same order, every other one a firing; 0 is where everything begins. */
export function positionAt(n: number): Position {
  if (n === 0) return startOf(0)
  return n % 2 === 0 ? ownPosition(n / 2, 0) : firingPosition((n + 1) / 2, hash, 0)
}

const numberOf = ({ number, own }: Position): number => number * 2 - (own ? 0 : 1)

export const upstreamOf = (partition: string) => ({ name: 'orders', partition })

function bytesOf(entry: PlainEntry): Uint8Array {
  const { slot } = entry
  switch (entry.kind) {
    case 'garbage':
      return Buffer.from('no frame')
    case 'redrive': {
      const records = entry.records.map((n) => recordAt(positionAt(n), { redrive: `letter-${n}` }))
      return encodeRedriveFrame({ kind: 'redrive', slot, schemaVersion: 1, records }).bytes
    }
    case 'control': {
      const news = entry.news.map(({ upstream, state, mark, last }) => ({
        upstream: upstreamOf(upstream),
        state,
        markMs: mark,
        lastSent: new Map(last.map(([of, n]) => [of, positionAt(n)])),
      }))
      return encodeControl({ kind: 'control', from: entry.from, slot, news }).bytes
    }
    case 'frame': {
      const { upstream, mark, covers, records } = entry
      return encodeFrame({
        kind: 'frame',
        upstream: upstreamOf(upstream),
        slot,
        schemaVersion: 1,
        markMs: mark,
        claims: covers.map(([previous, last]) => ({ previous: positionAt(previous), last: positionAt(last) })),
        records: records.map((n) => recordAt(positionAt(n))),
      }).bytes
    }
  }
}

/** The entry as the record at a place of the stream. */
export const entryAt = (entry: PlainEntry, place: number, arrivalTimeMs = 1_000): SourceRecord =>
  new SourceRecord({
    source: 'by-customer',
    partition: 'shardId-000000000000',
    position: String(100 + place),
    arrivalTimeMs,
    payload: bytesOf(entry),
  })

export const plain = ({ number, watermarkMs, record, overtaken, slot, failure }: Line): PlainLine => ({
  number,
  watermark: watermarkMs,
  record: record && numberOf(record.position),
  overtaken,
  slot,
  failed: failure !== undefined,
})

export const slots = [0, 1, 2, 3] as const
const anySlot = fc.constantFrom(...slots)
const anyUpstream = fc.constantFrom('p-0', 'p-1', 'p-2')
const anyMark = fc.oneof({ weight: 5, arbitrary: fc.nat({ max: 50 }) }, fc.constant(never))
const anyPositions = fc
  .uniqueArray(fc.integer({ min: 1, max: 14 }), { maxLength: 4 })
  .map((positions) => positions.toSorted((a, b) => a - b))

/** Frames with all sorts of claims: from the frame before, alone, over each other, behind, ahead. */
const anyFrame: fc.Arbitrary<PlainEntry> = fc
  .record({
    upstream: anyUpstream,
    slot: anySlot,
    mark: anyMark,
    ends: fc.uniqueArray(fc.nat({ max: 14 }), { minLength: 2, maxLength: 4 }),
    every: fc.integer({ min: 1, max: 3 }),
  })
  .map(({ ends, every, ...head }) => {
    const sorted = ends.toSorted((a, b) => a - b)
    const covers = Array.from(
      { length: ends.length >> 1 },
      (_, i): Span => [sorted[2 * i] ?? 0, sorted[2 * i + 1] ?? 0],
    )
    const inside = covers.flatMap(([previous, last]) =>
      Array.from({ length: last - previous }, (_, i) => previous + 1 + i),
    )
    return { kind: 'frame', ...head, covers, records: inside.filter((n) => n % every === 0) }
  })

const anyNews = fc.oneof(
  fc.record({
    upstream: anyUpstream,
    state: fc.constant('open' as const),
    mark: anyMark,
    last: fc.constant([] as const),
  }),
  fc.record({
    upstream: anyUpstream,
    state: fc.constant('idle' as const),
    mark: fc.constant(never),
    last: fc.constant([] as const),
  }),
  fc.record({
    upstream: anyUpstream,
    state: fc.constant('closed' as const),
    mark: anyMark,
    last: fc.uniqueArray(fc.tuple(anySlot, fc.integer({ min: 1, max: 14 })), { maxLength: 4, selector: ([s]) => s }),
  }),
)

const anyControl: fc.Arbitrary<PlainEntry> = fc.record({
  kind: fc.constant('control' as const),
  from: fc.constantFrom('announcer' as const, 'stage' as const),
  slot: anySlot,
  news: fc.uniqueArray(anyNews, { maxLength: 3, selector: ({ upstream }) => upstream }),
})

export const anyLog: fc.Arbitrary<readonly PlainEntry[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: anyFrame },
    { weight: 2, arbitrary: anyControl },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('redrive' as const), slot: anySlot, records: anyPositions }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('garbage' as const), slot: anySlot }) },
  ),
  { maxLength: 24 },
)
