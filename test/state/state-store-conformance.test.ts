import { isDeepStrictEqual } from 'node:util'
import { MemoryStateStore } from '../../lib/state/memory-store.ts'
import type { DueEntry, EntryItem, KeyItem, StateStore, StateValue } from '../../lib/state/state-store.ts'
import { type StateStoreUnderTest, stateStoreConformance } from '../../lib/testing/state-store-conformance.ts'
import { VirtualClock } from '../../lib/testing/virtual-clock.ts'
import { StateTable } from '../aws/state-table/state-table.ts'
import { changedStore } from './changed-store.ts'

const newStore = () => new MemoryStateStore({ stage: 'by-hotel', clock: new VirtualClock() })

/** Loses an answer on demand, as the simulator does. */
function losingAnswers(store: StateStore): StateStoreUnderTest {
  let losing = false
  const answered = <T>(answer: T): T => {
    if (!losing) return answer
    losing = false
    throw new Error('the answer was lost')
  }
  return {
    store: changedStore(store, {
      commit: async (...args) => answered(await store.commit(...args)),
      writeProgress: async (...args) => answered(await store.writeProgress(...args)),
    }),
    loseNextAnswer: () => {
      losing = true
    },
  }
}

function tableWorld(): StateStoreUnderTest {
  const table = new StateTable()
  return { store: table.store(), loseNextAnswer: () => table.loseNextAnswer() }
}

describe.each([
  ['the memory store', () => losingAnswers(newStore())],
  ['the DynamoDB store on the model', tableWorld],
])('%s keeps every rule', (name, make) => {
  for (const check of stateStoreConformance(name, { make: async () => make() })) test(check.name, () => check.run())
})

type Change = (store: StateStore) => Partial<StateStore>

/** What a store that keeps values as JSON gives back. */
const throughJson = (item: KeyItem): KeyItem => ({
  ...item,
  states: JSON.parse(JSON.stringify(item.states, (_, value) => (typeof value === 'bigint' ? Number(value) : value))),
})

const mapped = <T>(map: ReadonlyMap<string, T>, change: (value: T) => T): ReadonlyMap<string, T> =>
  new Map([...map].map(([key, value]) => [key, change(value)]))

const reversed = (value: StateValue): StateValue =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
    ? Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([name, inner]) => [name, reversed(inner)]),
      )
    : value

