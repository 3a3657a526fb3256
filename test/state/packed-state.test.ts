import { milliseconds } from '../../lib/core/duration.ts'
import { KeyDraft, linkStates } from '../../lib/state/key-draft.ts'
import type { KeyItem, StateValue } from '../../lib/state/state-store.ts'
import { type PackedState, packedState } from '../../lib/state/states.ts'

const nowMs = 1_000_000_000_000
const epoch = { eventTimeMs: 0, arrivalTimeMs: 0 }
type Counts = ReadonlyMap<string, number>

/** Counts by name, packed as a list of pairs; `calls` says how often each function ran. */
function counting(options: Pick<Parameters<typeof packedState>[0], 'ttl' | 'version' | 'upcast'> = {}) {
  const calls = { encode: 0, decode: 0 }
  const declaration = packedState<Counts>({
    encode: (counts) => {
      calls.encode += 1
      return [...counts].map(([name, count]) => [name, count])
    },
    decode: (stored) => {
      calls.decode += 1
      return new Map(stored as unknown as [string, number][])
    },
    ...(options as object),
  })
  return { declaration, calls }
}

function draftOf<T>(declaration: PackedState<T>, item?: KeyItem) {
  const states = { counts: declaration }
  const draft = new KeyDraft('h1', item, new Map(Object.entries(states)))
  const { counts } = linkStates(
    states,
    (name) => name,
    () => draft,
  )
  const step = (run: () => void, eventTimeMs = 0): void => {
    draft.begin({ eventTimeMs, arrivalTimeMs: 0 })
    run()
    draft.accept(draft.position + 1)
  }
  return { draft, counts, step, stored: () => draft.commit(nowMs, 0).item.states.counts }
}

const itemOf = (counts: StateValue, own?: StateValue): KeyItem => ({
  position: 5,
  states: { counts },
  expiresAtSeconds: undefined,
  own,
})

test('a step gets the very value that another one set', () => {
  const { counts, step } = draftOf(counting().declaration)
  const value = new Map([['a', 1]])
  step(() => counts.set(value))
  step(() => expect(counts.get()).toBe(value))
})

test('a value is encoded once, at the commit, and not again before it changes', () => {
  const { declaration, calls } = counting()
  const { draft, counts, step, stored } = draftOf(declaration)
  for (let i = 0; i < 9; i += 1) step(() => counts.set(new Map([['a', i]])))
  expect(calls.encode).toBe(0)
  expect([stored(), stored()]).toEqual([[['a', 8]], [['a', 8]]])
  draft.committed()
  expect([stored(), calls.encode]).toEqual([[['a', 8]], 1])
  step(() => counts.set(new Map()))
  expect([stored(), calls]).toEqual([[], { encode: 2, decode: 0 }])
})

test('a value that no step asks for goes back as it came, and one that is only read is decoded once', () => {
  const { declaration, calls } = counting()
  const { counts, step, stored } = draftOf(declaration, itemOf([['a', 1]]))
  expect([stored(), calls.decode]).toEqual([[['a', 1]], 0])
  step(() => expect(counts.get()).toEqual(new Map([['a', 1]])))
  step(() => expect(counts.get()).toBe(counts.get()))
  expect([stored(), calls]).toEqual([[['a', 1]], { encode: 0, decode: 1 }])
})

test('a step that throws leaves the value as it was, and what it is in the table', () => {
  const { declaration, calls } = counting()
  const { draft, counts, step, stored } = draftOf(declaration, itemOf([['a', 1]]))
  draft.begin(epoch)
  counts.set(new Map([['a', 2]]))
  expect(draft.changesText()).toBe('["counts"]=[["a",2]]')
  counts.clear()
  expect(draft.changesText()).toBe('["counts"]=removed')
  draft.rollback()
  expect(counts.get()).toEqual(new Map([['a', 1]]))
  expect([stored(), calls.encode]).toEqual([[['a', 1]], 1])
  step(() => counts.clear())
  expect([counts.get(), stored()]).toEqual([undefined, undefined])
})

test('an older version goes through the upcasters before it is decoded; a newer one makes the release wait', () => {
  const { declaration } = counting({ version: 2, upcast: { 1: (old: number) => [['a', old]] } } as never)
  const old = draftOf(declaration, itemOf(7))
  expect(old.stored()).toBe(7)
  old.step(() => expect(old.counts.get()).toEqual(new Map([['a', 7]])))
  expect(old.draft.commit(nowMs, 0).item).toMatchObject({
    states: { counts: [['a', 7]] },
    own: { states: { counts: { version: 2 } } },
  })
  const newer = draftOf(declaration, itemOf('newer', { states: { counts: { version: 3 } } }))
  newer.draft.begin(epoch)
  expect(() => newer.counts.get()).toThrow(expect.objectContaining({ code: 'newer-schema' }))
  expect(newer.stored()).toBe('newer')
})

test('a value that has expired is not handed out, and leaves the item', () => {
  const { declaration } = counting({ ttl: { by: 'event-time', after: milliseconds(10) } })
  const { counts, step, stored } = draftOf(declaration)
  step(() => counts.set(new Map()), 5)
  step(() => expect(counts.get()).toEqual(new Map()), 14)
  step(() => expect(counts.get()).toBeUndefined(), 15)
  expect(stored()).toBeUndefined()
})

test('what decode gets cannot be changed', () => {
  const declaration = packedState<number>({
    encode: (n) => [n],
    decode: (stored) => (stored as number[]).push(1),
  })
  const { counts, draft } = draftOf(declaration, itemOf([1]))
  draft.begin(epoch)
  expect(() => counts.get()).toThrow(TypeError)
})

test('an encoding that the table could not return unchanged is refused at the commit, by key and state', () => {
  const { counts, step, stored } = draftOf(
    packedState<Date>({ encode: (day) => ({ day }) as never, decode: () => new Date() }),
  )
  step(() => counts.set(new Date(0)))
  expect(stored).toThrow('key "h1": the state counts.day is a Date')
})

test('undefined is no value: an operator that sets it has a bug', () => {
  const { counts, draft } = draftOf(counting().declaration)
  draft.begin(epoch)
  expect(() => counts.set(undefined as never)).toThrow('the state counts was set to undefined')
})
