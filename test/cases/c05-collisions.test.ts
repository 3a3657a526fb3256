/** C05, as far as stores go: no key or entry is ever taken for another's, whatever separators are in it. */
import { type Key, keyText } from '../../lib/state/key-encoding.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import { never } from '../aws/sink-worlds.ts'
import { bothStores } from '../state/both-stores.ts'

const minuteMs = 60_000
const windowStartMs = 1_671_562_440_000

/** The keys of the case, and the same with the separators of our own table. */
const keys: readonly Key[] = [
  ['doc-7', '12'],
  ['doc-71', '2'],
  ['a#b', 'c'],
  ['a', 'b#c'],
  'k',
  'k#1671562440000',
  'key#k',
  'k#map#windows#1671562440000',
  'map#windows#1671562440000',
  '["a","b#c"]',
  'text:k',
]

async function keepWindows(store: StateStore, key: Key, index: number): Promise<void> {
  const starts = [windowStartMs, windowStartMs + minuteMs]
  await store.commit(
    {
      key: keyText(key),
      readPosition: undefined,
      item: { position: index, states: { key: index }, expiresAtSeconds: undefined },
      entries: starts.map((startMs) => ({ state: 'windows', entry: String(startMs), value: index * 2 + startMs })),
    },
    never(),
  )
}

describe.each(bothStores)('C05 on the %s store', (_, makeStore) => {
  test('all keys are separate, and the windows of one are never listed with those of another', async () => {
    const store = makeStore()
    for (const [index, key] of keys.entries()) await keepWindows(store, key, index)

    const items = await store.readKeys(keys.map(keyText), never())
    expect(items.size).toBe(keys.length)
    for (const [index, key] of keys.entries()) {
      expect(items.get(keyText(key))?.states).toEqual({ key: index })
      const windows = await store.listEntries(keyText(key), 'windows', never())
      expect([...windows].map(([start, { value }]) => [start, value])).toEqual([
        ['1671562440000', index * 2 + windowStartMs],
        ['1671562500000', index * 2 + windowStartMs + minuteMs],
      ])
    }
  })

  test('states whose names run into their entries are separate', async () => {
    const store = makeStore()
    const entries = [
      { state: 'a', entry: 'b#c', value: 1 },
      { state: 'a#b', entry: 'c', value: 2 },
      { state: 'a%23b', entry: 'c', value: 3 },
    ]
    const item = { position: 1, states: {}, expiresAtSeconds: undefined }
    await store.commit({ key: 'k', readPosition: undefined, item, entries }, never())
    for (const { state, entry, value } of entries) {
      const list = await store.listEntries('k', state, never())
      expect([...list].map(([name, found]) => [name, found.value])).toEqual([[entry, value]])
    }
  })
})
