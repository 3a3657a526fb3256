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
