import fc from 'fast-check'
import { endOf, ownPosition, type Position, positionHashOf, startOf } from '../../../lib/runtime/frames/position.ts'
import { UpstreamMemories, upstreamKey } from '../../../lib/runtime/frames/upstream-memory.ts'
import {
  blankKeyedProgress,
  blankSourceProgress,
  type KeyedProgress,
  type SentPositions,
  type SourceProgress,
  type UpstreamStatus,
} from '../../../lib/runtime/progress/progress.ts'
import {
  readKeyedProgress,
  readSourceProgress,
  writeKeyedProgress,
  writeSourceProgress,
} from '../../../lib/runtime/progress/progress-format.ts'
import type { StateValue } from '../../../lib/state/state-store.ts'
import { checkValue, sizeOf } from '../../../lib/state/values.ts'
import { anyPosition, anyText } from '../frames/arbitrary-frames.ts'

const anyTime = fc.oneof(fc.nat(), fc.constant(Date.UTC(2026, 0, 1)), fc.maxSafeInteger(), fc.constant(12.5))
const anyMark = fc.oneof(anyTime, fc.constant(Number.NEGATIVE_INFINITY)).map((time) => time + 0)
const anyCount = fc.nat()
const anySent: fc.Arbitrary<SentPositions> = fc
  .array(fc.tuple(anyText, fc.array(fc.tuple(fc.nat({ max: 4_095 }), anyPosition), { maxLength: 5 })), { maxLength: 3 })
  .map((feeds) => new Map(feeds.map(([feed, positions]) => [feed, new Map(positions)])))

const anyShared = fc.record({
  completed: fc.option(fc.bigInt({ min: 0n, max: 10n ** 56n }).map(String), { nil: undefined }),
  number: anyCount,
  doneThrough: anyCount,
  sent: anySent,
  failing: fc.option(
    fc.oneof(
      fc.record({ number: anyCount, attempts: anyCount }),
      fc.record({ number: anyCount, attempts: anyCount, skipped: fc.constant(true as const) }),
    ),
    { nil: undefined },
  ),
  suspect: fc.option(fc.record({ from: anyCount, to: anyCount, attempts: anyCount }), { nil: undefined }),
  generation: fc.integer({ min: 1, max: 9 }),
  log: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
})

const anySource: fc.Arbitrary<SourceProgress> = fc
  .tuple(anyShared, anyMark, anyTime, fc.option(fc.nat(), { nil: undefined }))
  .map(([shared, largestEventTimeMs, arrived, startsAtMs]) => ({
    ...shared,
    largestEventTimeMs,
    largestArrivedAtMs: arrived + 0,
    startsAtMs,
  }))

const anyStatus: fc.Arbitrary<UpstreamStatus> = fc
  .record({
    upstream: fc.record({ name: anyText, partition: anyText }),
    state: fc.constantFrom('open' as const, 'idle' as const, 'closed' as const),
    markMs: anyMark,
    closedAtMs: fc.nat(),
  })
  .map((status) => (status.state === 'closed' ? status : { ...status, closedAtMs: 0 }))

const anyKeyed: fc.Arbitrary<KeyedProgress> = fc
  .record({
    shared: anyShared,
    statuses: fc.array(anyStatus, { maxLength: 6 }),
    held: fc.uniqueArray(fc.nat({ max: 40 })).map((held) => held.toSorted((a, b) => a - b)),
    watermarkMs: anyMark,
    openingMarkMs: fc.option(anyMark, { nil: undefined }),
    known: fc.boolean(),
    closes: fc.array(fc.tuple(fc.nat({ max: 40 }), anyPosition), { maxLength: 6 }),
    processingMs: fc.nat(),
    eventDue: fc.array(fc.tuple(fc.nat({ max: 40 }), anyTime)),
    processingDue: fc.array(fc.tuple(fc.nat({ max: 40 }), anyTime)),
    firing: fc.option(fc.record({ number: anyCount, keyHash: fc.string() }), { nil: undefined }),
    states: fc.array(fc.tuple(fc.nat({ max: 40 }), fc.record({ 'once.seen': fc.nat(), 'once.last': fc.uint8Array() }))),
  })
  .map(({ shared, statuses, held, watermarkMs, openingMarkMs, known, closes, states, ...due }) => {
    const memories = new UpstreamMemories()
    for (const [i, [slot, position]] of closes.entries()) {
      const upstream = statuses[i]?.upstream
      if (upstream) memories.close(upstream, slot, position)
    }
    const upstreams = new Map(statuses.map((status) => [upstreamKey(status.upstream), status]))
    const { processingMs, firing } = due
    const earliest = { event: new Map(due.eventDue), processing: new Map(due.processingDue) }
    const slots = { slots: 64, held, operatorStates: new Map(states) }
    const marks = { watermarkMs, openingMarkMs, known }
    return { ...shared, ...slots, ...marks, upstreams, memories, processingMs, earliest, firing }
  })

/** The value as a table returns it. */
const stored = (value: StateValue) => checkValue(value, 'progress')

