import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { SourceRecord } from '../../../lib/core/record.ts'
import { encodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import { ownPosition } from '../../../lib/runtime/frames/position.ts'
import { mostGaps } from '../../../lib/runtime/frames/upstream-memory.ts'
import { KeyedFold } from '../../../lib/runtime/progress/fold.ts'
import { mergeKeyed } from '../../../lib/runtime/progress/merge.ts'
import { blankKeyedProgress, type KeyedProgress } from '../../../lib/runtime/progress/progress.ts'
import { readKeyedProgress, writeKeyedProgress } from '../../../lib/runtime/progress/progress-format.ts'
import { recordAt } from '../frames/arbitrary-frames.ts'
import { NaiveFold, never, type PlainControl, type PlainEntry, type PlainFrame, type PlainLine } from './naive-fold.ts'
import { anyLog, entryAt, plain, positionAt, slots, upstreamOf } from './plain-log.ts'

const forever = { retentionMs: Number.POSITIVE_INFINITY }
const blank = blankKeyedProgress(slots.length, slots)

const isFull = ({ memories, upstreams }: KeyedProgress) =>
  slots.some((slot) =>
    [...upstreams.values()].some(({ upstream }) => (memories.of(upstream, slot)?.gaps.length ?? 0) >= mostGaps),
  )

/** Folds a log in one go. */
function foldAll(log: readonly PlainEntry[], from = blank, options = forever) {
  const fold = new KeyedFold(from, options)
  const lines = log.flatMap((entry, i) => fold.fold(entryAt(entry, i), i))
  return { lines: lines.map(plain), progress: fold.result(), duplicates: fold.duplicates }
}

/** Folds a log in batches, with progress written and read between them. */
function foldInBatches(log: readonly PlainEntry[], cuts: ReadonlySet<number>, from = blank) {
  const lines: PlainLine[] = []
  let progress = from
  let fold = new KeyedFold(progress, forever)
  for (const [i, entry] of log.entries()) {
    lines.push(...fold.fold(entryAt(entry, i), i).map(plain))
    if (!cuts.has(i)) continue
    progress = readKeyedProgress(writeKeyedProgress(fold.result()))
    fold = new KeyedFold(progress, forever)
  }
  return { lines, progress: readKeyedProgress(writeKeyedProgress(fold.result())) }
}

// A thousand logs take their time on a busy machine.
jest.setTimeout(120_000)

const naiveLines = (log: readonly PlainEntry[], naive: NaiveFold) => log.flatMap((entry) => naive.fold(entry))
const anyCuts = fc.array(fc.nat({ max: 24 })).map((cuts) => new Set(cuts))

describe('the fold (L1 to L7: as in the model)', () => {
  test('lines, numbers, watermark and duplicates of any log are those of the model, while the gaps that are kept are enough', () => {
    let checked = 0
    let overtaken = 0
    let filledAfterClose = 0
    fc.assert(
      fc.property(anyLog, (log) => {
        const fold = new KeyedFold(blank, forever)
        const naive = new NaiveFold(slots)
        for (const [i, entry] of log.entries()) {
          const lines = fold.fold(entryAt(entry, i), i)
          const result = fold.result()
          const wasClosed = entry.kind === 'frame' && naive.upstreams.get(entry.upstream)?.state === 'closed'
          if (isFull(result)) return
          expect(lines.map(plain)).toEqual(naive.fold(entry))
          expect(lines.every((line) => line.entry === i && line.arrivedAtMs === 1_000)).toBe(true)
          expect(fold.duplicates).toBe(naive.dropped)
          expect([result.completed, result.number, result.known]).toEqual([String(100 + i), naive.number, naive.known])
          overtaken += lines.filter((line) => line.overtaken).length
          if (wasClosed && lines.some(({ record }) => record)) filledAfterClose++
        }
        checked++
      }),
      { numRuns: 1_000 },
    )
    expect(checked).toBeGreaterThan(600)
    expect(overtaken).toBeGreaterThan(100)
    expect(filledAfterClose).toBeGreaterThan(5)
  })

  test('batches may be cut anywhere, and progress written and read between them', () => {
    fc.assert(
      fc.property(anyLog, anyCuts, (log, cuts) => {
        const whole = foldAll(log)
        const cut = foldInBatches(log, cuts)
        expect(cut.lines).toEqual(whole.lines)
        expect(writeKeyedProgress(cut.progress)).toEqual(writeKeyedProgress(whole.progress))
      }),
      { numRuns: 300 },
    )
  })
})

/** What a shard of these slots holds of a log. Control records go to every shard. */
const logOf = (log: readonly PlainEntry[], held: readonly number[]) =>
  log.filter(({ kind, slot }) => kind === 'control' || held.includes(slot))

const bySlot = (lines: readonly PlainLine[]) =>
  slots.map((slot) =>
    lines
      .filter((line) => line.slot === slot && line.record !== undefined)
      .map(({ record, overtaken }) => [record, overtaken]),
  )

describe('the fold (G5, G6: splits and merges)', () => {
  const [left, right] = [
    [0, 1],
    [2, 3],
  ] as const

  test('a split and a merge at any point give the lines of the model, and per slot those of one log', () => {
    let checked = 0
    fc.assert(
      fc.property(anyLog, anyLog, anyLog, anyCuts, (before, between, after, cuts) => {
        const whole = foldAll([...before, ...between, ...after])
        const root = foldInBatches(before, cuts)
        const children = [left, right].map((held) =>
          foldInBatches(logOf(between, held), cuts, mergeKeyed([root.progress], slots.length, held)),
        )
        const merged = foldInBatches(
          after,
          cuts,
          mergeKeyed(
            children.map(({ progress }) => progress),
            slots.length,
            slots,
          ),
        )
        const all = [root, ...children, merged]
        if ([whole, ...all].some(({ progress }) => isFull(progress))) return
        const naive = new NaiveFold(slots)
        const expected = [naiveLines(before, naive)]
        const naiveChildren = [left, right].map((held) => NaiveFold.merge([naive], held))
        for (const [i, held] of [left, right].entries()) {
          expected.push(naiveLines(logOf(between, held), naiveChildren[i] ?? naive))
        }
        expected.push(naiveLines(after, NaiveFold.merge(naiveChildren, slots)))
        expect(all.map(({ lines }) => lines)).toEqual(expected)
        expect(bySlot(all.flatMap(({ lines }) => lines))).toEqual(bySlot(whole.lines))
        checked++
      }),
      { numRuns: 300 },
    )
    expect(checked).toBeGreaterThan(90)
  })
})

const frame = (records: readonly number[], fields: Partial<PlainFrame> = {}): PlainFrame => ({
  kind: 'frame',
  upstream: 'p-0',
  slot: 1,
  mark: never,
  records,
  covers: records.map((n) => [n - 1, n]),
  ...fields,
})

const control = (
  fields: Partial<PlainControl['news'][number]>,
  from: PlainControl['from'] = 'announcer',
): PlainControl => ({
  kind: 'control',
  from,
  slot: 0,
  news: [{ upstream: 'p-0', state: 'open', mark: never, last: [], ...fields }],
})

const recordsOf = (lines: readonly PlainLine[]) => lines.map(({ record }) => record)

describe('the fold (L1, L2: numbers and duplicates)', () => {
  test('a duplicate takes a number, so that a retry counts as the first attempt did', () => {
    const { lines, duplicates } = foldAll([frame([1, 2]), frame([1, 2, 3], { covers: [[0, 3]] })])
    expect(lines.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5])
    expect(recordsOf(lines)).toEqual([1, 2, undefined, undefined, 3])
    expect(duplicates).toBe(2)
  })

  test('redriven records are never duplicates, and leave marks and upstreams alone', () => {
    const redrive: PlainEntry = { kind: 'redrive', slot: 2, records: [1, 2] }
    const { lines, progress } = foldAll([redrive, redrive])
    expect(recordsOf(lines)).toEqual([1, 2, 1, 2])
    expect(progress.upstreams.size).toBe(0)
    const [line] = new KeyedFold(blank, forever).fold(entryAt(redrive, 0), 0)
    expect(line?.record?.redrive).toBe('letter-1')
  })

  test('a foreign entry is a line with its failure, and the fold goes on', () => {
    const fold = new KeyedFold(mergeKeyed([], 4, [2, 3]), forever)
    const [failed] = fold.fold(entryAt({ kind: 'garbage', slot: 0 }, 0), 0)
    expect(failed).toMatchObject({ number: 1, slot: 2, failure: { name: 'TerminalError', code: 'not-a-frame' } })
    expect(fold.fold(entryAt(frame([1], { slot: 3 }), 1), 1).map(plain)).toMatchObject([{ number: 2, record: 1 }])
  })

  test('a frame of a slot that the partition does not hold is refused, as its key has a writer elsewhere', () => {
    const fold = new KeyedFold(mergeKeyed([], 4, [2, 3]), forever)
    expect(fold.fold(entryAt(frame([1], { slot: 1 }), 0), 0)).toMatchObject([
      { record: undefined, failure: { code: 'foreign-slot' } },
    ])
  })

  test('an entry that its source could not read is a failure with what the source said', () => {
    const entry = new SourceRecord({
      source: 'by-customer',
      partition: 's',
      position: '1',
      arrivalTimeMs: 0,
      payload: null,
      unreadable: { code: 'kpl-corrupt', message: 'a checksum is wrong' },
    })
    expect(new KeyedFold(blank, forever).fold(entry, 0)).toMatchObject([{ failure: { code: 'kpl-corrupt' } }])
  })

  test('a frame of a newer release stops the batch there: the fold is as before it', () => {
    const newer = Buffer.from(
      encodeFrame({
        kind: 'frame',
        upstream: upstreamOf('p-0'),
        slot: 1,
        schemaVersion: 1,
        markMs: 0,
        claims: [{ previous: positionAt(0), last: ownPosition(1, 0) }],
        records: [recordAt(ownPosition(1, 0))],
      }).bytes,
    )
    newer[6] = 99
    newer.writeUInt32BE(crc32(newer.subarray(6)), 2)
    const fold = new KeyedFold(blank, forever)
    fold.fold(entryAt(frame([1]), 0), 0)
    const before = fold.result()
    const entry = new SourceRecord({ source: 's', partition: 'p', position: '9', arrivalTimeMs: 0, payload: newer })
    expect(() => fold.fold(entry, 1)).toThrow(expect.objectContaining({ name: 'RetryableError', code: 'frame-newer' }))
    expect(fold.result()).toEqual(before)
  })

  test('a frame of values that only a newer deployment knows stops the batch there, too', () => {
    const reads = { stage: 'by-customer', version: 2 }
    const fold = new KeyedFold(blank, { ...forever, reads })
    const ofVersion = (schemaVersion: number, number: number) => {
      const { bytes: payload } = encodeFrame({
        ...{ kind: 'frame', upstream: upstreamOf('p-0'), slot: 1, schemaVersion, markMs: 0 },
        claims: [{ previous: positionAt(number - 1), last: ownPosition(number, 0) }],
        records: [recordAt(ownPosition(number, 0))],
      })
      return new SourceRecord({ source: 's', partition: 'p', position: String(number), arrivalTimeMs: 0, payload })
    }
    expect(fold.fold(ofVersion(1, 1), 0)).toMatchObject([{ schemaVersion: 1 }])
    expect(fold.fold(ofVersion(2, 2), 1)).toMatchObject([{ schemaVersion: 2 }])
    const before = fold.result()
    const newer = () => fold.fold(ofVersion(3, 3), 2)
    expect(newer).toThrow(expect.objectContaining({ name: 'RetryableError', code: 'newer-schema' }))
    expect(newer).toThrow('stage "by-customer"')
    expect(fold.result()).toEqual(before)
  })
})

