/** The invariants of same-record.ts: several dead letters of one record, redriven. */
import { join } from 'node:path'
import type { DeadLetterEntry } from '../../../lib/aws/dead-letters/entry.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { DeadLetterLog } from '../../../lib/local/dead-letters/log.ts'
import type { OriginalRecord } from '../../../lib/local/dead-letters/record.ts'
import { type RedriveOptions, redrive } from '../../../lib/local/dead-letters/redrive.ts'
import { withOthersOfTheirRecords } from '../../../lib/local/dead-letters/same-record.ts'
import { SettlementFile } from '../../../lib/local/dead-letters/settlement.ts'
import { base64, DeadLetterStream, entryAt, scratchDirectory } from './dead-letter-world.ts'

let scratch: Awaited<ReturnType<typeof scratchDirectory>>
beforeEach(async () => {
  scratch = await scratchDirectory()
})
afterEach(() => scratch.remove())

const base = entryAt('1')

/** A dead letter of an output of the record. */
function refused(sink: string, index: number, changes: Partial<DeadLetterEntry> = {}): DeadLetterEntry {
  const reason = { ...base.reason, phase: 'sink', code: `no-${sink}` } as const
  return { ...base, id: `${base.id}/${sink}/${index}`, reason, output: { sink, index, value: null }, ...changes }
}

/** As above, of the format in which another letter holds the record. */
const without = (sink: string, index: number, recordIn: string): DeadLetterEntry =>
  refused(sink, index, { formatVersion: 2, recordIn: `${base.id}/${recordIn}`, key: null, payload: null })

/** Of a release that named an output like its record where it was alone in its step. */
const alone = (sink: string, index: number): DeadLetterEntry => refused(sink, index, { id: base.id })

interface Run {
  /** What the function gives up as it takes the record. */
  readonly again?: readonly DeadLetterEntry[]
  /** Ids, behind that of the record, which are asked for; all unless said. */
  readonly chosen?: readonly string[]
  readonly changes?: Partial<RedriveOptions>
}

/** Each stream has a file of what was redriven of it. */
const files = new Map<DeadLetterStream, string>()

/** Redrives letters, and says by what is behind the id of the record what became of each, and which are open then. */
async function run(stream: DeadLetterStream, { again = [], chosen, changes }: Run = {}) {
  const log = new DeadLetterLog(stream)
  await log.refresh()
  const file = files.get(stream) ?? `redriven-${files.size}.ndjson`
  files.set(stream, file)
  const settlements = await SettlementFile.open(join(scratch.path, file))
  const nameOf = (id: string) => id.slice(base.id.length)
  const open = () => log.letters.filter((letter) => !settlements.isSettled(letter))
  const invoked: OriginalRecord[] = []
  const outcomes: Record<string, string> = {}
  const asked = open().filter(({ entry }) => chosen?.includes(nameOf(entry.id)) ?? true)
  await redrive({
    ...{ topology: 'orders-app', sources: ['orders'], generations: new Map(), log, settlements, clock: systemClock },
    letters: withOthersOfTheirRecords(asked, open()),
    function: {
      refusal: () => undefined,
      async invoke(record) {
        invoked.push(record)
        for (const entry of again) stream.put(entry)
        return { kind: 'answered', payload: { batchItemFailures: [] } }
      },
    },
    streams: { slotsOf: () => ({ reason: 'there is none' }), publish: async () => undefined },
    readSource: async () => undefined,
    readObject: async () => {
      throw new Error('it is gone')
    },
    signal: new AbortController().signal,
    onOutcome({ entry }, outcome) {
      const more = outcome.kind === 'dead-letter' ? `: ${outcome.code}` : ''
      outcomes[nameOf(entry.id)] = 'reason' in outcome ? outcome.reason : `${outcome.kind}${more}`
    },
    ...changes,
  })
  return { invoked, outcomes, open: open().map(({ entry }) => nameOf(entry.id)) }
}

function streamOf(...entries: readonly DeadLetterEntry[]): DeadLetterStream {
  const stream = new DeadLetterStream()
  for (const entry of entries) stream.put(entry)
  return stream
}

test('a record goes once for all of its refused outputs, with the bytes of the letter that has them (1, 2)', async () => {
  const others = Array.from({ length: 40 }, (_, index) => without('out', index + 1, 'out/0'))
  const { invoked, outcomes, open } = await run(streamOf(...others, refused('out', 0)))
  expect(invoked).toMatchObject([{ position: '1', key: base64('key-1'), payload: base64('payload-1') }])
  expect(invoked[0]?.redrive).toEqual({ ownMarkMs: null, applied: true })
  expect(new Set(Object.values(outcomes))).toEqual(new Set(['done']))
  expect([Object.keys(outcomes).length, open]).toEqual([41, []])
})

test('where all stay refused, each has one entry more, and all are open', async () => {
  const all = [refused('out', 0), ...[1, 2, 3].map((index) => without('out', index, 'out/0'))]
  const { invoked, outcomes, open } = await run(streamOf(...all), { again: all })
  expect(invoked).toHaveLength(1)
  expect(new Set(Object.values(outcomes))).toEqual(new Set(['dead-letter: no-out']))
  expect(open).toEqual(['/out/0', '/out/1', '/out/2', '/out/3'])
})

test('of several, those that are refused again are told and open, and the others are done', async () => {
  const { outcomes, open } = await run(streamOf(refused('a', 0), without('b', 0, 'a/0')), { again: [refused('b', 0)] })
  expect(outcomes).toEqual({ '/a/0': 'done', '/b/0': 'dead-letter: no-b' })
  expect(open).toEqual(['/b/0'])
})

