/**
 * Several writers at once, every call cut into "before" and "after" its effect, in any order, answers lost. Each writer reads a key
 * and one entry of it, adds its operation, and commits; on conflict, or without an answer, it looks again. Whatever the
 * order, the log that a key carries must be one sequential history: every operation in it once, and everything else what
 * a fold over that log gives.
 */
import fc from 'fast-check'
import { MemoryStateStore } from '../../lib/state/memory-store.ts'
import type { EntryItem, KeyItem, StateStore } from '../../lib/state/state-store.ts'
import { VirtualClock } from '../../lib/testing/virtual-clock.ts'
import { never } from '../aws/sink-worlds.ts'
import { StateTable } from '../aws/state-table/state-table.ts'
import { changedStore } from './changed-store.ts'

interface Operation {
  readonly key: string
  readonly amount: number
  /** The entry that it changes; undefined where it changes the key item alone. */
  readonly entry: string | undefined
  /** Whether it removes the entry instead of adding to it. */
  readonly removes: boolean
}

type NumberedOperation = Operation & { readonly id: number }

interface Folded {
  readonly log: readonly number[]
  readonly total: bigint
}

/** What happens around the effect of a call. */
interface Around {
  pause(): Promise<void>
  losesAnswer(): boolean
}

const lost = (): Error => Object.assign(new Error('the answer was lost'), { code: 'ECONNRESET' })

function memoryStore({ pause, losesAnswer }: Around): StateStore {
  const store = new MemoryStateStore({ stage: 's', clock: new VirtualClock() })
  const around = async <T>(call: () => Promise<T>, isWrite: boolean): Promise<T> => {
    await pause()
    const answer = await call()
    await pause()
    if (isWrite && losesAnswer()) throw lost()
    return answer
  }
  return changedStore(store, {
    readKeys: (...args) => around(() => store.readKeys(...args), false),
    readEntries: (...args) => around(() => store.readEntries(...args), false),
    commit: (...args) => around(() => store.commit(...args), true),
    writeProgress: (...args) => around(() => store.writeProgress(...args), true),
  })
}

function tableStore({ pause, losesAnswer }: Around): StateStore {
  const table = new StateTable()
  table.before = pause
  table.after = async ({ operation }) => {
    await pause()
    if ((operation === 'PutItem' || operation === 'TransactWriteItems') && losesAnswer()) throw lost()
  }
  return table.store()
}

const foldedOf = (item: KeyItem | undefined): Folded =>
  (item?.states.folded as unknown as Folded) ?? { log: [], total: 0n }

/** Reads the entry after its key item, and both again while the entry is the newer one. */
async function load(
  store: StateStore,
  { key, entry }: Operation,
): Promise<[KeyItem | undefined, EntryItem | undefined]> {
  for (;;) {
    const item = (await store.readKeys([key], never())).get(key)
    if (entry === undefined) return [item, undefined]
    const [found] = await store.readEntries([{ key, state: 's', entry }], never())
    if (found === undefined || found.position <= (item?.position ?? 0)) return [item, found]
  }
}

async function apply(store: StateStore, operation: NumberedOperation): Promise<void> {
  const { id, key, entry, amount, removes } = operation
  for (;;) {
    const [item, found] = await load(store, operation)
    const { log, total } = foldedOf(item)
    if (log.includes(id)) return
    const folded = { log: [...log, id], total: total + BigInt(amount) }
    const value = removes ? undefined : ((found?.value as number | undefined) ?? 0) + amount
    try {
      const outcome = await store.commit(
        {
          key,
          readPosition: item?.position,
          item: { position: (item?.position ?? 0) + 1, states: { folded }, expiresAtSeconds: undefined },
          entries: entry === undefined ? [] : [{ state: 's', entry, value }],
        },
        never(),
      )
      if (outcome.status === 'committed') return
      expect(outcome.found?.position).not.toBe(item?.position)
    } catch {
      // Perhaps it took effect: the next look tells.
    }
  }
}

/** What one writer alone would have made of the log. */
function fold(operations: readonly NumberedOperation[], log: readonly number[]) {
  let total = 0n
  const entries = new Map<string, number>()
  for (const id of log) {
    const { amount, entry, removes } = operations[id] as NumberedOperation
    total += BigInt(amount)
    if (entry === undefined) continue
    if (removes) entries.delete(entry)
    else entries.set(entry, (entries.get(entry) ?? 0) + amount)
  }
  return { total, entries }
}

