import { join } from 'node:path'
import type { DeadLetterEntry } from '../../../lib/aws/dead-letters/entry.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import type { InvocationOutcome } from '../../../lib/emulator/event-source-mapping/index.ts'
import { DeadLetterLog } from '../../../lib/local/dead-letters/log.ts'
import type { OriginalRecord } from '../../../lib/local/dead-letters/record.ts'
import { type RedriveOptions, type RedriveOutcome, redrive } from '../../../lib/local/dead-letters/redrive.ts'
import { SettlementFile } from '../../../lib/local/dead-letters/settlement.ts'
import { decodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import { aggregateOf } from '../../aws/events/kpl-aggregate-bytes.ts'
import { base64, DeadLetterStream, entryAt, scratchDirectory } from './dead-letter-world.ts'

let scratch: Awaited<ReturnType<typeof scratchDirectory>>
beforeEach(async () => {
  scratch = await scratchDirectory()
})
afterEach(() => scratch.remove())

type Answer = (record: OriginalRecord, stream: DeadLetterStream) => InvocationOutcome
const done: Answer = () => ({ kind: 'answered', payload: { batchItemFailures: [] } })

/** Redrives everything that is open and says what the function got and what became of each, by position. */
async function run(entries: readonly DeadLetterEntry[], answer: Answer = done, changes: Partial<RedriveOptions> = {}) {
  const stream = new DeadLetterStream()
  for (const entry of entries) stream.put(entry)
  const log = new DeadLetterLog(stream)
  await log.refresh()
  const settlements = await SettlementFile.open(join(scratch.path, 'redriven.ndjson'))
  const invoked: OriginalRecord[] = []
  const outcomes = new Map<string, RedriveOutcome>()
  const stopped = await redrive({
    topology: 'orders-app',
    sources: ['orders'],
    generations: new Map(),
    letters: log.letters,
    log,
    settlements,
    function: {
      refusal: ({ kind }) => (kind === 'kafka' ? 'it came from Kafka' : undefined),
      async invoke(record) {
        invoked.push(record)
        return answer(record, stream)
      },
    },
    streams: { slotsOf: () => ({ reason: 'there is none' }), publish: async () => undefined },
    readSource: async () => undefined,
    readObject: async () => {
      throw new Error('it is gone')
    },
    clock: systemClock,
    signal: new AbortController().signal,
    onOutcome: ({ entry }, outcome) => void outcomes.set(entry.position, outcome),
    ...changes,
  })
  const open = log.letters.filter((letter) => !settlements.isSettled(letter)).map(({ entry }) => entry.position)
  const settled = log.letters.filter((letter) => settlements.settlementOf(letter)).map(({ entry }) => entry.position)
  return { invoked, outcomes: Object.fromEntries(outcomes), open, settled, stopped }
}

test('a record goes to the function as its source held it', async () => {
  const { invoked, outcomes, open } = await run([entryAt('49545')])
  expect(invoked).toEqual([
    {
      kind: 'kinesis',
      source: 'orders',
      partition: 'shardId-000000000000',
      position: '49545',
      subPosition: 0,
      arrivalTimeMs: 1_000,
      key: base64('key-49545'),
      payload: base64('payload-49545'),
      headers: [],
      redrive: { ownMarkMs: null, applied: false },
    },
  ])
  expect([outcomes, open]).toEqual([{ '49545': { kind: 'done' } }, []])
})

test('what was given up before a reset is refused by name, and stays open; what was given up since goes with its generation', async () => {
  const { reason } = entryAt('3')
  const toSinks = entryAt('3', { reason: { ...reason, phase: 'sink' } })
  const { invoked, outcomes, open } = await run([entryAt('1'), entryAt('2', { generation: 2 }), toSinks], done, {
    generations: new Map([[entryAt('1').stage, 2]]),
  })
  expect(outcomes).toEqual({
    '1': {
      kind: 'refused',
      reason: expect.stringMatching(/^it was given up in generation 1 of stage "\w+", .* is of generation 2: /),
    },
    '2': { kind: 'done' },
    '3': { kind: 'done' },
  })
  expect(open).toEqual(['1'])
  expect(invoked).toMatchObject([
    { position: '2', redrive: { generation: 2 } },
    { position: '3', redrive: { applied: true } },
  ])
})

test('records go in the order of their positions as integers, whatever the order in which they were given up', async () => {
  const { invoked } = await run([entryAt('10000'), entryAt('9900'), entryAt('900')])
  expect(invoked.map(({ position }) => position)).toEqual(['900', '9900', '10000'])
})

test('a record that becomes a dead letter again is open with its new entry, and its new reason', async () => {
  const { outcomes, open, settled } = await run([entryAt('1'), entryAt('2')], (record, stream) => {
    const { reason } = entryAt('1')
    if (record.position === '1') stream.put({ ...entryAt('1'), reason: { ...reason, code: 'terminal', phase: 'step' } })
    return done(record, stream)
  })
  expect(outcomes).toEqual({ '1': { kind: 'dead-letter', phase: 'step', code: 'terminal' }, '2': { kind: 'done' } })
  expect([open, settled]).toEqual([['1'], ['1', '2']])
})

test('what the function does not take stays open, and later records of its key wait', async () => {
  const key = base64('same')
  const failing: Answer = ({ position }, stream) => {
    if (position === '7') return { kind: 'answered', payload: null }
    if (position === '8') return { kind: 'answered', payload: { batchItemFailures: [{ itemIdentifier: '9' }] } }
    if (position === '1') return { kind: 'answered', payload: { batchItemFailures: [{ itemIdentifier: '1' }] } }
    if (position === '3') return { kind: 'function-error', reason: 'Error: no' }
    if (position === '4') return { kind: 'not-run', reason: 'throttled' }
    if (position === '5') return { kind: 'answered', payload: { batchItemFailure: [] } }
    return done({} as OriginalRecord, stream)
  }
  const { invoked, outcomes, open } = await run(
    [
      entryAt('1', { key }),
      entryAt('2', { key }),
      entryAt('3'),
      entryAt('4'),
      entryAt('5'),
      entryAt('6'),
      entryAt('7'),
      entryAt('8'),
    ],
    failing,
  )
  expect(invoked.map(({ position }) => position)).toEqual(['1', '3', '4', '5', '6', '7', '8'])
  const returned = (reason: unknown) => ({ kind: 'returned', reason })
  expect(outcomes).toEqual({
    '1': returned('the function asks for it again later: its log says why'),
    '2': returned(expect.stringMatching(/^waits behind [0-9a-f]{8}, which has its key$/)),
    '3': returned('Error: no'),
    '4': returned('throttled'),
    '5': returned('the answer (keys batchItemFailure) has no list batchItemFailures'),
    '6': { kind: 'done' },
    '7': returned('the answer (empty) has no list batchItemFailures'),
    '8': returned('the answer names a record that was not sent'),
  })
  expect(open).toEqual(['1', '2', '3', '4', '5', '7', '8'])
})

test('a function that takes none of five in a row is not asked again, and what it was not asked stays open', async () => {
  const entries = Array.from({ length: 9 }, (_, index) => entryAt(String(index)))
  const broken: Answer = ({ position }, stream) =>
    position === '1' ? done({} as OriginalRecord, stream) : { kind: 'function-error', reason: 'no handler' }
  const { invoked, outcomes, open, stopped } = await run(entries, broken)
  expect(invoked.map(({ position }) => position)).toEqual(['0', '1', '2', '3', '4', '5', '6'])
  expect(stopped).toBe('none of 5 records in a row was taken')
  expect([Object.keys(outcomes).length, open.length]).toEqual([7, 8])
})

test('what cannot be redriven from here is refused with the reason, and the function never sees it', async () => {
  const output = { sink: 'out', index: 0, value: null, timer: { domain: 'event-time', name: 'w', timeMs: 5 } } as const
  const { invoked, outcomes, open } = await run([
    entryAt('1', { topology: 'other-app' }),
    entryAt('2', { source: 'gone' }),
    entryAt('3', { partition: 'orders-0' }),
    entryAt('4', { offloaded: { bucket: 'b', key: 'k' }, payload: null }),
    entryAt('5', { partition: 'queue/orders', omitted: { bytes: 9, because: 'large' }, payload: null }),
    entryAt('7', { partition: 'orders-0', reason: { ...entryAt('7').reason, code: 'kafka-record-malformed' } }),
    entryAt('6', { omitted: { bytes: 9, because: 'large' }, payload: null }),
    entryAt('8', { source: 'by-key', stage: 'by-key', reason: { ...entryAt('8').reason, code: 'frame-corrupt' } }),
    entryAt('9', { source: 'by-key', stage: 'by-key', reason: { ...entryAt('9').reason, phase: 'timer' } }),
    entryAt('10', { source: 'by-key', stage: 'by-key', reason: { ...entryAt('10').reason, phase: 'sink' }, output }),
  ])
  expect(invoked).toEqual([])
  const reasons = Object.values(outcomes).map((outcome) => ('reason' in outcome ? outcome.reason : outcome.kind))
  expect(reasons.toSorted()).toEqual([
    expect.stringMatching(/^Lambda delivered it in a form that could not be read/),
    'it came from Kafka',
    'it is a dead letter of topology "other-app", not of "orders-app"',
    'it is a timer of the keyed stage "by-key" and no record, and timers are not redriven',
    'it is an entry of the stream of the keyed stage "by-key" that could not be read as a frame, so it is not known what records it had',
    expect.stringMatching(
      /^it is what a timer or a window of the keyed stage "by-key" put out and a sink refused: no record/,
    ),
    'its bytes are in s3://b/k only, and it is gone',
    'its bytes were too large for where dead letters go, and redrive does not read SQS',
    'its bytes were too large for where dead letters go, and the source no longer holds the record',
    'the function of topology "orders-app" takes no source "gone": it takes orders',
  ])
  expect(open).toHaveLength(10)
})

test('bytes that only the source holds are read there; of an aggregate it is the record that was given up', async () => {
  const omitted = { bytes: 9, because: 'large' }
  const aggregate = aggregateOf([
    { partitionKey: 'first', data: Buffer.from('one') },
    { partitionKey: 'second', data: Buffer.from('two') },
  ])
  const readSource: RedriveOptions['readSource'] = async ({ position }) =>
    position === '1'
      ? { partitionKey: 'plain', data: Buffer.from('whole') }
      : { partitionKey: 'outer', data: aggregate }
  const { invoked } = await run(
    [
      entryAt('1', { omitted, payload: null }),
      entryAt('2', { omitted, payload: null }),
      entryAt('2', { omitted, payload: null, subPosition: 1 }),
    ],
    done,
    { readSource },
  )
  expect(invoked.map(({ key, payload, subPosition }) => [key, payload, subPosition])).toEqual([
    [base64('plain'), base64('whole'), 0],
    [base64('first'), base64('one'), 0],
    [base64('second'), base64('two'), 1],
  ])
})

test('an abort lets the rest wait and settles what was acknowledged', async () => {
  const stop = new AbortController()
  const answer: Answer = (record, stream) => {
    if (record.position === '2') stop.abort()
    return done(record, stream)
  }
  const { outcomes, open, stopped } = await run([entryAt('1'), entryAt('2'), entryAt('3')], answer, {
    signal: stop.signal,
  })
  expect([Object.keys(outcomes), open, stopped]).toEqual([['1', '2'], ['3'], 'it was interrupted'])
})

test('an entry that was offloaded goes with the bytes of its object', async () => {
  const offloaded = { bucket: 'b', key: 'k' }
  const { invoked, outcomes } = await run([entryAt('1', { offloaded, key: null, payload: null })], done, {
    readObject: async ({ position }) => entryAt(position),
  })
  expect(invoked).toMatchObject([{ key: base64('key-1'), payload: base64('payload-1') }])
  expect(outcomes).toEqual({ '1': { kind: 'done' } })
})

test('a new entry that is seen only a while after the answer is still found', async () => {
  const late: (() => void)[] = []
  const answer: Answer = (record, stream) => {
    late.push(() => stream.put({ ...entryAt('1'), failedAtMs: 9_000 }))
    return done(record, stream)
  }
  const clock = {
    ...systemClock,
    nowMs: () => 0,
    sleep: async () => {
      for (const put of late) put()
    },
  }
  const { outcomes, open } = await run([entryAt('1')], answer, { clock, visibleAfterMs: 1_000 })
  expect([outcomes, open]).toEqual([{ '1': { kind: 'dead-letter', phase: 'decode', code: 'not-json' } }, ['1']])
})

const keyed = { side: 'by-key', slot: 0, number: 7, eventTimeMs: 1_000, ownMarkMs: 900 }
const keyedAt = (number: number, changes: Partial<DeadLetterEntry> = {}): DeadLetterEntry =>
  entryAt(String(number), {
    ...{ stage: 'by-key', keyed: { ...keyed, number }, reason: { ...entryAt('1').reason, phase: 'step' }, ...changes },
    id: `by-key/slot-0/${number}`,
  })

/** A stream of one keyed stage, which refuses frames of these identities. */
function stageStream(refused: readonly string[] = []) {
  const sent: string[] = []
  const streams: RedriveOptions['streams'] = {
    slotsOf: () => 1,
    async publish(_stage, { bytes }) {
      const frame = decodeFrame(bytes)
      const [id = ''] = frame.kind === 'redrive' ? frame.records.map(({ redrive }) => redrive) : []
      if (refused.includes(id)) throw new Error('throttled\nwhatever')
      sent.push(id)
    },
  }
  return { sent, streams }
}

test('a dead letter of a keyed stage goes to the stream of its stage in the order of its log, and to no function', async () => {
  const { sent, streams } = stageStream()
  const { invoked, outcomes, open } = await run([keyedAt(10), keyedAt(9), keyedAt(100)], done, { streams })
  expect([sent, invoked, open]).toEqual([['by-key/slot-0/9', 'by-key/slot-0/10', 'by-key/slot-0/100'], [], []])
  expect(Object.values(outcomes)).toEqual([{ kind: 'done' }, { kind: 'done' }, { kind: 'done' }])
})

test('one that its stream does not take stays open, and later ones of its key wait', async () => {
  const { sent, streams } = stageStream(['by-key/slot-0/1'])
  const key = base64('a')
  const letters = [keyedAt(1, { key }), keyedAt(2, { key }), keyedAt(3, { key: base64('b') })]
  const { outcomes, open } = await run(letters, done, { streams })
  expect(outcomes).toEqual({
    '1': { kind: 'returned', reason: 'throttled' },
    '2': { kind: 'returned', reason: expect.stringMatching(/^waits behind/) },
    '3': { kind: 'done' },
  })
  expect([sent, open]).toEqual([['by-key/slot-0/3'], ['1', '2']])
})