/** Compares all but the memories by value, and those by what they answer. */
function expectSame(read: KeyedProgress, written: KeyedProgress) {
  const plain = ({ memories: _, ...rest }: KeyedProgress) => rest
  expect(plain(read)).toEqual(plain(written))
  for (const { upstream } of written.upstreams.values()) {
    for (let slot = 0; slot <= 40; slot++) {
      expect(read.memories.of(upstream, slot)).toEqual(written.memories.of(upstream, slot))
    }
  }
}

describe('progress (E1: what is read equals what was written)', () => {
  test('of a source, whatever it holds, by way of a table', () => {
    fc.assert(
      fc.property(anySource, (progress) => {
        expect(readSourceProgress(stored(writeSourceProgress(progress)))).toEqual(progress)
      }),
    )
  })

  test('of a keyed stage, whatever it holds, by way of a table', () => {
    fc.assert(
      fc.property(anyKeyed, (progress) => {
        expectSame(readKeyedProgress(stored(writeKeyedProgress(progress))), progress)
      }),
    )
  })

  test('equal progress is equal bytes, in whatever order it came about', () => {
    fc.assert(
      fc.property(anyKeyed, (progress) => {
        const turned = {
          ...progress,
          upstreams: new Map([...progress.upstreams].toReversed()),
          sent: new Map([...progress.sent].toReversed()),
        }
        expect(writeKeyedProgress(turned)).toEqual(writeKeyedProgress(progress))
        expect(writeKeyedProgress(readKeyedProgress(writeKeyedProgress(progress)))).toEqual(
          writeKeyedProgress(progress),
        )
      }),
    )
  })

  test('blank progress has neither marks nor numbers', () => {
    expect(readSourceProgress(writeSourceProgress(blankSourceProgress))).toEqual(blankSourceProgress)
    const blank = blankKeyedProgress(4, [2, 3])
    expect(readKeyedProgress(writeKeyedProgress(blank))).toEqual(blank)
  })
})

const shard = (n: number) => `shardId-${String(n).padStart(12, '0')}`

/** Progress in one of `partitions` equal parts of the slots, with all upstreams known and read in every slot. */
function grownProgress(upstreamCount: number, slots: number, partitions: number, highAt: (slot: number) => Position) {
  const held = Array.from({ length: slots / partitions }, (_, slot) => slot)
  const memories = new UpstreamMemories()
  const upstreams = new Map<string, UpstreamStatus>()
  for (let i = 0; i < upstreamCount; i++) {
    const upstream = { name: 'booking-requests', partition: shard(1_000 + i) }
    const state = i % 3 === 0 ? 'closed' : 'open'
    const closedAtMs = state === 'closed' ? Date.UTC(2026, 0, 1) + i * 3_600_000 : 0
    upstreams.set(upstreamKey(upstream), { upstream, state, markMs: Date.UTC(2026, 0, 2) + i * 1_237, closedAtMs })
    for (const slot of held) memories.close(upstream, slot, highAt(slot))
  }
  // The gap that a first close makes is filled, as after years of frames.
  for (const { upstream } of upstreams.values()) {
    for (const slot of held) {
      memories.accept({
        kind: 'frame',
        upstream,
        slot,
        schemaVersion: 1,
        markMs: 0,
        claims: [{ previous: startOf(0), last: highAt(slot) }],
        records: [],
      })
    }
  }
  const sent = new Map([['by-hotel', new Map(Array.from({ length: slots }, (_, slot) => [slot, highAt(slot)]))]])
  return {
    ...blankKeyedProgress(slots, held),
    completed: '49590338271490256608559692538361571095921575989136588898',
    number: 2_000_000_000,
    doneThrough: 2_000_000_012,
    watermarkMs: Date.UTC(2026, 0, 1),
    known: true,
    upstreams,
    memories,
    sent,
    failing: { number: 2_000_000_013, attempts: 2 },
    suspect: { from: 1_999_999_000, to: 2_000_000_000, attempts: 1 },
  } satisfies KeyedProgress
}

describe('progress (E2: few bytes)', () => {
  test.each([
    [1, 64, 1],
    [4, 64, 4],
    [40, 64, 8],
    [200, 64, 8],
    [80, 64, 64],
    [300, 1_024, 16],
  ])(
    '%d upstreams, %d slots in %d partitions: at most 2 KB plus 8 bytes per slot and upstream',
    (upstreams, slots, parts) => {
      const progress = grownProgress(upstreams, slots, parts, (slot) => endOf(2_000_000_000 - slot * 997))
      const bytes = sizeOf(writeKeyedProgress(progress))
      // What was sent to a stage counts as one upstream more of all its slots.
      expect(bytes).toBeLessThanOrEqual(2_048 + 8 * (progress.held.length * upstreams + slots))
    },
  )

  test('names and times cost what they do not share with the upstream before', () => {
    const bytesOf = (count: number) => sizeOf(writeKeyedProgress(grownProgress(count, 64, 64, () => endOf(7))))
    expect((bytesOf(1_100) - bytesOf(100)) / 1_000).toBeLessThan(28)
  })

  test('progress of a source is small, whatever it feeds', () => {
    const { sent } = grownProgress(1, 64, 1, (slot) => endOf(2_000_000_000 - slot * 997))
    const progress = { ...blankSourceProgress, completed: '4'.repeat(56), number: 2_000_000_000, sent }
    expect(sizeOf(writeSourceProgress(progress))).toBeLessThanOrEqual(2_048)
  })
})

