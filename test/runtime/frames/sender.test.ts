/** Rule S1 of docs/frames.md (docs/guarantees.md 7): whoever claims has computed. */
import fc from 'fast-check'
import type { EncodedFrame, Frame, FrameRecord } from '../../../lib/runtime/frames/frame.ts'
import { decodeFrame, mostFrameBytes } from '../../../lib/runtime/frames/frame-format.ts'
import {
  comparePositions,
  endOf,
  firingPosition,
  firstPosition,
  justBefore,
  ownPosition,
  type Position,
  positionHashOf,
  startOf,
} from '../../../lib/runtime/frames/position.ts'
import { Sender, type SenderOptions, type SlottedRecord } from '../../../lib/runtime/frames/sender.ts'
import { UpstreamMemories } from '../../../lib/runtime/frames/upstream-memory.ts'
import { anyHeaders, recordAt } from './arbitrary-frames.ts'

const slots = 4
const upstream = { name: 'orders', partition: 'p-0' }
const sender = (options: Partial<SenderOptions> = {}) =>
  new Sender({ upstream, schemaVersion: 1, sent: new Map(), slots, ...options })
const decode = (frames: readonly EncodedFrame[]) => frames.map(({ bytes }) => decodeFrame(bytes) as Frame)
const output = (slot: number, position: Position, bytes = 10): SlottedRecord => ({
  slot,
  record: recordAt(position, { value: Buffer.alloc(bytes, 0x20) }),
})
const batch = (completeThrough: number) => ({ markMs: 0, completeThrough })
const claimsOf = (frames: readonly EncodedFrame[]) => decode(frames).map(({ claims }) => claims)

test('of several frames only those with a tagged value are of version 2, and those with headers of version 3', () => {
  const valueAt = (number: number, value: string, fields: Partial<FrameRecord> = {}): SlottedRecord => ({
    slot: 0,
    record: recordAt(ownPosition(number, 0), { value: Buffer.from(value), ...fields }),
  })
  const long = `"${'x'.repeat(900)}"`
  const headers = [{ name: 'trace', value: Buffer.from('t-1') }]
  const outputs = [
    valueAt(1, long),
    valueAt(2, `$${long}`),
    valueAt(3, long),
    valueAt(4, long, { headers }),
    valueAt(5, long),
  ]
  const frames = sender({ frameBytes: 1_200 }).frames(outputs, batch(5))
  expect(frames.map(({ bytes }) => bytes[6])).toEqual([1, 2, 1, 3, 1])
})

/** All that an upstream ever sends: at each number some firings of other keys, then outputs of the record's own key. */
const anyLog = fc
  .array(
    fc.record({
      firings: fc.uniqueArray(fc.nat({ max: 9 }), { maxLength: 4 }),
      own: fc.array(fc.nat({ max: slots - 1 }), { maxLength: 3 }),
      bytes: fc.integer({ min: 0, max: 400 }),
    }),
    { minLength: 1, maxLength: 30 },
  )
  .map((numbers) =>
    numbers
      .flatMap(({ firings, own, bytes }, number): SlottedRecord[] => [
        ...firings.map((key) =>
          output(key % slots, firingPosition(number, positionHashOf(`customer-${key}`), 0), bytes),
        ),
        ...own.map((slot, index) => output(slot, ownPosition(number, index), bytes)),
      ])
      .toSorted((a, b) => comparePositions(a.record.position, b.record.position)),
  )

interface Attempt {
  readonly frameBytes: number
  /** Where the attempt cuts its outputs into calls. */
  readonly cuts: readonly number[]
  /** Up to this number it finds some keys done by another. */
  readonly ahead: number
  readonly missing: readonly boolean[]
}

const anyAttempt: fc.Arbitrary<Attempt> = fc.record({
  frameBytes: fc.integer({ min: 300, max: 4_000 }),
  cuts: fc.array(fc.nat({ max: 120 }), { maxLength: 4 }),
  ahead: fc.integer({ min: -1, max: 20 }),
  missing: fc.array(fc.boolean(), { minLength: 10, maxLength: 10 }),
})