test('an output is the same under the id that a release before gave it, before the redrive or behind it (4)', async () => {
  expect(await run(streamOf(refused('a', 0), refused('b', 0)), { again: [alone('a', 0)] })).toMatchObject({
    outcomes: { '/a/0': 'dead-letter: no-a', '/b/0': 'done' },
    open: [''],
  })
  const behind = streamOf(alone('a', 0))
  expect(await run(behind, { again: [refused('a', 0), without('b', 0, 'a/0')] })).toMatchObject({
    outcomes: { '': 'dead-letter: no-a' },
    open: ['/a/0', '/b/0'],
  })
  expect(await run(behind)).toMatchObject({ outcomes: { '/a/0': 'done', '/b/0': 'done' }, open: [] })
})

test('a record of which outputs are refused now, or others than before, is not reported as done', async () => {
  const again = [refused('a', 0), without('b', 0, 'a/0')]
  expect(await run(streamOf(base), { again })).toMatchObject({
    outcomes: { '': 'dead-letter: no-b' },
    open: ['/a/0', '/b/0'],
  })
  const next = await run(streamOf(...again), { again: [refused('a', 0), without('c', 0, 'a/0')] })
  expect(next.outcomes).toEqual({ '/a/0': 'dead-letter: no-a', '/b/0': 'dead-letter: no-c' })
})

test('outputs of a record that fails as a whole now are not reported as done', async () => {
  const { outcomes, open } = await run(streamOf(refused('a', 0), without('b', 0, 'a/0')), { again: [base] })
  expect(outcomes).toEqual({ '/a/0': 'dead-letter: not-json', '/b/0': 'dead-letter: not-json' })
  expect(open).toEqual([''])
})

test('who asks for one has the others of its record redriven: it is sent with all of its outputs (1)', async () => {
  const other = entryAt('2')
  const { invoked, outcomes, open } = await run(streamOf(refused('a', 0), without('b', 0, 'a/0'), other), {
    chosen: ['/b/0'],
  })
  expect(invoked.map(({ position }) => position)).toEqual(['1'])
  expect(outcomes).toEqual({ '/a/0': 'done', '/b/0': 'done' })
  expect(open).toHaveLength(1)
})

test('what the latest letter says decides whether the record has done to state what it was to do (3)', async () => {
  const failed = { ...base, failedAtMs: 5_000 }
  const applied = refused('a', 0, { failedAtMs: 9_000, ownMarkMs: 7 })
  const first = await run(streamOf(failed, applied))
  expect(first.invoked[0]?.redrive).toEqual({ ownMarkMs: 7, applied: true })
  const later = await run(streamOf({ ...failed, failedAtMs: 9_001 }, applied, entryAt('2')))
  expect(later.invoked[0]?.redrive.applied).toBe(false)
  const atOnce = await run(streamOf(applied, { ...failed, failedAtMs: 9_000 }, entryAt('2'), entryAt('3')))
  expect(atOnce.invoked[0]?.redrive.applied).toBe(false)
})

test('a letter that was settled before still has the record; where it is gone, the source may have it (2)', async () => {
  const stream = streamOf(refused('a', 0))
  await run(stream)
  stream.put(without('b', 0, 'a/0'))
  expect((await run(stream)).invoked).toMatchObject([{ payload: base64('payload-1') }])
  const lost = await run(streamOf(without('b', 0, 'a/0')))
  expect(lost.outcomes['/b/0']).toMatch(
    /^the dead letter [0-9a-f]{8}, which has its record, is not here any more, and the source no longer holds the record$/,
  )
  const readSource = async () => ({ partitionKey: 'k', data: Buffer.from('from the source') })
  const found = await run(streamOf(without('b', 0, 'a/0')), { changes: { readSource } })
  expect(found.invoked).toMatchObject([{ payload: base64('from the source') }])
})

test('of several letters that could have the record, one that has left it out is asked last (2)', async () => {
  const omitted = { bytes: 9, because: 'large' }
  const { invoked } = await run(streamOf({ ...base, omitted, payload: null }, refused('a', 0)))
  expect(invoked).toMatchObject([{ payload: base64('payload-1') }])
})

test('several records of a keyed stage that come of one record of the source are sent each', async () => {
  const keyed = (number: number): DeadLetterEntry => ({
    ...{ ...base, stage: 'by-key', id: `by-key/slot-0/${number}`, payload: base64('{}') },
    keyed: { side: 'by-key', slot: 0, number, eventTimeMs: 1_000, ownMarkMs: null },
  })
  const published: string[] = []
  const streams: RedriveOptions['streams'] = {
    slotsOf: () => 1,
    publish: async (stage) => void published.push(stage),
  }
  const { open } = await run(streamOf(keyed(1), keyed(2)), { changes: { streams } })
  expect([published, open]).toEqual([['by-key', 'by-key'], []])
})

test('an aggregate that could not be taken apart is another record than the first one in it', async () => {
  const aggregate = { ...base, reason: { ...base.reason, code: 'aggregate-corrupt' } }
  const { invoked } = await run(streamOf(aggregate, refused('a', 0, { payload: base64('first') })))
  expect(invoked.map(({ subPosition, payload }) => [subPosition, payload])).toEqual([
    [undefined, base64('payload-1')],
    [0, base64('first')],
  ])
})

test('of what was given up before a reset only outputs go, and the rest of the record is refused', async () => {
  const changes = { generations: new Map([[base.stage, 2]]) }
  const { invoked, outcomes } = await run(streamOf(base, refused('a', 0)), { changes })
  expect(invoked).toHaveLength(1)
  expect(outcomes).toEqual({ '': expect.stringMatching(/^it was given up in generation 1/), '/a/0': 'done' })
})
