import fc from 'fast-check'
import { compareUtf8 } from '../../lib/state/key-encoding.ts'
import { type ExpiredItem, MemoryStateStore, type MemoryStateStoreOptions } from '../../lib/state/memory-store.ts'
import { VirtualClock } from '../../lib/testing/virtual-clock.ts'
import { never } from '../aws/sink-worlds.ts'

function setUp(options: Partial<MemoryStateStoreOptions> = {}) {
  const clock = new VirtualClock(1_000_000)
  const store = new MemoryStateStore({ stage: 'by-hotel', clock, ...options })
  return { clock, store, commit: commitTo(store) }
}

const commitTo =
  (store: MemoryStateStore) =>
  (position: number, readPosition: number | undefined, keySeconds: number | undefined, entrySeconds?: number) =>
    store.commit(
      {
        key: 'h1',
        readPosition,
        item: { position, states: { n: position }, expiresAtSeconds: keySeconds },
        entries: [{ state: 'rooms', entry: '1', value: position, expiresAtSeconds: entrySeconds }],
      },
      never(),
    )

const keys = async (store: MemoryStateStore) => [...(await store.readKeys(['h1'], never())).keys()]
const entries = async (store: MemoryStateStore) => [...(await store.listEntries('h1', 'rooms', never())).keys()]

describe('TTL in the memory store', () => {
  test('takes an item from its second on, by the clock that it is given', async () => {
    const { clock, store, commit } = setUp()
    await commit(1, undefined, 1_010)
    clock.advance(9_999)
    expect(await keys(store)).toEqual(['h1'])
    clock.advance(1)
    expect(await keys(store)).toEqual([])
    expect(await entries(store)).toEqual(['1'])
  })

  test('takes an entry without its key item', async () => {
    const { clock, store, commit } = setUp()
    await commit(1, undefined, undefined, 1_010)
    clock.advance(10_000)
    expect(await keys(store)).toEqual(['h1'])
    expect(await entries(store)).toEqual([])
    const name = { key: 'h1', state: 'rooms', entry: '1' }
    expect(await store.readEntries([name], never())).toEqual([undefined])
  })

  test('frees a key for a first commit', async () => {
    const { clock, commit } = setUp()
    await commit(1, undefined, 1_010)
    clock.advance(10_000)
    expect(await commit(2, 1, undefined)).toEqual({ status: 'conflict', found: undefined })
    expect(await commit(2, undefined, undefined)).toEqual({ status: 'committed' })
  })

  test('may leave an expired item, which reads and conditions then see', async () => {
    const asked: ExpiredItem[] = []
    const ttlTakes = (item: ExpiredItem): boolean => asked.push(item) < 0
    const { clock, store, commit } = setUp({ ttlTakes })
    await commit(1, undefined, 1_010, 1_010)
    clock.advance(10_000)
    expect(await keys(store)).toEqual(['h1'])
    expect(await entries(store)).toEqual(['1'])
    expect(await commit(2, undefined, undefined)).toMatchObject({ status: 'conflict', found: { position: 1 } })
    expect(asked).toContainEqual({ key: 'h1' })
    expect(asked).toContainEqual({ key: 'h1', state: 'rooms', entry: '1' })
  })
})

test('what it refuses after the abort names the deadline', async () => {
  const { store } = setUp()
  await expect(store.readKeys(['h1'], AbortSignal.abort())).rejects.toMatchObject({
    name: 'RetryableError',
    code: 'state-deadline',
  })
})

test('due entries are copied on their way in and out', async () => {
  const { store } = setUp()
  const entry = { slot: 1, domain: 'event-time' as const, timeMs: 5, key: 'h1' }
  await store.putDue([entry], never())
  entry.timeMs = 9
  const read = async () => (await store.readDue(1, 'event-time', 5, { limit: 1 }, never())).entries
  for (const found of await read()) (found as typeof entry).key = 'spoilt'
  expect(await read()).toEqual([{ ...entry, timeMs: 5 }])
})

test.each([
  [Number.NaN, { limit: 1 }, 'up to the time NaN'],
  [1, { limit: 0 }, '0 due entries'],
  [1, { limit: 1, after: { slot: 2, domain: 'event-time' as const, timeMs: 1, key: 'k' } }, 'another slot or domain'],
  [
    1,
    { limit: 1, after: { slot: 1, domain: 'processing-time' as const, timeMs: 1, key: 'k' } },
    'another slot or domain',
  ],
])('to ask for what is due up to %p with %j is a bug of ours', async (untilMs, options, message) => {
  const { store } = setUp()
  await expect(store.readDue(1, 'event-time', untilMs, options, never())).rejects.toThrow(message)
})

test('due entries come in order, whatever was put, deleted and put again between reads', async () => {
  const entry = fc.record({ timeMs: fc.integer({ min: -3, max: 3 }), key: fc.constantFrom('a', 'b', 'ä') })
  const change = fc.record({ call: fc.constantFrom('put', 'put', 'delete', 'read'), entries: fc.array(entry) })
  const rest = { slot: 1, domain: 'event-time' as const }
  await fc.assert(
    fc.asyncProperty(fc.array(change), entry, async (changes, after) => {
      const { store } = setUp()
      const kept = new Map<string, typeof after>()
      for (const { call, entries } of [...changes, { call: 'read', entries: [] }]) {
        const given = entries.map((each) => ({ ...rest, ...each }))
        if (call === 'put') await store.putDue(given, never())
        if (call === 'delete') await store.deleteDue(given, never())
        for (const each of entries) {
          if (call === 'put') kept.set(JSON.stringify(each), each)
          if (call === 'delete') kept.delete(JSON.stringify(each))
        }
        if (call !== 'read') continue
        const compare = (a: typeof after, b: typeof after): number => a.timeMs - b.timeMs || compareUtf8(a.key, b.key)
        const expected = [...kept.values()].filter((each) => compare(each, after) > 0).sort(compare)
        const options = { limit: 100, after: { ...rest, ...after } }
        const { entries: found } = await store.readDue(1, 'event-time', 3, options, never())
        expect(found).toEqual(expected.map((each) => ({ ...rest, ...each })))
      }
    }),
  )
})