/** Runs an attempt from the beginning: its frames, in the order in which they are acknowledged. */
function attempt(log: readonly SlottedRecord[], { frameBytes, cuts, ahead, missing }: Attempt): Frame[] {
  const own = sender({ frameBytes })
  if (ahead >= 0) own.foundAhead(endOf(ahead))
  const computed = log.filter(({ record }, i) => record.position.number > ahead || !missing[i % missing.length])
  const ends = [...cuts.filter((cut) => cut < computed.length).toSorted((a, b) => a - b), computed.length]
  return ends.flatMap((end, i) => {
    const lastNumber = computed[end - 1]?.record.position.number ?? -1
    const isWithin = computed[end]?.record.position.number === lastNumber
    const outputs = computed.slice(ends[i - 1] ?? 0, end)
    return decode(own.frames(outputs, batch(isWithin ? lastNumber - 1 : lastNumber)))
  })
}

describe('the sender (S1: claims are true)', () => {
  test('nothing else is ever sent to the slot in an interval that a frame claims, whoever sends', () => {
    fc.assert(
      fc.property(anyLog, anyAttempt, (log, how) => {
        for (const { slot, claims, records } of attempt(log, how)) {
          for (const { previous, last } of claims) {
            const there = log
              .filter((output) => output.slot === slot)
              .map(({ record }) => record.position)
              .filter((at) => comparePositions(previous, at) < 0 && comparePositions(at, last) <= 0)
            const carried = records.map(({ position }) => position)
            for (const position of there) expect(carried).toContainEqual(position)
          }
        }
      }),
      { numRuns: 300 },
    )
  })

  test('a reader takes each output once from attempts that cut otherwise and find others ahead', () => {
    fc.assert(
      fc.property(anyLog, fc.array(anyAttempt, { maxLength: 3 }), anyAttempt, (log, others, last) => {
        const memories = new UpstreamMemories()
        const frames = [...others, { ...last, ahead: -1 }].flatMap((how, i) =>
          // The first attempt sends everything that a later one may find done.
          attempt(log, i === 0 ? { ...how, ahead: -1 } : how),
        )
        const taken = frames.flatMap((frame) => memories.accept(frame).news.map(({ position }) => position))
        expect(taken.toSorted(comparePositions)).toEqual(log.map(({ record }) => record.position))
      }),
      { numRuns: 300 },
    )
  })

  test('up to what was found ahead each output claims itself alone, beyond it all since then', () => {
    const own = sender()
    own.foundAhead(endOf(5))
    const outputs = [output(1, ownPosition(4, 0)), output(1, ownPosition(5, 1)), output(1, ownPosition(7, 0))]
    expect(claimsOf(own.frames(outputs, batch(7)))).toEqual([
      [
        { previous: justBefore(ownPosition(4, 0)), last: ownPosition(4, 0) },
        { previous: justBefore(ownPosition(5, 1)), last: ownPosition(5, 1) },
        { previous: endOf(5), last: endOf(7) },
      ],
    ])
  })

  test('a later batch still knows what an earlier one found ahead, in every slot', () => {
    const first = sender()
    first.frames([output(1, ownPosition(1, 0))], batch(1))
    first.foundAhead(endOf(5))
    expect(first.sent()).toEqual(new Map([0, 1, 2, 3].map((slot) => [slot, endOf(5)])))
    const second = sender({ sent: first.sent() })
    expect(claimsOf(second.frames([output(2, ownPosition(9, 0))], batch(9)))).toEqual([
      [{ previous: endOf(5), last: endOf(9) }],
    ])
  })
})

describe('the sender (S2: numbers are claimed to their end)', () => {
  test('where the number is complete, so that readers keep no index and no hash', () => {
    const own = sender()
    const firing = firingPosition(3, positionHashOf('customer-1'), 0)
    expect(claimsOf(own.frames([output(0, firing)], batch(3)))).toEqual([[{ previous: firstPosition, last: endOf(3) }]])
    expect(own.sent()).toEqual(new Map([[0, startOf(4)]]))
  })

  test('not where more of the number may come', () => {
    const own = sender()
    const firing = firingPosition(3, positionHashOf('customer-1'), 0)
    expect(claimsOf(own.frames([output(0, firing)], batch(2)))).toEqual([[{ previous: firstPosition, last: firing }]])
    expect(claimsOf(own.frames([output(0, ownPosition(3, 0))], batch(3)))).toEqual([
      [{ previous: firing, last: endOf(3) }],
    ])
  })
})