describe('the fold (L3, L6, L7: marks and watermark)', () => {
  const watermarks = (log: readonly PlainEntry[]) => foldAll(log).lines.map(({ watermark }) => watermark)

  test('there is no watermark before the announcer has told the upstreams', () => {
    expect(watermarks([frame([1], { mark: 5 }), control({ mark: 7 }, 'stage'), control({ mark: 3 })])).toEqual([
      never,
      never,
      7,
    ])
  })

  test('it is the least of the open upstreams, and a new one that is behind does not lower it', () => {
    const late = frame([1], { upstream: 'p-1', mark: 2 })
    expect(watermarks([control({ mark: 9 }), late, frame([2], { mark: 12 })])).toEqual([9, 9, 9])
    const second = frame([2], { upstream: 'p-1', mark: 11, covers: [[1, 2]] })
    expect(watermarks([control({ mark: 9 }), late, frame([2], { mark: 12 }), second])).toEqual([9, 9, 9, 11])
  })

  test('an idle upstream takes no part until its first frame, and one that had a mark is never idle', () => {
    const idle = control({ upstream: 'p-1', state: 'idle' })
    expect(watermarks([control({ mark: 4 }), idle, control({ mark: 6 })])).toEqual([4, 4, 6])
    const told = control({ upstream: 'p-1', mark: 1 })
    expect(watermarks([told, control({ mark: 4 }), idle, control({ mark: 6 })])).toEqual([1, 1, 1, 1])
  })

  test('parent and children of one control frame are looked at together', () => {
    const handOver: PlainControl = {
      kind: 'control',
      from: 'announcer',
      slot: 0,
      news: [
        { upstream: 'p-0', state: 'closed', mark: 8, last: [] },
        { upstream: 'p-1', state: 'open', mark: 5, last: [] },
      ],
    }
    expect(watermarks([control({ mark: 5 }), control({ upstream: 'p-2', mark: 20 }), handOver])).toEqual([5, 5, 5])
  })
})

