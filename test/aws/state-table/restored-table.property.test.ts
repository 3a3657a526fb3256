/**
 * A table that was restored to a point in time is torn: each item is as it was at a moment of its own. Made whole and given the
 * log again, the stage ends with the state and the results of one that was never interrupted.
 */

import type { KinesisStreamEvent } from 'aws-lambda'
import * as fc from 'fast-check'
import { z } from 'zod'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { mendRestoredTable } from '../../../lib/aws/state-table/restored-table.ts'
import type { Item } from '../../../lib/emulator/dynamodb/index.ts'
import { count, epochMs, minutes, sum, Topology, tumbling, valueState } from '../../../lib/index.ts'
import { announceEvent } from '../../../lib/plan/stage-bindings.ts'
import { kinesisEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { type MemoryPorts, memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { stateTable } from '../../../lib/testing/state-table.ts'
import { StateTable, tableName } from './state-table.ts'

const schema = z.object({ key: z.string(), t: z.number(), n: z.number() })
type Event = z.infer<typeof schema>

/** Windows, whose timers fire long after a key's last record, and a state that counts every record. */
function topology() {
  const app = new Topology('app')
  const results = app.sink<unknown>('results')
  const seen = app.sink<unknown>('seen')
  const keyed = app
    .source('events', schema, { eventTime: epochMs(({ t }) => t, { from: '1970-01-01' }), outOfOrderness: minutes(1) })
    .keyBy('by-key', ({ key }) => key, { slots: 4 })
  const windowed = keyed
    .window(tumbling(minutes(5), { grace: minutes(1) }))
    .aggregate('windowed', { n: count(), total: sum(({ n }: Event) => n) }, { emit: 'on-close' })
  windowed.results.to(results)
  windowed.late.to(results)
  keyed
    .process('counting', {
      state: { records: valueState<number>() },
      step({ n }, { key, state }) {
        const records = (state.records.get() ?? 0) + 1
        state.records.set(records)
        return [{ key, n, records }]
      },
    })
    .to(seen)
  return { app, results, seen }
}

type Snapshot = ReadonlyMap<string, Item>

const nameOf = ({ pk, sk }: Item): string => `${pk?.S} ${sk?.S}`

function snapshotOf({ model }: StateTable, name = tableName): Snapshot {
  const { Items = [] } = model.call('Scan', { TableName: name, ConsistentRead: true })
  return new Map(Items.map((item) => [nameOf(item), item]))
}

/** What the stage keeps of its keys, and nothing of how it is found or how far the stage is. */
const keysIn = (snapshot: Snapshot): Snapshot => new Map([...snapshot].filter(([name]) => name.startsWith('key#')))

interface Moment {
  readonly table: Snapshot
  readonly received: readonly unknown[]
}

/** The stage at its work, with a picture of its table behind each write. */
class Life {
  readonly parts = topology()
  readonly log: KinesisStreamEvent[] = []
  readonly moments: Moment[] = []

  async live(batches: readonly (readonly Event[])[]): Promise<this> {
    const table = new StateTable()
    const ports = portsOn(table)
    const handler = streamHandler(this.parts.app, { ports })
    const look = () => void this.moments.push({ table: snapshotOf(table), received: this.#receivedOn(ports) })
    look()
    table.after = ({ operation }) => {
      if (operation !== 'BatchGetItem' && operation !== 'GetItem' && operation !== 'Query') look()
    }
    let sent = 0
    for (const batch of batches) {
      await handler(kinesisEvent(batch, { firstIndex: sent }), lambdaContext())
      sent += batch.length
      // The stage must be told of its upstreams before it has a watermark.
      await handler(announceEvent, lambdaContext())
      for (const event of ports.takeFrames('by-key')) {
        this.log.push(event)
        expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [] })
      }
    }
    look()
    return this
  }

  /** Goes on from a table with the log from its beginning, and returns what the table and the sinks then hold. */
  async goOnFrom(table: StateTable, received: readonly unknown[]): Promise<Moment> {
    const ports = portsOn(table)
    for (const event of this.log) {
      // Each time an environment that has just begun: none has timers in its memory that the table does not find.
      const handler = streamHandler(this.parts.app, { ports })
      expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [] })
    }
    return { table: snapshotOf(table), received: [...received, ...this.#receivedOn(ports)] }
  }

  #receivedOn(ports: MemoryPorts): readonly unknown[] {
    return [...ports.received(this.parts.results), ...ports.received(this.parts.seen)]
  }
}

function portsOn(table: StateTable): MemoryPorts {
  const memory = memoryPorts()
  const store = table.store({ stage: 'by-key' })
  return { ...memory, state: (stage) => (stage === 'by-key' ? store : memory.state(stage)) }
}

/** Each item as it was at a moment from `first` to `last`. */
function torn(moments: readonly Moment[], first: number, last: number, choose: () => number): Snapshot {
  const names = new Set(moments.slice(first, last + 1).flatMap(({ table }) => [...table.keys()]))
  const items = new Map<string, Item>()
  for (const name of names) {
    const item = moments[first + Math.floor(choose() * (last - first + 1))]?.table.get(name)
    if (item) items.set(name, item)
  }
  return items
}

function restored(snapshot: Snapshot, earlier: Snapshot): StateTable {
  const table = new StateTable()
  table.model.call('CreateTable', { TableName: 'earlier', ...stateTable })
  for (const Item of snapshot.values()) table.model.call('PutItem', { TableName: tableName, Item })
  for (const Item of earlier.values()) table.model.call('PutItem', { TableName: 'earlier', Item })
  return table
}

/** Numbers in [0, 1) that follow from the seed. */
function chances(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const mend = (table: StateTable) =>
  mendRestoredTable({
    client: table.client as never,
    clock: table.clock,
    tableName,
    earlierTableName: 'earlier',
  })

const texts = (values: readonly unknown[]): readonly string[] =>
  [...new Set(values.map((value) => JSON.stringify(value)))].sort()

const step = fc.record({
  key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
  gapMs: fc.integer({ min: 0, max: 90_000 }),
  n: fc.nat(9),
})

/** Batches of events in the order of their times; every key falls silent at some point, as time runs on for two hours. */
const lives = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { minLength: 4, maxLength: 10 }).map(timed)

function timed(
  batches: readonly (readonly { key: string; gapMs: number; n: number }[])[],
): readonly (readonly Event[])[] {
  let t = 0
  return batches.map((batch) =>
    batch.map(({ key, gapMs, n }) => {
      t += gapMs
      return { key, t, n }
    }),
  )
}

/** Where the restored moments are, as shares of the life, and what tears them. */
const restores = fc.record({
  early: fc.double({ min: 0, max: 1, noNaN: true }),
  late: fc.double({ min: 0, max: 1, noNaN: true }),
  width: fc.integer({ min: 0, max: 25 }),
  seed: fc.integer(),
})

function momentsOf({ moments }: Life, { early, late, width }: { early: number; late: number; width: number }) {
  const last = moments.length - 1
  const begin = Math.floor(early * last)
  const end = Math.min(last, begin + width)
  // Safely earlier: the later one begins behind the end of the earlier one.
  const lateBegin = Math.min(last, end + Math.floor(late * (last - end)))
  return { begin, end, lateBegin, lateEnd: Math.min(last, lateBegin + width) }
}

test('a copy torn by some seconds, with progress from an earlier one, comes to the same state and results', async () => {
  await fc.assert(
    fc.asyncProperty(lives, fc.array(restores, { minLength: 3, maxLength: 5 }), async (batches, all) => {
      const life = await new Life().live(batches)
      const oracle = life.moments.at(-1) as Moment
      for (const restore of all) {
        const { begin, end, lateBegin, lateEnd } = momentsOf(life, restore)
        const choose = chances(restore.seed)
        const earlier = torn(life.moments, begin, end, choose)
        const table = restored(torn(life.moments, lateBegin, lateEnd, choose), earlier)
        if (!snapshotOf(table).has('manifest# manifest')) continue
        await mend(table)
        const outcome = await life.goOnFrom(table, life.moments[lateEnd]?.received ?? [])
        expect(keysIn(outcome.table)).toEqual(keysIn(oracle.table))
        expect(texts(outcome.received)).toEqual(texts(oracle.received))
      }
    }),
    { numRuns: Number(process.env.RESTORED_RUNS ?? 12) },
  )
}, 120_000)

describe('what is left out of it costs something', () => {
  const minute = 60_000
  /** "a" has one record, and its window ends when "b" is at ten minutes. */
  const batches = [
    [{ key: 'b', t: 0, n: 1 }],
    [{ key: 'a', t: minute, n: 1 }],
    [{ key: 'b', t: 2 * minute, n: 1 }],
    [{ key: 'b', t: 20 * minute, n: 1 }],
    [{ key: 'b', t: 21 * minute, n: 1 }],
  ]
  const has = (name: string) => (moment: Moment) => moment.table.has(name)
  const windowOfA = '"key":"a","window"'

  async function life() {
    const lived = await new Life().live(batches)
    const committed = lived.moments.findIndex(has('key#a key'))
    const before = lived.moments.findIndex(has('key#b key'))
    expect(committed).toBeGreaterThan(before)
    return {
      lived,
      committed,
      earlier: lived.moments[before]?.table as Snapshot,
      oracle: lived.moments.at(-1) as Moment,
    }
  }

  test('with progress of its own, which is newer than a key, the record of that key is gone', async () => {
    const { lived, committed, oracle } = await life()
    const after = lived.moments[committed + 2]?.table as Snapshot
    const table = restored(new Map([...after].filter(([name]) => name !== 'key#a key')), new Map())
    const outcome = await lived.goOnFrom(table, [])
    expect(keysIn(oracle.table).has('key#a key')).toBe(true)
    expect(keysIn(outcome.table).has('key#a key')).toBe(false)
  })

  test('with the due entries of the earlier moment, the window of a key that falls silent never ends', async () => {
    const { lived, committed, earlier, oracle } = await life()
    const { table: snapshot, received } = lived.moments[committed] as Moment
    const isPassing = (name: string) => name.startsWith('due#') || name.startsWith('progress#')
    const kept = [...snapshot].filter(([name]) => !isPassing(name))
    const table = restored(new Map([...kept, ...[...earlier].filter(([name]) => isPassing(name))]), new Map())
    const outcome = await lived.goOnFrom(table, received)
    expect(texts(oracle.received).some((text) => text.includes(windowOfA))).toBe(true)
    expect(texts(outcome.received).some((text) => text.includes(windowOfA))).toBe(false)
    const mended = restored(snapshot, earlier)
    await mend(mended)
    const whole = await lived.goOnFrom(mended, received)
    expect(texts(whole.received)).toEqual(texts(oracle.received))
  })
})

describe('keys with entries of map states', () => {
  const keyItem = (key: string, position: number): Item => ({
    pk: { S: `key#${key}` },
    sk: { S: 'key' },
    format: { N: '1' },
    position: { N: String(position) },
    states: { M: {} },
  })
  const entryItem = (key: string, position: number): Item => ({
    pk: { S: `key#${key}` },
    sk: { S: 'map#counts#red' },
    format: { N: '1' },
    position: { N: String(position) },
    value: { N: '1' },
  })
  const manifest: Item = {
    pk: { S: 'manifest#' },
    sk: { S: 'manifest' },
    format: { N: '1' },
    value: { M: { format: { N: '1' }, topology: { S: 'app' }, stage: { S: 'by-key' }, slots: { N: '4' } } },
  }
  const tableOf = (...items: readonly Item[]): Snapshot =>
    new Map([manifest, ...items].map((item) => [nameOf(item), item]))

  test('are whole where the key rested between the two moments', async () => {
    const rested = tableOf(keyItem('a', 7), entryItem('a', 5))
    expect(await mend(restored(rested, rested))).toEqual({ keys: 1, partitions: 0, dueEntries: 0 })
  })

  test.each([
    [
      'the key was written between them',
      tableOf(keyItem('a', 7), entryItem('a', 7)),
      tableOf(keyItem('a', 5), entryItem('a', 5)),
    ],
    [
      'an entry is newer than its key',
      tableOf(keyItem('a', 7), entryItem('a', 9)),
      tableOf(keyItem('a', 7), entryItem('a', 5)),
    ],
    ['the key is new', tableOf(keyItem('a', 7), entryItem('a', 7)), tableOf()],
    ['the key item was torn away', tableOf(entryItem('a', 7)), tableOf(keyItem('a', 7), entryItem('a', 7))],
  ])('are refused, and nothing is changed, where %s', async (_, later, earlier) => {
    const table = restored(later, earlier)
    await expect(mend(table)).rejects.toThrow('1 key of the table "by-hotel" with entries of map states')
    await expect(mend(table)).rejects.toThrow('"a"')
    expect(snapshotOf(table)).toEqual(later)
  })

  test('a table without a manifest, or with one that has no slots, is that of no keyed stage', async () => {
    const refusal = 'the table "by-hotel" has no manifest with slots, so it is not that of a keyed stage'
    await expect(mend(restored(new Map(), new Map()))).rejects.toThrow(refusal)
    const value = { M: { topology: { S: 'app' }, stage: { S: 'orders' }, feeds: { M: { 'by-key': { S: 'stream' } } } } }
    const ofFeeding = { pk: { S: 'manifest#' }, sk: { S: 'manifest' }, format: { N: '1' }, value }
    const snapshot = tableOf(ofFeeding)
    await expect(mend(restored(snapshot, snapshot))).rejects.toThrow(refusal)
  })
})

describe('two tables that are no two restores of one are refused, and nothing is changed', () => {
  const manifestOf = (stage: string): Item => ({
    pk: { S: 'manifest#' },
    sk: { S: 'manifest' },
    format: { N: '1' },
    value: { M: { format: { N: '1' }, topology: { S: 'app' }, stage: { S: stage }, slots: { N: '4' } } },
  })
  const progress = (version: number): Item => ({
    pk: { S: 'progress#by-key/shard-0' },
    sk: { S: 'progress' },
    format: { N: '1' },
    version: { N: String(version) },
    value: { M: {} },
  })
  const snapshot = (...items: readonly Item[]): Snapshot => new Map(items.map((item) => [nameOf(item), item]))
  const later = snapshot(manifestOf('by-key'), progress(7))

  test.each([
    ['the other is of another stage', snapshot(manifestOf('by-hotel')), 'the state of stage "by-hotel" of "app"'],
    ['the other is later', snapshot(manifestOf('by-key'), progress(8)), 'has later progress than "by-hotel"'],
  ])('as where %s', async (_, earlier, message) => {
    const table = restored(later, earlier)
    await expect(mend(table)).rejects.toThrow(message)
    expect(snapshotOf(table)).toEqual(later)
  })

  test('and taken where the other was restored to a moment before the stage began', async () => {
    expect(await mend(restored(later, snapshot()))).toEqual({ keys: 0, partitions: 0, dueEntries: 0 })
  })
})

describe('a reset between two moments, or since', () => {
  const manifest: Item = {
    pk: { S: 'manifest#' },
    sk: { S: 'manifest' },
    format: { N: '1' },
    value: { M: { format: { N: '1' }, topology: { S: 'app' }, stage: { S: 'by-key' }, slots: { N: '4' } } },
  }
  const progress = (name: string, value: Item): Item => ({
    pk: { S: `progress#${name}` },
    sk: { S: 'progress' },
    format: { N: '1' },
    version: { N: '1' },
    value: { M: value },
  })
  const tableOf = (generation: number, fields: Item = {}): Snapshot => {
    const own = { format: { N: '1' }, generation: { N: String(generation) }, ...fields }
    const items = [manifest, progress('by-key@generation', own), progress('by-key/shard-0', {})]
    return new Map(items.map((item) => [nameOf(item), item]))
  }
  const mendAt = (table: StateTable, generation?: number) => {
    const tables = { client: table.client as never, clock: table.clock, tableName, earlierTableName: 'earlier' }
    return mendRestoredTable({ ...tables, ...(generation !== undefined && { generation }) })
  }

  test('the generation that both are of is kept, and counts as no partition', async () => {
    const table = restored(tableOf(2), tableOf(2))
    expect(await mendAt(table, 2)).toEqual({ keys: 0, partitions: 1, dueEntries: 0 })
    expect([...snapshotOf(table).keys()].sort()).toEqual([...tableOf(2).keys()].sort())
  })

  test.each([
    ['there is one between them', tableOf(2), tableOf(1), undefined, 'was reset between the moments'],
    ['one was at work', tableOf(2, { isHeld: { BOOL: true } }), tableOf(2), undefined, 'was reset between the moments'],
    [
      'there was one since',
      tableOf(2),
      tableOf(2),
      3,
      'is of generation 2, and stage "by-key" of 3: it was reset since',
    ],
  ])('are refused, and nothing is changed, where %s', async (_, later, earlier, generation, message) => {
    const table = restored(later, earlier)
    await expect(mendAt(table, generation)).rejects.toThrow(message)
    expect(snapshotOf(table)).toEqual(later)
  })
})