const codeOf = (read: () => unknown): unknown => {
  try {
    read()
    return 'read'
  } catch (error) {
    const { name, code, message } = error as Error & { code: string }
    return [name, code, message]
  }
}

describe('progress (E3, E4: what cannot be read)', () => {
  const written = () => writeKeyedProgress(blankKeyedProgress(4, [0, 1])) as Record<string, never>

  test('a newer format waits for the release that reads it', () => {
    for (const read of [readKeyedProgress, readSourceProgress]) {
      expect(
        codeOf(() => read({ ...written(), format: 3 }, 'the progress of stage "by-hotel" in partition s-1')),
      ).toEqual([
        'RetryableError',
        'newer-format',
        expect.stringContaining('the progress of stage "by-hotel" in partition s-1 has format 3'),
      ])
    }
  })

  test('the format before is read: it knew no opening marks', () => {
    expect(readKeyedProgress({ ...written(), format: 1 })).toEqual(blankKeyedProgress(4, [0, 1]))
    const source = { ...(writeSourceProgress(blankSourceProgress) as Record<string, never>), format: 1 }
    expect(readSourceProgress(source)).toEqual(blankSourceProgress)
  })

  test.each([
    ['no map', null],
    ['a list', []],
    ['bytes', new Uint8Array(3)],
    ['no format', {}],
    ['no bytes of memories', { ...written(), memories: 'none' }],
    ['memories that are cut short', { ...written(), memories: new Uint8Array([9]) }],
    ['bytes behind the end', { ...written(), held: new Uint8Array([0, 0]) }],
    ['too many slots', { ...written(), held: new Uint8Array([1, 0, 0xff, 0xff, 0x7f]) }],
    ['a number as text', { ...written(), number: '3' }],
    ['a watermark that is none', { ...written(), watermarkMs: null }],
  ])('%s is refused and comes again, never a dead letter', (_, value) => {
    expect(codeOf(() => readKeyedProgress(value))).toEqual([
      'RetryableError',
      'progress-unreadable',
      expect.stringContaining('progress cannot be read'),
    ])
  })
})

test('positions of firings keep their hashes', () => {
  const position = { number: 7, own: false, keyHash: positionHashOf('a'), index: 3 }
  const sent = new Map([
    [
      'by-hotel',
      new Map([
        [3, position],
        [5, ownPosition(7, 0)],
      ]),
    ],
  ])
  expect(readSourceProgress(writeSourceProgress({ ...blankSourceProgress, sent })).sent).toEqual(sent)
})

describe('progress (format 2)', () => {
  test('is pinned: tables hold it for as long as a stage lives', () => {
    const memories = new UpstreamMemories()
    const upstreams = new Map<string, UpstreamStatus>()
    for (const [n, state] of (['open', 'idle', 'closed'] as const).entries()) {
      const upstream = { name: 'orders', partition: shard(n) }
      const markMs = state === 'idle' ? Number.NEGATIVE_INFINITY : 1_671_562_490_000 + n
      const closedAtMs = state === 'closed' ? 1_671_562_499_000 : 0
      upstreams.set(upstreamKey(upstream), { upstream, state, markMs, closedAtMs })
      if (state !== 'idle') memories.close(upstream, 3, endOf(900 + n))
    }
    const progress: KeyedProgress = {
      ...blankKeyedProgress(8, [0, 1, 3]),
      completed: '4959033827149025660855969253836157109592157598913658889',
      number: 12,
      processingMs: 0,
      doneThrough: 14,
      upstreams,
      memories,
      sent: new Map([['by-hotel', new Map([[2, ownPosition(7, 1)]])]]),
      failing: { number: 15, attempts: 2 },
      openingMarkMs: 1_671_562_400_000,
    }
    const hex = (value: unknown) =>
      ArrayBuffer.isView(value) ? Buffer.from(value as Uint8Array).toString('hex') : value
    const fields = Object.entries(writeKeyedProgress(progress) ?? {}).map(([name, value]) => [name, hex(value)])
    expect(Object.fromEntries(fields)).toEqual({
      format: 2,
      number: 12,
      processingMs: 0,
      completed: '4959033827149025660855969253836157109592157598913658889',
      doneThrough: 14,
      failing: { number: 15, attempts: 2 },
      slots: 8,
      known: false,
      watermarkMs: '-Infinity',
      openingMarkMs: 1_671_562_400_000,
      sent: '010862792d686f74656c0107020005',
      held: '0200020101',
      upstreams:
        '0300066f72646572730014736861726449642d30303030303030303030303000a1c29b8ea66106001301310100fff000000000000006001301320205f1ce9c8ea661',
      memories:
        '0200066f72646572730014736861726449642d303030303030303030303030018507610000000085070006001301320187076100000000870700',
    })
  })
})
