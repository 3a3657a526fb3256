/** Frames of every kind, for properties. */
import fc from 'fast-check'
import type { RecordHeader } from '../../../lib/core/record.ts'
import type { ControlFrame, Frame, FrameRecord, RedriveFrame } from '../../../lib/runtime/frames/frame.ts'
import {
  comparePositions,
  endOf,
  firingPosition,
  firstPosition,
  type Interval,
  justBefore,
  ownPosition,
  type Position,
  positionHashOf,
  startOf,
} from '../../../lib/runtime/frames/position.ts'

export const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '__proto__', 'constructor', 'toString', '\u0000', 'käse', '🛫', 'shardId-000000000001'),
)
const anyNumber = fc.oneof(
  fc.nat({ max: 5 }),
  fc.nat(),
  fc.maxSafeNat().map((n) => Math.max(0, n - 2)),
)
const anyTime = fc.oneof(fc.maxSafeInteger(), fc.constant(Date.UTC(2026, 0, 1)), fc.nat())
/** Without a negative zero, which is the time 0. */
const anyMark = fc
  .oneof(anyTime, fc.constant(Number.NEGATIVE_INFINITY), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .map((timeMs) => timeMs + 0)

export const anyOutputPosition: fc.Arbitrary<Position> = fc.oneof(
  fc.tuple(anyNumber, fc.nat({ max: 300 })).map(([number, index]) => ownPosition(number, index)),
  fc
    .tuple(anyNumber, fc.string(), fc.nat({ max: 300 }))
    .map(([number, key, index]) => firingPosition(number, positionHashOf(key), index)),
)
export const anyPosition: fc.Arbitrary<Position> = fc.oneof(anyOutputPosition, anyNumber.map(startOf))

/** In any order, some under one name, with empty names and values and with values that are not UTF-8. */
export const anyHeaders: fc.Arbitrary<readonly RecordHeader[]> = fc.array(
  fc.record({
    name: fc.oneof(anyText, fc.constantFrom('trace', 'tenant')),
    value: fc
      .oneof(fc.uint8Array({ maxLength: 20 }), fc.constantFrom(Uint8Array.of(), Uint8Array.of(0xc3, 0x28)))
      .map((bytes) => Buffer.from(bytes)),
  }),
  { minLength: 1, maxLength: 5 },
)

export const anyRecord: fc.Arbitrary<FrameRecord> = fc.record({
  position: anyOutputPosition,
  side: anyText,
  key: anyText,
  ownMarkMs: anyMark,
  eventTimeMs: anyTime,
  value: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  origin: fc.record({
    source: anyText,
    partition: anyText,
    position: fc.oneof(anyText, fc.bigInt({ min: 0n, max: 10n ** 56n }).map(String)),
    subPosition: fc.nat(),
    arrivalTimeMs: anyTime,
  }),
  redrive: fc.option(anyText, { nil: undefined }),
  headers: fc.option(anyHeaders, { nil: undefined }),
})

/** Records by position, each position once. */
export const anyRecords = (constraints: { readonly maxLength?: number } = {}) =>
  fc
    .uniqueArray(anyRecord, { ...constraints, selector: ({ position }) => JSON.stringify(position) })
    .map((records) => records.toSorted((a, b) => comparePositions(a.position, b.position)))

/** Claims that hold the records: some alone, some from the record before on, some to the end of their number. */
function claimsOf(records: readonly FrameRecord[], choices: readonly number[]): Interval[] {
  const claims: Interval[] = []
  let sent = firstPosition
  for (const [i, { position }] of records.entries()) {
    const choice = choices[i] ?? 0
    const next = records[i + 1]?.position
    const last = choice % 2 === 0 || next?.number === position.number ? position : endOf(position.number)
    const end = claims.at(-1)
    if (choice < 2 && end) claims[claims.length - 1] = { previous: end.previous, last }
    else claims.push({ previous: choice < 2 ? sent : justBefore(position), last })
    sent = last
  }
  return claims
}

export const anyFrame: fc.Arbitrary<Frame> = fc
  .tuple(
    fc.record({
      upstream: fc.record({ name: anyText, partition: anyText }),
      slot: fc.nat({ max: 4_095 }),
      schemaVersion: fc.nat(),
      markMs: anyMark,
    }),
    anyRecords({ maxLength: 12 }),
    fc.array(fc.nat({ max: 3 }), { minLength: 12, maxLength: 12 }),
  )
  .map(([head, records, choices]) => ({ kind: 'frame', ...head, claims: claimsOf(records, choices), records }))

export const anyControl: fc.Arbitrary<ControlFrame> = fc.record({
  kind: fc.constant('control' as const),
  from: fc.constantFrom('announcer' as const, 'stage' as const),
  slot: fc.nat({ max: 4_095 }),
  news: fc.array(
    fc.record({
      upstream: fc.record({ name: anyText, partition: anyText }),
      state: fc.constantFrom('open' as const, 'idle' as const, 'closed' as const),
      markMs: anyMark,
      lastSent: fc.array(fc.tuple(fc.nat({ max: 4_095 }), anyPosition)).map((entries) => new Map(entries)),
    }),
    { maxLength: 4 },
  ),
})

export const anyRedriveFrame: fc.Arbitrary<RedriveFrame> = fc.record(
  {
    kind: fc.constant('redrive' as const),
    slot: fc.nat({ max: 4_095 }),
    schemaVersion: fc.nat(),
    generation: fc.integer({ min: 2 }),
    records: fc
      .tuple(anyRecords({ maxLength: 6 }), anyText)
      .map(([records, redrive]) => records.map((record) => ({ ...record, redrive: record.redrive ?? redrive }))),
  },
  { requiredKeys: ['kind', 'slot', 'schemaVersion', 'records'] },
)

/** A record with plain contents at a position. */
export function recordAt(position: Position, fields: Partial<FrameRecord> = {}): FrameRecord {
  return {
    position,
    side: 'orders',
    key: 'customer-7',
    ownMarkMs: 1_671_562_490_000,
    eventTimeMs: 1_671_562_498_449,
    value: Buffer.from('{"total":12}'),
    origin: {
      source: 'orders',
      partition: 'shardId-000000000000',
      position: String(
        49_590_338_271_490_256_608_559_692_538_361_571_095_921_575_989_136_588_898n + BigInt(position.number),
      ),
      subPosition: 0,
      arrivalTimeMs: 1_671_562_499_000,
    },
    redrive: undefined,
    ...fields,
  }
}