const broken: [what: string, rule: RegExp, Change][] = [
  [
    'reads a hundred keys at most',
    /rule 1: of 153 keys/,
    (store) => ({ readKeys: (keys, signal) => store.readKeys(keys.slice(0, 100), signal) }),
  ],
  [
    'reads entries in an order of its own',
    /rule 1: entries in the order/,
    (store) => ({ readEntries: async (...args) => [...(await store.readEntries(...args))].reverse() }),
  ],
  [
    'reads what was there before',
    /rule [12]: /,
    (store) => {
      const before = new Map<string, ReadonlyMap<string, KeyItem>>()
      return {
        async readKeys(keys, signal) {
          const now = await store.readKeys(keys, signal)
          const stale = before.get(keys.join()) ?? now
          before.set(keys.join(), now)
          return stale
        },
      }
    },
  ],
  [
    'commits without a condition',
    /rule 2: /,
    (store) => ({
      async commit(write, signal) {
        const found = (await store.readKeys([write.key], signal)).get(write.key)
        return store.commit({ ...write, readPosition: found?.position }, signal)
      },
    }),
  ],
  [
    'commits wherever the position is not behind',
    /rule 2: a commit on a later position/,
    (store) => ({
      async commit(write, signal) {
        const found = (await store.readKeys([write.key], signal)).get(write.key)
        const ahead = found !== undefined && (write.readPosition ?? -1) > found.position
        return store.commit(ahead ? { ...write, readPosition: found.position } : write, signal)
      },
    }),
  ],
  [
    'does not say who won',
    /rule 2: /,
    (store) => ({
      async commit(...args) {
        const outcome = await store.commit(...args)
        return outcome.status === 'conflict' ? { status: 'conflict', found: undefined } : outcome
      },
    }),
  ],
  [
    'writes entries although the commit lost',
    /rule 2: the entries after a lost commit/,
    (store) => {
      const torn = new Map<string, EntryItem>()
      return {
        async commit(write, signal) {
          const outcome = await store.commit(write, signal)
          for (const { entry, value } of write.entries) {
            if (outcome.status === 'conflict') torn.set(entry, { position: write.item.position, value })
          }
          return outcome
        },
        readEntries: async (names, signal) =>
          (await store.readEntries(names, signal)).map((item, i) => torn.get(names[i]?.entry ?? '') ?? item),
      }
    },
  ],
  [
    'forgets a removed entry',
    /rule 2: value and position of a removed entry/,
    (store) => ({
      readEntries: async (...args) =>
        (await store.readEntries(...args)).map((item) => (item?.value === undefined ? undefined : item)),
    }),
  ],
  [
    'lists tombstones',
    /rule 2: the list/,
    (store) => {
      const removed = new Map<string, EntryItem>()
      return {
        async commit(write, signal) {
          for (const { entry, value } of write.entries) {
            if (value === undefined) removed.set(entry, { position: write.item.position, value })
          }
          return store.commit(write, signal)
        },
        listEntries: async (...args) => new Map([...(await store.listEntries(...args)), ...removed]),
      }
    },
  ],
  [
    'lets two first commits through',
    /rule 2: of eight commits/,
    (store) => {
      const racing = new Set<string>()
      return {
        async commit(write, signal) {
          const place = `${write.key}@${write.readPosition}`
          if (racing.has(place) && racing.size > 0 && write.item.position < 10) return { status: 'committed' }
          racing.add(place)
          const outcome = await store.commit(write, signal)
          queueMicrotask(() => racing.delete(place))
          return outcome
        },
      }
    },
  ],
  [
    'writes progress without a condition',
    /rule 3: a write on progress/,
    (store) => ({
      writeProgress: async (partition, _, value, signal) =>
        store.writeProgress(partition, (await store.readProgress(partition, signal))?.version ?? 0, value, signal),
    }),
  ],
  [
    'keeps one progress for all partitions',
    /rule 3: the progress of another partition/,
    (store) => ({
      readProgress: (_, signal) => store.readProgress('p', signal),
      writeProgress: (_, version, value, signal) => store.writeProgress('p', version, value, signal),
    }),
  ],
  [
    'keeps JSON',
    /rule 5: what is read of states/,
    (store) => ({ readKeys: async (...args) => mapped(await store.readKeys(...args), throughJson) }),
  ],
  [
    'gives names in an order of its own',
    /rule 5: names come in the order/,
    (store) => ({
      readKeys: async (...args) =>
        mapped(await store.readKeys(...args), (item) => ({ ...item, states: reversed(item.states) as never })),
    }),
  ],
  [
    'shares what it read with the caller',
    /rule 5: the item, after the value that was read before/,
    (store) => {
      let shared: ReadonlyMap<string, KeyItem> | undefined
      return {
        async commit(...args) {
          const outcome = await store.commit(...args)
          if (outcome.status === 'committed') shared = undefined
          return outcome
        },
        async readKeys(keys, signal) {
          if (keys.length !== 1) return store.readKeys(keys, signal)
          shared ??= await store.readKeys(keys, signal)
          return shared
        },
      }
    },
  ],
  [
    'shares what it answers to a lost commit',
    /rule 5: the item, after the value that was read before/,
    (store) => {
      const own = new Map<string, KeyItem>()
      return {
        async commit(...args) {
          const [{ key }] = args
          const outcome = await store.commit(...args)
          if (outcome.status === 'committed') own.delete(key)
          if (outcome.status === 'committed' || outcome.found === undefined) return outcome
          own.set(key, own.get(key) ?? outcome.found)
          return { status: 'conflict', found: own.get(key) }
        },
        async readKeys(...args) {
          const items = await store.readKeys(...args)
          return new Map([...items].map(([key, item]) => [key, own.get(key) ?? item]))
        },
      }
    },
  ],
  [
    'writes what it cannot keep',
    /rule 5: the state .* was not refused/,
    (store) => ({
      commit: (write, signal) =>
        store.commit(write, signal).catch((error: Error) => {
          if (error.name !== 'TerminalError') throw error
          return { status: 'committed' }
        }),
    }),
  ],
  [
    'joins key and entry by a separator',
    /rule 5: the entries of the key/,
    (store) => {
      const joined = (key: string, state: string, entry: string) => ({
        key: 'all',
        state: 's',
        entry: `${key}#${state}#${entry}`,
      })
      let position = 0
      return {
        async commit(write, signal) {
          for (const { state, entry, value } of write.entries) {
            const entries = [{ ...joined(write.key, state, entry), value }]
            const item = { position: position + 1, states: {}, expiresAtSeconds: undefined }
            await store.commit({ key: 'all', readPosition: position || undefined, item, entries }, signal)
            position += 1
          }
          return store.commit({ ...write, entries: [] }, signal)
        },
        async listEntries(key, state, signal) {
          const prefix = `${key}#${state}#`
          const all = await store.listEntries('all', 's', signal)
          const own = [...all].filter(([name]) => name.startsWith(prefix))
          return new Map(own.map(([name, item]) => [name.slice(prefix.length), item]))
        },
      }
    },
  ],
  [
    'lists entries in the order of UTF-16',
    /rule 5: the names of the entries/,
    (store) => ({
      listEntries: async (...args) => {
        const list = [...(await store.listEntries(...args))]
        return new Map(list.sort(([a], [b]) => (a < b ? -1 : 1)))
      },
    }),
  ],
  [
    'hides expired items from reads, but not from conditions',
    /rule 2: a commit at the position that was read/,
    () => {
      const store = new MemoryStateStore({ stage: 's', clock: new VirtualClock(), ttlTakes: () => false })
      return {
        commit: (...args) => store.commit(...args),
        async readKeys(...args) {
          const items = await store.readKeys(...args)
          return new Map([...items].filter(([, { expiresAtSeconds }]) => expiresAtSeconds !== 1))
        },
      }
    },
  ],
  [
    'loses the expiry of entries',
    /rule 6: the expiry of an entry/,
    (store) => ({
      commit: ({ entries, ...write }, signal) =>
        store.commit(
          { ...write, entries: entries.map((entry) => ({ ...entry, expiresAtSeconds: undefined })) },
          signal,
        ),
    }),
  ],
  [
    'leaves out the own attributes of entries',
    /rule 5: what is read of the `own` of entries/,
    (store) => ({
      readEntries: async (...args) =>
        (await store.readEntries(...args)).map((item) => item && { ...item, own: undefined }),
    }),
  ],
  [
    'leaves out the own attributes of an item',
    /rule 5: what is read of an item with `own`/,
    (store) => ({
      readKeys: async (...args) => mapped(await store.readKeys(...args), ({ own, ...item }) => item),
    }),
  ],
  [
    'lists entries without their own attributes',
    /rule 5: what is listed of the `own`/,
    (store) => ({
      listEntries: async (...args) => mapped(await store.listEntries(...args), ({ own, ...item }) => item),
    }),
  ],
  [
    'writes a manifest over another',
    /rule 8: how many wrote the manifest first/,
    (store) => {
      let manifest: StateValue | undefined
      return {
        readManifest: async (signal) => manifest ?? (await store.readManifest(signal)),
        async writeManifest(value, signal) {
          await store.writeManifest(value, signal)
          manifest = value
          return true
        },
      }
    },
  ],
  [
    'replaces whatever manifest is there',
    /rule 8: over a manifest that is not there/,
    (store) => ({
      async replaceManifest(_, value, signal) {
        const manifest = await store.readManifest(signal)
        return manifest !== undefined && store.replaceManifest(manifest, value, signal)
      },
    }),
  ],
  [
    'keeps the manifest as JSON',
    /rule 8: the manifest/,
    (store) => ({
      readManifest: async (signal) => {
        const manifest = await store.readManifest(signal)
        return (
          manifest && throughJson({ position: 1, states: { manifest }, expiresAtSeconds: undefined }).states.manifest
        )
      },
    }),
  ],
  [
    'puts due entries beside those that are there',
    /rule 9: an entry that was put three times/,
    (store) => {
      const again: DueEntry[] = []
      return {
        putDue(entries, signal) {
          again.push(...entries)
          return store.putDue(entries, signal)
        },
        async readDue(...args) {
          const page = await store.readDue(...args)
          const count = (found: DueEntry) => again.filter((put) => isDeepStrictEqual(put, found)).length
          return { ...page, entries: page.entries.flatMap((found) => Array<DueEntry>(count(found)).fill(found)) }
        },
      }
    },
  ],
  [
    'takes slots by their first digit',
    /rule 9: /,
    (store) => {
      const first = <T extends { readonly slot: number }>(entry: T): T => ({
        ...entry,
        slot: Number(`${entry.slot}`[0]),
      })
      return {
        putDue: (entries, signal) => store.putDue(entries.map(first), signal),
        deleteDue: (entries, signal) => store.deleteDue(entries.map(first), signal),
        readDue: (slot, ...rest) => store.readDue(first({ slot }).slot, ...rest),
      }
    },
  ],
  [
    'keeps both domains as one',
    /rule 9: /,
    (store) => ({
      putDue: (entries, signal) =>
        store.putDue(
          entries.map((entry) => ({ ...entry, domain: 'event-time' })),
          signal,
        ),
      readDue: (slot, _, ...rest) => store.readDue(slot, 'event-time', ...rest),
    }),
  ],
  [
    'deletes no due entries',
    /rule 9: the slot whose entries were deleted/,
    () => ({ deleteDue: async () => undefined }),
  ],
  [
    'deletes the first 25 due entries',
    /rule 9: what is left of 230 entries/,
    (store) => ({ deleteDue: (entries, signal) => store.deleteDue(entries.slice(0, 25), signal) }),
  ],
  [
    'puts the first 25 due entries',
    /rule 9: of 230 entries/,
    (store) => ({ putDue: (entries, signal) => store.putDue(entries.slice(0, 25), signal) }),
  ],
  [
    'sorts times as text',
    /rule 9: the order of what is due/,
    (store) => ({
      async readDue(...args) {
        const page = await store.readDue(...args)
        return { ...page, entries: [...page.entries].sort((a, b) => (String(a.timeMs) < String(b.timeMs) ? -1 : 1)) }
      },
    }),
  ],
  [
    'sorts the keys of one time as UTF-16',
    /rule 9: the order of what is due/,
    (store) => ({
      async readDue(...args) {
        const page = await store.readDue(...args)
        const entries = [...page.entries].sort((a, b) => a.timeMs - b.timeMs || (a.key < b.key ? -1 : 1))
        return { ...page, entries }
      },
    }),
  ],
  [
    'leaves out what is due at the very time',
    /rule 9: what is due up to/,
    (store) => ({
      readDue: (slot, domain, untilMs, ...rest) => store.readDue(slot, domain, untilMs - 1, ...rest),
    }),
  ],
  [
    'does not look beyond',
    /rule 9: what comes after/,
    (store) => ({ readDue: async (...args) => ({ ...(await store.readDue(...args)), nextMs: undefined }) }),
  ],
  [
    'takes a full page for all',
    /rule 9: fewer than are due/,
    (store) => ({ readDue: async (...args) => ({ ...(await store.readDue(...args)), isComplete: true }) }),
  ],
  [
    'takes a full page for a part, though it is all',
    /rule 9: as many as the limit/,
    (store) => ({
      async readDue(slot, domain, untilMs, options, signal) {
        const page = await store.readDue(slot, domain, untilMs, options, signal)
        const isFull = page.entries.length === options.limit
        return isFull ? { ...page, isComplete: false, nextMs: undefined } : page
      },
    }),
  ],
  [
    'knows no limit',
    /rule 9: fewer than are due/,
    (store) => ({
      readDue: (slot, domain, untilMs, options, signal) =>
        store.readDue(slot, domain, untilMs, { ...options, limit: 10_000 }, signal),
    }),
  ],
  [
    'begins each page at the beginning',
    /rule 9: what was read page by page comes again/,
    (store) => ({
      readDue: (slot, domain, untilMs, { limit }, signal) => store.readDue(slot, domain, untilMs, { limit }, signal),
    }),
  ],
  [
    'goes on behind an entry only where that is there still',
    /rule 9: what comes behind an entry that was deleted/,
    (store) => ({
      async readDue(slot, domain, untilMs, options, signal) {
        const { after } = options
        const all = await store.readDue(slot, domain, Number.POSITIVE_INFINITY, { limit: 10_000 }, signal)
        const isThere = all.entries.some((entry) => isDeepStrictEqual(entry, after))
        return store.readDue(slot, domain, untilMs, isThere ? options : { limit: options.limit }, signal)
      },
    }),
  ],
  [
    'cuts long keys of due entries',
    /rule 9: the keys that are due/,
    (store) => ({
      putDue: (entries, signal) =>
        store.putDue(
          entries.map((entry) => ({ ...entry, key: entry.key.slice(0, 1_000).toWellFormed() })),
          signal,
        ),
    }),
  ],
  [
    'puts a part of what it refuses',
    /rule 9: what is due after a call was refused/,
    (store) => ({
      async putDue(entries, signal) {
        for (const entry of entries) await store.putDue([entry], signal)
      },
    }),
  ],
  [
    'reads due entries after the abort',
    /rule 7: readDue went on/,
    (store) => ({
      readDue: (slot, domain, untilMs, options) =>
        store.readDue(slot, domain, untilMs, options, new AbortController().signal),
    }),
  ],
  [
    'deletes due entries after the abort, and rejects',
    /rule 7: the due entries after/,
    (store) => ({
      async deleteDue(entries, signal) {
        await store.deleteDue(entries, new AbortController().signal)
        signal.throwIfAborted()
      },
    }),
  ],
  [
    'goes on after the abort',
    /rule 7: commit went on/,
    (store) => ({ commit: (write) => store.commit(write, new AbortController().signal) }),
  ],
]