const operation: fc.Arbitrary<Operation> = fc.record({
  key: fc.constantFrom('a', 'a#', '["a"]'),
  amount: fc.integer({ min: -5, max: 5 }),
  entry: fc.constantFrom(undefined, 'x', 'x#', 'y'),
  removes: fc.boolean(),
})
const writers = fc.array(fc.array(operation, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 4 })

describe.each([
  ['memory', memoryStore],
  ['DynamoDB', tableStore],
])('several writers on the %s store', (_, makeStore) => {
  test('make one sequential history of each key', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), writers, fc.infiniteStream(fc.nat(9)), async (scheduler, lists, dice) => {
        const pause = (): Promise<void> => scheduler.schedule(Promise.resolve())
        const store = makeStore({ pause, losesAnswer: () => dice.next().value === 0 })
        let id = 0
        const numbered = lists.map((list) => list.map((item): NumberedOperation => ({ ...item, id: id++ })))
        const runs = numbered.map(async (list) => {
          for (const item of list) await apply(store, item)
        })
        await scheduler.waitFor(Promise.all(runs))

        const operations = numbered.flat()
        for (const key of new Set(operations.map((item) => item.key))) {
          const reading = Promise.all([store.readKeys([key], never()), store.listEntries(key, 's', never())])
          const [items, entries] = await scheduler.waitFor(reading)
          const { log, total } = foldedOf(items.get(key))
          const own = operations.filter((item) => item.key === key).map((item) => item.id)
          expect([...log].sort((a, b) => a - b)).toEqual(own)
          expect(items.get(key)?.position).toBe(log.length)
          const expected = fold(operations, log)
          expect(total).toBe(expected.total)
          expect(new Map([...entries].map(([name, { value }]) => [name, value]))).toEqual(expected.entries)
        }
      }),
      { numRuns: 150 },
    )
  })

  test('write each version of progress once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 2, max: 5 }),
        fc.infiniteStream(fc.nat(9)),
        async (scheduler, count, dice) => {
          const pause = (): Promise<void> => scheduler.schedule(Promise.resolve())
          const store = makeStore({ pause, losesAnswer: () => dice.next().value === 0 })
          const won = new Map<number, number>()
          const runs = Array.from({ length: count }, async (_, writer) => {
            for (let round = 0; round < 4; round += 1) {
              const version = (await store.readProgress('p', never()))?.version ?? 0
              const answer = await store.writeProgress('p', version, { writer }, never()).catch(() => undefined)
              if (answer) won.set(version + 1, (won.get(version + 1) ?? 0) + 1)
            }
          })
          await scheduler.waitFor(Promise.all(runs))
          expect([...won.values()].every((winners) => winners === 1)).toBe(true)
          const progress = await scheduler.waitFor(store.readProgress('p', never()))
          expect(progress?.version).toBeGreaterThanOrEqual(Math.max(0, ...won.keys()))
        },
      ),
      { numRuns: 50 },
    )
  })
})

describe('any sequence of commits', () => {
  const command = fc.record({
    key: fc.constantFrom('a', 'b'),
    readPosition: fc.option(fc.nat(4), { nil: undefined }),
    step: fc.integer({ min: 1, max: 3 }),
    value: fc.oneof(fc.integer(), fc.bigInt({ min: -9n, max: 9n }), fc.string(), fc.constant(undefined)),
  })
  const noPause: Around = { pause: async () => undefined, losesAnswer: () => false }

  test('is answered by both stores as by a naive one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 12 }), async (commands) => {
        const stores = [memoryStore(noPause), tableStore(noPause)]
        const oracle = new Map<string, KeyItem>()
        for (const { key, readPosition, step, value } of commands) {
          const item = {
            position: (readPosition ?? 0) + step,
            states: { n: value ?? null },
            expiresAtSeconds: undefined,
          }
          const found = oracle.get(key)
          const expected = found?.position === readPosition ? { status: 'committed' } : { status: 'conflict', found }
          if (expected.status === 'committed') oracle.set(key, item)
          for (const store of stores) {
            const entries = [{ state: 's', entry: 'e', value }]
            expect(await store.commit({ key, readPosition, item, entries }, never())).toEqual(expected)
            const [entry] = await store.readEntries([{ key, state: 's', entry: 'e' }], never())
            const last = oracle.get(key)
            expect(entry?.position).toBe(last?.position)
            expect(entry?.value ?? null).toEqual(last?.states.n ?? null)
          }
        }
        for (const store of stores) expect(await store.readKeys(['a', 'b'], never())).toEqual(oracle)
      }),
    )
  })
})