describe('the fold (L4, L5, L8: closed upstreams)', () => {
  const close = (last: readonly (readonly [number, number])[]) => control({ state: 'closed', mark: 9, last })

  test('what a closed upstream still sends is dropped, unless it fills a gap that the close made', () => {
    const sent = frame([3, 4], { covers: [[2, 4]] })
    expect(recordsOf(foldAll([frame([1, 2]), close([[1, 2]]), sent]).lines.slice(3))).toEqual([undefined, undefined])
    const filled = foldAll([frame([1, 2]), close([[1, 4]]), sent]).lines.slice(3)
    expect(recordsOf(filled)).toEqual([3, 4])
    expect(filled.map(({ overtaken }) => overtaken)).toEqual([true, true])
  })

  test('a close concerns the slots that the partition holds, and no others', () => {
    const fold = new KeyedFold(mergeKeyed([], 4, [1]), forever)
    fold.fold(
      entryAt(
        close([
          [1, 4],
          [2, 4],
        ]),
        0,
      ),
      0,
    )
    expect([1, 2].map((slot) => fold.result().memories.of(upstreamOf('p-0'), slot)?.gaps.length)).toEqual([
      1,
      undefined,
    ])
  })

  test('it is forgotten when the log is past its retention, by the times of the log', () => {
    const fold = new KeyedFold(blank, { retentionMs: 1_000 })
    fold.fold(entryAt(frame([1]), 0, 5_000), 0)
    fold.fold(entryAt(close([[1, 1]]), 1, 5_000), 1)
    fold.fold(entryAt(control({ upstream: 'p-1' }), 2, 6_000), 2)
    expect([...fold.result().upstreams.values()].map(({ state }) => state)).toEqual(['closed', 'open'])
    fold.fold(entryAt(control({ upstream: 'p-1' }), 3, 6_001), 3)
    const { upstreams, memories } = fold.result()
    expect([...upstreams.values()].map(({ upstream }) => upstream.partition)).toEqual(['p-1'])
    expect(memories.of(upstreamOf('p-0'), 1)).toBeUndefined()
  })

  test('a close that comes again does not make it remembered for longer', () => {
    const fold = new KeyedFold(blank, { retentionMs: 1_000 })
    const closedAt = () => [...fold.result().upstreams.values()].map(({ closedAtMs }) => closedAtMs)
    const seen = [5_000, 5_900, 6_001].map((at, i) => {
      fold.fold(entryAt(control({ state: 'closed', mark: i }), i, at), i)
      return closedAt()
    })
    expect(seen).toEqual([[5_000], [5_000], [6_001]])
  })
})

describe('the fold (its value)', () => {
  test('a result stays as it is when the fold goes on, and so does what the fold began with', () => {
    const first = foldAll([frame([1])]).progress
    const written = writeKeyedProgress(first)
    const fold = new KeyedFold(first, forever)
    fold.fold(entryAt(frame([2], { mark: 7 }), 1), 1)
    const second = fold.result()
    const secondWritten = writeKeyedProgress(second)
    fold.fold(entryAt(frame([3], { upstream: 'p-1' }), 2), 2)
    expect([writeKeyedProgress(first), writeKeyedProgress(second)]).toEqual([written, secondWritten])
  })

  test('a batch that folded nothing leaves what it began with, done numbers inside an entry included', () => {
    const begun = { ...foldAll([frame([1])]).progress, doneThrough: 4 }
    expect(new KeyedFold(begun, forever).result()).toEqual(begun)
  })
})