async function failuresOf(make: () => StateStoreUnderTest): Promise<unknown[]> {
  const failures: unknown[] = []
  for (const check of stateStoreConformance('broken', { make: async () => make() })) {
    await check.run().catch((error: unknown) => failures.push(error))
  }
  return failures
}

const brokenRule = (rule: RegExp) =>
  expect.objectContaining({ code: 'state-store-conformance', message: expect.stringMatching(rule) })

describe('a store that breaks a rule is caught:', () => {
  test.each(broken)('one that %s', async (_, rule, change) => {
    const failures = await failuresOf(() => {
      const store = newStore()
      return losingAnswers(changedStore(store, change(store)))
    })
    expect(failures).toContainEqual(brokenRule(rule))
  })

  test('one that answers although the answer was lost', async () => {
    const failures = await failuresOf(() => ({ store: newStore(), loseNextAnswer: () => undefined }))
    expect(failures).toEqual([brokenRule(/rule 4: .*answered all the same/)])
  })

  test('one that loses a write whose answer it lost', async () => {
    const failures = await failuresOf(() => {
      const store = newStore()
      let losing = false
      const commit: StateStore['commit'] = async (...args) => {
        if (!losing) return store.commit(...args)
        losing = false
        throw new Error('nothing happened')
      }
      const loseNextAnswer = (): void => {
        losing = true
      }
      return { store: changedStore(store, { commit }), loseNextAnswer }
    })
    expect(failures).toEqual([brokenRule(/rule 4: the item whose answer was lost/)])
  })

  test('one that cannot lose an answer, unless it says so', async () => {
    const make = async () => ({ store: newStore() })
    const checks = stateStoreConformance('plain', { make })
    await expect(checks.at(-1)?.run()).rejects.toThrow('lostAnswers: false')
    expect(stateStoreConformance('plain', { make, lostAnswers: false })).toHaveLength(checks.length - 1)
  })
})
