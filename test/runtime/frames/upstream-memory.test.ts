/** docs/guarantees.md 8: a reader drops records, never frames. */
import fc from 'fast-check'
import { ByteReader } from '../../../lib/runtime/frames/byte-reader.ts'
import { ByteWriter } from '../../../lib/runtime/frames/byte-writer.ts'
import type { Frame, Upstream } from '../../../lib/runtime/frames/frame.ts'
import {
  endOf,
  firingPosition,
  ownPosition,
  type Position,
  positionHashOf,
  startOf,
} from '../../../lib/runtime/frames/position.ts'
import {
  accept,
  blankMemory,
  cover,
  type Memory,
  mostGaps,
  UpstreamMemories,
} from '../../../lib/runtime/frames/upstream-memory.ts'
import { recordAt } from './arbitrary-frames.ts'

type Span = readonly [previous: number, last: number]

/** `Memory` of the protocol's model, line by line, over whole numbers; it may hold more gaps than are kept for a while. */
class ModelMemory {
  high = 0
  gaps: Span[] = []

  accept(frame: { records: readonly number[]; covers: readonly Span[] }) {
    const news = frame.records.filter((p) => p > this.high || this.gaps.some(([lo, hi]) => lo < p && p <= hi))
    const overtaken = news.filter((p) => p <= this.high)
    for (const [previous, last] of frame.covers) this.cover(previous, last)
    return { news, overtaken }
  }

  cover(previous: number, last: number) {
    const left: Span[] = []
    for (const [lo, hi] of this.gaps) {
      if (last <= lo || previous >= hi) {
        left.push([lo, hi])
        continue
      }
      if (lo < previous) left.push([lo, previous])
      if (last < hi) left.push([last, hi])
    }
    this.gaps = left
    if (last > this.high) {
      if (previous > this.high) this.gaps = [...this.gaps, [this.high, previous] as const].slice(-mostGaps)
      this.high = last
    }
  }
}

const hashes = ['customer-1', 'customer-2'].map(positionHashOf).sort()

/** Whole numbers as positions of every kind, in the same order; 0 is where everything begins. */
function positionAt(n: number): Position {
  if (n === 0) return startOf(0)
  const number = Math.floor(n / 5) + 1
  const kind = n % 5
  if (kind === 0) return startOf(number)
  return kind < 3 ? firingPosition(number, hashes[kind - 1] ?? '', 0) : ownPosition(number, kind - 3)
}

const numbers = new Map(Array.from({ length: 400 }, (_, n) => [JSON.stringify(positionAt(n)), n]))
const numberOf = (position: Position) => numbers.get(JSON.stringify(position)) ?? Number.NaN
const orders: Upstream = { name: 'orders', partition: 'p-0' }

function frameOf(records: readonly number[], covers: readonly Span[], upstream = orders, slot = 0): Frame {
  return {
    kind: 'frame',
    upstream,
    slot,
    schemaVersion: 1,
    markMs: 0,
    claims: covers.map(([previous, last]) => ({ previous: positionAt(previous), last: positionAt(last) })),
    records: records.map((n) => recordAt(positionAt(n))),
  }
}

const spansOf = ({ gaps }: Memory): Span[] => gaps.map(({ previous, last }) => [numberOf(previous), numberOf(last)])

/** Any ascending claims, with any records in them. */
const anyClaims = fc
  .uniqueArray(fc.nat({ max: 120 }), { minLength: 2, maxLength: 8 })
  .map((ends) => ends.toSorted((a, b) => a - b))
  .map((ends) => Array.from({ length: ends.length >> 1 }, (_, i): Span => [ends[2 * i] ?? 0, ends[2 * i + 1] ?? 0]))
const anyReading = fc.record({ covers: anyClaims, every: fc.integer({ min: 1, max: 4 }) }).map(({ covers, every }) => ({
  covers,
  records: covers.flatMap(([previous, last]) =>
    Array.from({ length: last - previous }, (_, i) => previous + 1 + i).filter((n) => n % every === 0),
  ),
}))