describe('the sender (S3: cuts)', () => {
  test('frames keep the limit, the order and every output, and cut a number only if it is too large for a frame', () => {
    fc.assert(
      fc.property(anyLog, anyAttempt, (log, how) => {
        const own = sender({ frameBytes: how.frameBytes })
        const encoded = own.frames(log, batch(1_000))
        const frames = decode(encoded)
        for (let slot = 0; slot < slots; slot++) {
          const positions = frames
            .filter((frame) => frame.slot === slot)
            .map(({ records }) => records.map((r) => r.position))
          expect(positions.flat()).toEqual(log.filter((o) => o.slot === slot).map(({ record }) => record.position))
          for (const [i, carried] of positions.entries()) {
            const following = positions[i + 1]?.[0]?.number
            if (carried.at(-1)?.number === following) expect(carried[0]?.number).toBe(following)
          }
        }
        for (const [i, { bytes }] of encoded.entries()) {
          if (frames[i]?.records.length !== 1) expect(bytes.length).toBeLessThanOrEqual(how.frameBytes)
        }
      }),
      { numRuns: 300 },
    )
  })

  test('a record above the limit of a frame has one for itself', () => {
    const outputs = [10, 5_000, 10].map((bytes, number) => output(0, ownPosition(number, 0), bytes))
    const frames = sender({ frameBytes: 1_000 }).frames(outputs, batch(2))
    expect(decode(frames).map(({ records }) => records.length)).toEqual([1, 1, 1])
  })

  test('a full frame of usual records is near its limit', () => {
    const outputs = Array.from({ length: 5_000 }, (_, i) => output(0, ownPosition(i, 0), 200))
    const [first] = sender().frames(outputs, batch(5_000))
    expect(first?.bytes.length).toBeGreaterThan(262_144 * 0.98)
    expect(first?.bytes.length).toBeLessThanOrEqual(262_144)
  })

  test('outputs in another order are a bug of ours', () => {
    const outputs = [output(0, ownPosition(2, 0)), output(0, ownPosition(2, 0))]
    expect(() => sender().frames(outputs, batch(2))).toThrow('out of order')
  })
})

describe('the sender (S4: oversize)', () => {
  const oversize = expect.objectContaining({ name: 'TerminalError', code: 'oversize' })

  test('a record that fits in no frame is refused inside its step, and by whoever sends it all the same', () => {
    const { record, slot } = output(0, ownPosition(0, 0), mostFrameBytes)
    expect(() => sender().checkFits(record)).toThrow(oversize)
    expect(() => sender().frames([{ record, slot }], batch(0))).toThrow(oversize)
  })

  test('headers count, however small the value is', () => {
    const { record } = output(0, ownPosition(0, 0))
    const many = Array.from({ length: 400_000 }, () => ({ name: '', value: Buffer.alloc(1) }))
    const one = [{ name: 'large', value: Buffer.alloc(mostFrameBytes) }]
    // A character of its name takes three bytes in a frame.
    const named = [{ name: '\u20ac'.repeat(mostFrameBytes / 3), value: Buffer.alloc(0) }]
    for (const headers of [many, one, named]) {
      expect(() => sender().checkFits({ ...record, headers })).toThrow(oversize)
      expect(() => sender().checkFits({ ...record, headers })).toThrow(
        / and headers that take up to \d+: .* or the headers smaller$/,
      )
      expect(() => sender().frames([{ record: { ...record, headers }, slot: 0 }], batch(0))).toThrow(oversize)
    }
  })

  test('what is let through fits', () => {
    const texts = fc.string({ unit: 'binary', maxLength: 2_000 })
    fc.assert(
      fc.property(texts, texts, anyHeaders, fc.integer({ min: -3_000, max: 200 }), (key, redrive, headers, near) => {
        const { record } = output(0, ownPosition(2 ** 50, 300), 0)
        const size = mostFrameBytes + near - key.length - redrive.length
        const sized = { ...record, key, redrive, headers, value: Buffer.alloc(size) }
        try {
          sender().checkFits(sized)
        } catch {
          return
        }
        sender().frames([{ slot: 0, record: sized }], batch(0))
      }),
      { numRuns: 60 },
    )
  })
})