describe('the memory of an upstream (M1: as in the model)', () => {
  test('it takes, counts as overtaken and remembers what the model does, while that holds as many gaps as are kept', () => {
    fc.assert(
      fc.property(fc.array(anyReading, { maxLength: 25 }), (readings) => {
        const model = new ModelMemory()
        let memory = blankMemory
        for (const { records, covers } of readings) {
          const expected = model.accept({ records, covers })
          const read = accept(memory, frameOf(records, covers))
          memory = read.memory
          if (model.gaps.length > mostGaps) return
          expect(read.news.map(({ position }) => numberOf(position))).toEqual(expected.news)
          expect(read.overtaken.map(({ position }) => numberOf(position))).toEqual(expected.overtaken)
          expect([numberOf(memory.high), spansOf(memory)]).toEqual([model.high, model.gaps])
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('beyond that it keeps as many, never one that the model has not', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat({ max: 300 }), fc.nat({ max: 5 })), { maxLength: 60 }), (claims) => {
        const model = new ModelMemory()
        let memory = blankMemory
        for (const [previous, length] of claims) {
          model.cover(previous, previous + length)
          memory = cover(memory, [{ previous: positionAt(previous), last: positionAt(previous + length) }])
          expect(memory.gaps.length).toBeLessThanOrEqual(mostGaps)
          expect(numberOf(memory.high)).toBe(model.high)
          for (const span of spansOf(memory)) expect(model.gaps).toContainEqual(span)
        }
      }),
    )
  })
})

/** An upstream's whole output to a slot, cut into frames that each claim all since the one before. */
const anySending = fc
  .array(fc.record({ skip: fc.integer({ min: 1, max: 3 }), endsFrame: fc.boolean() }), { minLength: 1, maxLength: 60 })
  .map((steps) => {
    const frames: { records: number[]; covers: Span[] }[] = []
    let at = 0
    let claimed = 0
    let records: number[] = []
    for (const [i, { skip, endsFrame }] of steps.entries()) {
      at += skip
      records.push(at)
      if (!endsFrame && i < steps.length - 1) continue
      frames.push({ records, covers: [[claimed, at]] })
      claimed = at
      records = []
    }
    return frames
  })

/** The same frames, each up to a few places late, some of them twice, some with their records claimed one by one. */
const anyDelivery = fc
  .tuple(
    anySending,
    fc.array(fc.record({ delay: fc.nat({ max: 4 }), again: fc.nat({ max: 12 }), alone: fc.boolean() }), {
      minLength: 60,
      maxLength: 60,
    }),
  )
  .map(([frames, fates]) => {
    const arrivals = frames.flatMap(({ records, covers }, i) => {
      const { delay = 0, again = 0, alone = false } = fates[i] ?? {}
      const retried = alone ? { records, covers: records.map((n): Span => [n - 1, n]) } : { records, covers }
      return [{ at: i + delay, frame: { records, covers } }, ...(again > 6 ? [{ at: i + again, frame: retried }] : [])]
    })
    return { frames, arrivals: arrivals.toSorted((a, b) => a.at - b.at).map(({ frame }) => frame) }
  })

describe('the memory of an upstream (M2: once each)', () => {
  test('every record is taken once, in any order and however often frames come, while no more gaps are open than are kept', () => {
    let checked = 0
    fc.assert(
      fc.property(anyDelivery, ({ frames, arrivals }) => {
        const model = new ModelMemory()
        const memories = new UpstreamMemories()
        const taken: number[] = []
        for (const { records, covers } of arrivals) {
          const skips = covers.filter(([previous], i) => previous > (covers[i - 1]?.[1] ?? model.high)).length
          if (model.gaps.length + skips > mostGaps) return
          for (const [previous, last] of covers) model.cover(previous, last)
          if (model.gaps.length > mostGaps) return
          const { news } = memories.accept(frameOf(records, covers))
          taken.push(...news.map(({ position }) => numberOf(position)))
        }
        expect(taken.toSorted((a, b) => a - b)).toEqual(frames.flatMap(({ records }) => records))
        checked++
      }),
      { numRuns: 500 },
    )
    expect(checked).toBeGreaterThan(200)
  })

  test('a frame that comes late is taken and counted as overtaken', () => {
    const memories = new UpstreamMemories()
    expect(memories.accept(frameOf([3], [[2, 3]])).overtaken).toEqual([])
    const late = memories.accept(frameOf([1, 2], [[0, 2]]))
    expect([late.news.length, late.overtaken.length]).toEqual([2, 2])
    expect(memories.accept(frameOf([1, 2, 3], [[0, 3]])).news).toEqual([])
  })

  test('records of a frame are dropped one by one, never the whole frame', () => {
    const memories = new UpstreamMemories()
    memories.accept(frameOf([1, 2], [[0, 2]]))
    const { news } = memories.accept(frameOf([2, 4], [[0, 4]]))
    expect(news.map(({ position }) => numberOf(position))).toEqual([4])
  })

  test('upstreams and slots do not know of each other, whatever their names', () => {
    const memories = new UpstreamMemories()
    const pairs = [
      orders,
      { name: 'orders', partition: 'p-1' },
      { name: '__proto__', partition: '' },
      { name: '', partition: '__proto__' },
    ]
    for (const upstream of pairs) {
      for (const slot of [0, 1]) expect(memories.accept(frameOf([1], [[0, 1]], upstream, slot)).news).toHaveLength(1)
    }
  })
})

describe('the memory of an upstream (M3: closes)', () => {
  test('what a close says was sent and did not come is a gap, which may still fill', () => {
    const memories = new UpstreamMemories()
    memories.accept(frameOf([1], [[0, 1]]))
    memories.close(orders, 0, positionAt(4))
    expect(memories.of(orders, 0)?.gaps).toHaveLength(1)
    expect(memories.accept(frameOf([3, 4], [[1, 4]])).overtaken).toHaveLength(2)
    expect(memories.of(orders, 0)).toEqual({ high: positionAt(4), gaps: [] })
  })

  test('a close that comes again, or after everything, changes nothing', () => {
    const memories = new UpstreamMemories()
    memories.accept(frameOf([1, 2], [[0, 2]]))
    const before = memories.of(orders, 0)
    memories.close(orders, 0, positionAt(2))
    expect(memories.of(orders, 0)).toEqual(before)
  })
})

describe('the memory of an upstream (M4: reshards)', () => {
  test('a child takes each slot from the parent that held it, and goes its own way', () => {
    const [a, b] = [new UpstreamMemories(), new UpstreamMemories()]
    a.accept(frameOf([1], [[0, 1]], orders, 0))
    b.accept(frameOf([2], [[0, 2]], orders, 1))
    const child = UpstreamMemories.merge([a, b], new Set([0, 1]))
    child.accept(frameOf([7], [[1, 7]], orders, 0))
    expect([0, 1].map((slot) => child.of(orders, slot)?.high)).toEqual([positionAt(7), positionAt(2)])
    expect(a.of(orders, 0)?.high).toEqual(positionAt(1))
    expect(UpstreamMemories.merge([child], new Set([1])).of(orders, 0)).toBeUndefined()
  })

  test('two parents of one slot are a bug of ours', () => {
    const parents = [new UpstreamMemories(), new UpstreamMemories()]
    for (const parent of parents) parent.accept(frameOf([1], [[0, 1]]))
    expect(() => UpstreamMemories.merge(parents, new Set([0]))).toThrow('two parents held slot 0')
  })

  test('a copy does not see what is read after it', () => {
    const memories = new UpstreamMemories()
    memories.accept(frameOf([1], [[0, 1]]))
    const copy = memories.copy()
    memories.accept(frameOf([2], [[1, 2]]))
    expect(copy.of(orders, 0)?.high).toEqual(positionAt(1))
  })
})

const written = (memories: UpstreamMemories): Buffer => {
  const writer = new ByteWriter()
  memories.write(writer)
  return writer.toBytes()
}

describe('the memory of an upstream (M5: few bytes)', () => {
  test('what is read back is what was written', () => {
    const anyRead = fc.record({
      reading: anyReading,
      slot: fc.nat({ max: 70 }),
      partition: fc.constantFrom('p-0', '__proto__'),
    })
    fc.assert(
      fc.property(fc.array(anyRead, { maxLength: 40 }), (reads) => {
        const memories = new UpstreamMemories()
        for (const { reading, slot, partition } of reads) {
          memories.accept(frameOf(reading.records, reading.covers, { name: 'orders', partition }, slot))
        }
        const reader = new ByteReader(written(memories))
        const again = UpstreamMemories.read(reader)
        reader.end()
        for (const { slot, partition } of reads) {
          const upstream = { name: 'orders', partition }
          expect(again.of(upstream, slot)).toEqual(memories.of(upstream, slot))
        }
        expect(written(again)).toEqual(written(memories))
      }),
    )
  })

  test('without gaps a slot of an upstream takes less than eight bytes, after a billion records too', () => {
    const memories = new UpstreamMemories()
    for (let slot = 0; slot < 64; slot++) {
      const last = endOf(1_000_000_000 - slot * 997)
      memories.accept({ ...frameOf([], []), slot, claims: [{ previous: startOf(0), last }] })
    }
    expect(written(memories).length / 64).toBeLessThan(6)
  })
})
