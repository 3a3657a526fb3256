import { milliseconds } from '../../lib/core/duration.ts'
import { EntryNotLoaded, KeyDraft, linkStates } from '../../lib/state/key-draft.ts'
import type { EntryItem, KeyItem, StateValue } from '../../lib/state/state-store.ts'
import {
  aggregatingState,
  listState,
  mapState,
  reducingState,
  type StateDeclaration,
  type Ttl,
  valueState,
} from '../../lib/state/states.ts'

const dayMs = 86_400_000
const nowMs = 1_000_000_000_000
const retentionMs = 7 * dayMs
const lingerSeconds = (nowMs + retentionMs + dayMs) / 1_000

const itemOf = (states: KeyItem['states'], own?: StateValue): KeyItem => ({
  position: 5,
  states,
  expiresAtSeconds: undefined,
  own,
})

/** A draft with its views, whose stored names are the names. */
function draftOf<D extends Record<string, StateDeclaration>>(states: D, item?: KeyItem) {
  const draft = new KeyDraft('h1', item, new Map(Object.entries(states)))
  const views = linkStates(
    states,
    (name) => name,
    () => draft,
  )
  const step = (run: (state: typeof views) => void, eventTimeMs = 0, arrivalTimeMs = 0): void => {
    draft.begin({ eventTimeMs, arrivalTimeMs })
    run(views)
    draft.accept(draft.position + 1)
  }
  const changes = (run: (state: typeof views) => void): string => {
    draft.begin({ eventTimeMs: 0, arrivalTimeMs: 0 })
    run(views)
    const text = draft.changesText()
    draft.rollback()
    return text
  }
  const commit = () => draft.commit(nowMs, retentionMs)
  return { draft, views, step, changes, commit }
}

const ttl = (by: Ttl['by'], afterMs: number, refreshedOn?: 'read-and-write'): { ttl: Ttl } => ({
  ttl: { by, after: milliseconds(afterMs), ...(refreshedOn && { refreshedOn }) },
})

describe('positions', () => {
  test('a key without an item begins at 0, and its first commit expects none', () => {
    const { draft, step, commit } = draftOf({ n: valueState<number>() })
    expect([draft.position, draft.readPosition, draft.isChanged]).toEqual([0, undefined, false])
    step(({ n }) => n.set(1))
    expect(commit()).toEqual({
      key: 'h1',
      readPosition: undefined,
      item: { position: 1, states: { n: 1 }, expiresAtSeconds: undefined, own: undefined },
      entries: [],
    })
    draft.committed()
    expect([draft.position, draft.readPosition, draft.isChanged]).toEqual([1, 1, false])
  })

  test('a position that does not grow is a bug of ours', () => {
    const { draft } = draftOf({ n: valueState<number>() }, itemOf({}))
    draft.begin({ eventTimeMs: 0, arrivalTimeMs: 0 })
    expect(() => draft.accept(5)).toThrow('a draft went from position 5 to 5')
  })

  test('a step that only reads leaves nothing to commit, but moves the position', () => {
    const { draft, step, commit } = draftOf({ n: valueState<number>() }, itemOf({ n: 1 }))
    step(({ n }) => n.get())
    expect([draft.isChanged, draft.position, draft.readPosition]).toEqual([false, 6, 5])
    step(({ n }) => n.set(2))
    expect(draft.isChanged).toBe(true)
    expect(commit()).toMatchObject({ readPosition: 5, item: { position: 7, states: { n: 2 } } })
  })

  test('a position may be accepted without a step, which changes nothing', () => {
    const { draft, step, commit, views } = draftOf({ n: valueState<number>(ttl('event-time', 10)) })
    step(({ n }) => n.set(1), 100)
    commit()
    draft.committed()
    draft.accept(7)
    draft.rollback()
    expect([draft.position, draft.isChanged, views.n.get()]).toEqual([7, false, 1])
    step(({ n }) => expect(n.get()).toBeUndefined(), 110)
  })

  test('a step that was left open is undone by the next', () => {
    const { draft, views, step } = draftOf({ n: valueState<number>(ttl('event-time', 10)) })
    step(({ n }) => n.set(1), 100)
    draft.begin({ eventTimeMs: 900, arrivalTimeMs: 0 })
    views.n.set(2)
    step(({ n }) => expect(n.get()).toBe(1), 101)
  })

  test('clearing what is not there changes nothing', () => {
    const { draft, step } = draftOf({ n: valueState<number>() }, itemOf({}))
    step(({ n }) => n.clear())
    expect(draft.isChanged).toBe(false)
  })
})

describe('a value that is handed out', () => {
  test('cannot be changed: it is frozen, as deep as it goes, also where it was loaded', () => {
    const { step } = draftOf({ a: valueState<{ list: number[] }>() }, itemOf({ a: { list: [1] } }))
    const change = (list: number[] | undefined): unknown => list?.push(2)
    step(({ a }) => expect(() => change(a.get()?.list)).toThrow(TypeError))
    step(({ a }) => {
      a.set({ list: [3] })
      expect(() => change(a.get()?.list)).toThrow(TypeError)
    })
    step(({ a }) => expect(a.get()).toEqual({ list: [3] }))
  })

  test('is a copy where bytes are in it', () => {
    const { step } = draftOf({ a: valueState<{ bytes: Uint8Array }>() }, itemOf({ a: { bytes: Uint8Array.of(1) } }))
    step(({ a }) => a.get()?.bytes.fill(9))
    step(({ a }) => expect(a.get()).toEqual({ bytes: Uint8Array.of(1) }))
    const bytes = Uint8Array.of(2)
    step(({ a }) => a.set({ bytes }))
    bytes.fill(9)
    step(({ a }) => a.get()?.bytes.fill(9))
    step(({ a }) => expect(a.get()).toEqual({ bytes: Uint8Array.of(2) }))
  })

  test('of a list is a copy, whose elements are frozen', () => {
    const { step } = draftOf({ a: listState<number[]>({ atMost: 3 }) }, itemOf({ a: [[1]] }))
    step(({ a }) => {
      ;(a.get() as number[][]).push([0])
      expect(() => a.get()[0]?.push(0)).toThrow(TypeError)
      a.add([2])
      ;(a.get() as number[][]).push([0])
      expect(() => a.get()[1]?.push(0)).toThrow(TypeError)
      expect(a.get()).toEqual([[1], [2]])
    })
  })

  test('keeps an empty list from being changed, too', () => {
    const { step } = draftOf({ a: listState<number>({ atMost: 3 }) })
    step(({ a }) => expect(() => (a.get() as number[]).push(1)).toThrow(TypeError))
  })

  test('reaches reduce and add as it reaches steps: what they cannot change on the second value, they cannot on the first', () => {
    const { draft, views } = draftOf({
      all: aggregatingState({
        init: (): number[] => [],
        add: (all, value: number) => {
          all.push(value)
          return all
        },
        result: (all) => all.length,
      }),
    })
    draft.begin({ eventTimeMs: 0, arrivalTimeMs: 0 })
    expect(() => views.all.add(1)).toThrow(TypeError)
  })
})

describe('what the table could not return unchanged is refused by key and state', () => {
  const refusals: [string, (state: ReturnType<typeof views>) => void, string][] = [
    ['a value', ({ v }) => v.set(new Date(0)), 'key "h1": the state v is a Date'],
    ['inside a value', ({ v }) => v.set({ x: undefined }), 'key "h1": the state v.x is undefined'],
    ['an element', ({ l }) => l.add(new Map()), 'key "h1": the state l[0] is a Map'],
    ['an entry', ({ m }) => m.set('day', () => 1), 'key "h1": the state m["day"] is a function'],
    ['a promise', ({ v }) => v.set(Promise.reject(new Error('nobody looks'))), 'is a Promise'],
    ['undefined', ({ v }) => v.set(undefined), 'key "h1": the state v is undefined'],
    ['what add returns', ({ a }) => a.add(1), 'key "h1": the state a is a Set'],
    ['half a surrogate pair as a name', ({ m }) => m.get('\ud800'), 'without halves of surrogate pairs'],
    ['a number as a name', ({ m }) => m.get(5 as unknown as string), 'the name of an entry is text'],
  ]
  const views = () =>
    draftOf({
      v: valueState<unknown>(),
      l: listState<unknown>({ atMost: 2 }),
      m: mapState<unknown>(),
      a: aggregatingState({ init: () => 0 as unknown, add: () => new Set(), result: (all) => all }),
    }).views

  test.each(refusals)('%s', (_, write, message) => {
    expect(() => write(views())).toThrow(
      expect.objectContaining({ name: 'TerminalError', message: expect.stringContaining(message) }),
    )
  })

  test('and a list is nested as deep as its elements and one more', () => {
    const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)])
    expect(() => views().l.add(nested(29))).not.toThrow()
    expect(() => views().l.add(nested(30))).toThrow('nested more than 30 levels deep')
  })
})

describe('lists', () => {
  test('the oldest elements leave, one by one or at once', () => {
    const { step } = draftOf({ l: listState<number>({ atMost: 2 }) })
    const seen: (readonly number[])[] = []
    for (const n of [1, 2, 3]) {
      step(({ l }) => {
        l.add(n)
        seen.push(l.get())
      })
    }
    step(({ l }) => l.set([7, 8, 9]))
    step(({ l }) => seen.push(l.get()))
    expect(seen).toEqual([[1], [1, 2], [2, 3], [8, 9]])
  })

  test('a list that was longer before `atMost` was lowered is cut with the next element', () => {
    const { step } = draftOf({ l: listState<number>({ atMost: 2 }) }, itemOf({ l: [1, 2, 3, 4] }))
    step(({ l }) => {
      l.add(5)
      expect(l.get()).toEqual([4, 5])
    })
  })
})

describe('entries', () => {
  const item: EntryItem = { position: 5, value: 1, expiresAtSeconds: undefined }

  test('of a key with an item are loaded before they are read or written', () => {
    const { draft, views } = draftOf({ m: mapState<number>() }, itemOf({}))
    draft.begin({ eventTimeMs: 0, arrivalTimeMs: 0 })
    for (const call of [() => views.m.get('a'), () => views.m.set('a', 1), () => views.m.delete('a')]) {
      expect(call).toThrow(expect.objectContaining({ name: 'EntryNotLoaded', state: 'm', entry: 'a' }))
    }
    expect(views.m.entries).toThrow(new EntryNotLoaded('m', undefined))
    draft.loadEntry('m', 'a', item)
    expect(views.m.get('a')).toBe(1)
    expect(views.m.entries).toThrow(EntryNotLoaded)
    draft.loadAllEntries('m', new Map([['b', item]]))
    expect(views.m.get('c')).toBeUndefined()
    expect(draft.hasEntry('m', 'anything')).toBe(true)
    expect(views.m.entries()).toEqual([
      ['a', 1],
      ['b', 1],
    ])
  })

  test('a load does not undo what a step wrote', () => {
    const { draft, step, views } = draftOf({ m: mapState<number>() }, itemOf({}))
    draft.loadEntry('m', 'a', item)
    step(({ m }) => m.set('a', 2))
    draft.loadEntry('m', 'a', item)
    draft.loadAllEntries('m', new Map([['a', item]]))
    expect(views.m.get('a')).toBe(2)
  })

  test('of a key without an item need no load, and are none', () => {
    const { draft, step, commit } = draftOf({ m: mapState<number>() })
    expect(draft.hasEntry('m', 'a')).toBe(true)
    step(({ m }) => {
      expect(m.entries()).toEqual([])
      m.set('a', 1)
      m.set('gone again', 1)
    })
    step(({ m }) => m.delete('gone again'))
    expect(commit().entries).toEqual([
      { state: 'm', entry: 'a', value: 1, expiresAtSeconds: undefined, own: undefined },
    ])
  })

  test('that are left of an earlier life of the key do not come back, whenever they are read', () => {
    const first = draftOf({ m: mapState<number>() })
    first.draft.begin({ eventTimeMs: 0, arrivalTimeMs: 0 })
    first.views.m.set('a', 1)
    first.draft.accept(900)
    const { item: born } = first.commit()
    expect(born.own).toEqual({ entriesSince: 900, lastingEntries: 1 })
    const { draft, views } = draftOf({ m: mapState<number>() }, born)
    draft.loadEntry('m', 'left', { position: 899, value: 1 })
    draft.loadEntry('m', 'a', { position: 900, value: 1 })
    draft.begin({ eventTimeMs: 0, arrivalTimeMs: 0 })
    expect([views.m.has('left'), views.m.has('a')]).toEqual([false, true])
  })

  test('that are removed leave a tombstone, once', () => {
    const { draft, step, commit } = draftOf({ m: mapState<number>() }, itemOf({}, { lastingEntries: 1 }))
    draft.loadEntry('m', 'a', item)
    draft.loadEntry('m', 'b', { position: 4, value: undefined })
    step(({ m }) => {
      m.delete('a')
      m.delete('b')
    })
    expect(commit().entries).toEqual([{ state: 'm', entry: 'a', value: undefined, expiresAtSeconds: lingerSeconds }])
    draft.committed()
    step(({ m }) => m.delete('a'))
    expect(draft.isChanged).toBe(false)
  })

  test('are written where they changed since the last commit, and no others', () => {
    const { draft, step, commit } = draftOf({ m: mapState<number>() })
    step(({ m }) => m.set('a', 1))
    commit()
    draft.committed()
    step(({ m }) => m.set('b', 1))
    expect(commit().entries.map(({ entry }) => entry)).toEqual(['b'])
  })
})

describe('what has expired', () => {
  const kinds: [Ttl['by'], (ms: number) => [eventTimeMs: number, arrivalTimeMs: number]][] = [
    ['event-time', (ms) => [ms, 0]],
    ['processing-time', (ms) => [0, ms]],
  ]

  describe.each(kinds)('by %s', (by, at) => {
    const seenAt = (refreshedOn: 'read-and-write' | undefined, times: readonly number[]): unknown[] => {
      const { step } = draftOf({ v: valueState<number>(ttl(by, 10, refreshedOn)) })
      step(({ v }) => v.set(1), ...at(100))
      const seen: unknown[] = []
      for (const ms of times) step(({ v }) => seen.push(v.get()), ...at(ms))
      return seen
    }

    test('is gone from the very time on, and does not come back with a late record', () => {
      expect(seenAt(undefined, [109, 110, 105])).toEqual([1, undefined, undefined])
    })

    test('lives on by reads only where they refresh it', () => {
      expect(seenAt('read-and-write', [109, 118, 127, 137])).toEqual([1, 1, 1, undefined])
      expect(seenAt(undefined, [109, 118])).toEqual([1, undefined])
    })

    test('is not written by a read that finds it as fresh as it can be', () => {
      const { draft, step, commit } = draftOf({ v: valueState<number>(ttl(by, 10, 'read-and-write')) })
      step(({ v }) => v.set(1), ...at(100))
      commit()
      draft.committed()
      step(({ v }) => v.get(), ...at(99))
      expect(draft.isChanged).toBe(false)
    })

    test('is not read by a late write, which lives from the time of the key on', () => {
      const { step } = draftOf({ r: reducingState<number>((a, b) => a + b, ttl(by, 10)) })
      const seen: unknown[] = []
      step(({ r }) => r.add(1), ...at(100))
      step(({ r }) => r.add(2), ...at(50))
      step(({ r }) => seen.push(r.get()), ...at(109))
      step(({ r }) => r.add(4), ...at(110))
      step(({ r }) => seen.push(r.get()), ...at(119))
      expect(seen).toEqual([3, 4])
    })

    test('leaves the item with the next commit, whatever that is for', () => {
      const states = { v: valueState<number>(ttl(by, 10)), n: valueState<number>() }
      const { draft, step, commit } = draftOf(states)
      step(({ v }) => v.set(1), ...at(100))
      expect(commit().item.states).toEqual({ v: 1 })
      draft.committed()
      step(() => undefined, ...at(110))
      expect(draft.isChanged).toBe(true)
      const name = by === 'event-time' ? 'eventTimeMs' : 'arrivalTimeMs'
      expect([commit().item.states, commit().item.own]).toEqual([{}, { [name]: 110 }])
    })
  })

  test('the other time is not kept, and does not make a commit', () => {
    const { draft, step, commit } = draftOf({ v: valueState<number>(ttl('event-time', 10)) })
    step(({ v }) => v.set(1), 100, 7)
    expect(commit().item.own).toEqual({ eventTimeMs: 100, states: { v: { touchedMs: 100 } } })
    draft.committed()
    step(({ v }) => v.get(), 90, 8)
    expect(draft.isChanged).toBe(false)
  })

  test('a step that throws does not move the time of the key', () => {
    const { draft, step, views } = draftOf({ v: valueState<number>(ttl('event-time', 10)) })
    step(({ v }) => v.set(1), 100)
    draft.begin({ eventTimeMs: 200, arrivalTimeMs: 0 })
    expect(views.v.get()).toBeUndefined()
    draft.rollback()
    step(({ v }) => expect(v.get()).toBe(1), 101)
  })

  test('a ttl that is declared later counts from the next commit', () => {
    const { step, commit } = draftOf({ v: valueState<number>(ttl('event-time', 10)) }, itemOf({ v: 1 }))
    step(({ v }) => expect(v.get()).toBe(1), 100)
    const { item } = commit()
    expect(item.own).toEqual({ eventTimeMs: 100, states: { v: { touchedMs: 100 } } })
    draftOf({ v: valueState<number>(ttl('event-time', 10)) }, item).step(
      ({ v }) => expect(v.get()).toBeUndefined(),
      110,
    )
  })
})

describe('when TTL may take the item', () => {
  const expiryOf = <D extends Record<string, StateDeclaration>>(
    states: D,
    run: Parameters<ReturnType<typeof draftOf<D>>['step']>[0],
    item?: KeyItem,
  ) => {
    const { step, commit } = draftOf(states, item)
    step(run)
    return commit()
  }
  const both = { stays: valueState<number>(), goes: valueState<number>(ttl('event-time', 5_500)) }

  test('never, where something in it stays', () => {
    const { item } = expiryOf(both, ({ stays, goes }) => {
      stays.set(1)
      goes.set(1)
    })
    expect(item.expiresAtSeconds).toBeUndefined()
  })

  test('retention and a day after what is left has expired, rounded up', () => {
    expect(expiryOf(both, ({ goes }) => goes.set(1)).item.expiresAtSeconds).toBe(lingerSeconds + 6)
    expect(expiryOf(both, ({ stays }) => stays.clear(), itemOf({ stays: 1 })).item.expiresAtSeconds).toBe(lingerSeconds)
    const early = itemOf({ goes: 1 }, { eventTimeMs: 1_000, states: { goes: { touchedMs: -500 } } })
    expect(expiryOf(both, ({ stays }) => stays.clear(), early)).toMatchObject({
      item: { expiresAtSeconds: lingerSeconds + 4 },
    })
  })

  test('never, while an entry stays; and as long after the last one was removed', () => {
    const states = { m: mapState<number>() }
    const { draft, step, commit } = draftOf(states)
    step(({ m }) => {
      m.set('a', 1)
      m.set('b', 1)
    })
    expect(commit().item).toMatchObject({ expiresAtSeconds: undefined, own: { lastingEntries: 2 } })
    draft.committed()
    step(({ m }) => m.delete('a'))
    step(({ m }) => m.set('b', 2))
    expect(commit().item).toMatchObject({ expiresAtSeconds: undefined, own: { lastingEntries: 1 } })
    draft.committed()
    step(({ m }) => m.delete('b'))
    expect(commit().item).toMatchObject({ expiresAtSeconds: lingerSeconds })
    expect(commit().item.own).toEqual({ entriesSince: 1 })
  })

  test('not before any entry that has a ttl of its own', () => {
    const states = { m: mapState<number>(ttl('event-time', 60_000)), n: valueState<number>() }
    const { draft, step, commit } = draftOf(states)
    step(({ m }) => m.set('a', 1))
    expect(commit()).toMatchObject({
      item: { expiresAtSeconds: lingerSeconds + 60, own: { entriesUntilSeconds: lingerSeconds + 60 } },
      entries: [{ entry: 'a', expiresAtSeconds: lingerSeconds + 60, own: { touchedMs: 0 } }],
    })
    draft.committed()
    step(({ n }) => n.set(1))
    step(({ n }) => n.clear())
    expect(commit().item.expiresAtSeconds).toBe(lingerSeconds + 60)
  })

  test('an entry that stayed before its state had a ttl keeps the item until it is written', () => {
    const states = { m: mapState<number>(ttl('event-time', 1_000)), n: valueState<number>() }
    const { draft, step, commit } = draftOf(states, itemOf({}, { lastingEntries: 1 }))
    draft.loadEntry('m', 'a', { position: 5, value: 1 })
    step(({ n }) => n.clear())
    expect(commit().item.expiresAtSeconds).toBeUndefined()
    step(({ m }) => m.set('a', 2))
    expect(commit().item.expiresAtSeconds).toBe(lingerSeconds + 1)
  })

  test('not before a redriven record may be forgotten', () => {
    const { draft, step, commit } = draftOf({ n: valueState<number>() })
    step(() => draft.takeRedrive('dl-1', lingerSeconds + 77))
    expect(commit().item.expiresAtSeconds).toBe(lingerSeconds + 77)
  })
})

describe('redriven records', () => {
  test('are remembered with the step that took them, and forgotten when they may be', () => {
    const { draft, step, commit } = draftOf({ n: valueState<number>() })
    draft.begin({ eventTimeMs: 0, arrivalTimeMs: 0 })
    draft.takeRedrive('thrown', 2 * nowMs)
    draft.rollback()
    expect(draft.tookRedrive('thrown')).toBe(false)
    step(() => {
      draft.takeRedrive('constructor', 2 * nowMs)
      draft.takeRedrive('old', nowMs / 1_000)
    })
    expect([draft.tookRedrive('constructor'), draft.isChanged]).toEqual([true, true])
    const { item } = commit()
    expect(item.own).toEqual({ redrives: { constructor: 2 * nowMs } })
    const again = draftOf({ n: valueState<number>() }, item).draft
    expect([again.tookRedrive('constructor'), again.tookRedrive('toString')]).toEqual([true, false])
  })
})

describe('schema versions', () => {
  const upcasts: number[] = []
  const gate = (version?: number) =>
    valueState<string>({
      version: 3,
      upcast: {
        1: (old: number) => {
          upcasts.push(1)
          return { gate: old }
        },
        2: (old: { gate: number }) => {
          upcasts.push(2)
          return `B${old.gate}`
        },
      },
      ...(version && { version: version as 3 }),
    })
  const versioned = (version: number): StateValue => ({ states: { g: { version } } })
  const states = () => ({ g: gate(), n: valueState<number>() })

  test('an older value is read through the upcasters, once, and written back with the next write', () => {
    upcasts.length = 0
    const { step, commit } = draftOf(states(), itemOf({ g: 12 }))
    step(({ n }) => n.set(1))
    expect([upcasts, commit().item.states, commit().item.own]).toEqual([[], { g: 12, n: 1 }, undefined])
    step(({ g }) => expect([g.get(), g.get()]).toEqual(['B12', 'B12']))
    expect(upcasts).toEqual([1, 2])
    step(({ n }) => n.set(2))
    expect(commit().item).toMatchObject({ states: { g: 'B12', n: 2 }, own: versioned(3) })
    const later = draftOf(states(), itemOf({ g: { gate: 7 } }, versioned(2)))
    later.step(({ g }) => expect(g.get()).toBe('B7'))
    expect(upcasts).toEqual([1, 2, 2])
  })

  test('a read alone makes no commit', () => {
    const { draft, step } = draftOf(states(), itemOf({ g: 12 }))
    step(({ g }) => g.get())
    expect(draft.isChanged).toBe(false)
  })

  test('what is written has our version, and comes back as it is', () => {
    const { step, commit } = draftOf(states())
    step(({ g }) => g.set('C1'))
    const { item } = commit()
    expect(item.own).toEqual(versioned(3))
    draftOf(states(), item).step(({ g }) => expect(g.get()).toBe('C1'))
  })

  test('entries have versions of their own', () => {
    const m = mapState<string>({ version: 2, upcast: { 1: (old: number) => String(old) } })
    const { draft, step, commit } = draftOf({ m }, itemOf({}))
    draft.loadEntry('m', 'old', { position: 5, value: 1 })
    draft.loadEntry('m', 'new', { position: 5, value: '2', own: { version: 2 } })
    step(({ m }) => {
      expect([m.get('old'), m.get('new')]).toEqual(['1', '2'])
      m.set('old', '3')
    })
    expect(commit().entries).toEqual([
      { state: 'm', entry: 'old', value: '3', expiresAtSeconds: undefined, own: { version: 2 } },
    ])
  })

  test('a newer one is never read, overwritten or cleared: the release waits', () => {
    const newer = expect.objectContaining({
      name: 'RetryableError',
      code: 'newer-schema',
      message:
        'key "h1": the state g has the schema version 4, and this release knows up to 3: deploy the release that wrote it, or a later one',
    })
    const { draft, views, step, commit } = draftOf(states(), itemOf({ g: 12 }, versioned(4)))
    draft.begin({ eventTimeMs: 0, arrivalTimeMs: 0 })
    for (const call of [() => views.g.get(), () => views.g.set('x'), () => views.g.clear()]) {
      expect(call).toThrow(newer)
    }
    draft.rollback()
    step(({ n }) => n.set(1))
    expect(commit().item).toMatchObject({ states: { g: 12 }, own: versioned(4) })
  })

  test('what a step caught first ends it: a release that waits loads nothing more', () => {
    const kept = { g: valueState<string>(), m: mapState<string>() }
    const { draft, views } = draftOf(kept, itemOf({ g: 12 }, versioned(4)))
    const reads = [() => views.g.get(), () => views.m.get('x')]
    for (const [first, then, thrown] of [
      [0, 1, { code: 'newer-schema' }],
      [1, 0, { name: 'EntryNotLoaded' }],
    ] as const) {
      draft.begin({ eventTimeMs: 0, arrivalTimeMs: 0 })
      for (const read of [first, then]) expect(reads[read]).toThrow()
      expect(() => draft.throwAgain()).toThrow(expect.objectContaining(thrown))
      draft.rollback()
    }
  })

  test('a newer one stays, however long ago it was touched: its ttl may be another', () => {
    const own = { eventTimeMs: 0, states: { v: { touchedMs: 0, version: 2 } } }
    const { step, commit } = draftOf({ v: valueState<number>(ttl('event-time', 10)) }, itemOf({ v: 1 }, own))
    step(() => undefined, 1_000)
    expect(commit().item).toMatchObject({ states: { v: 1 }, own: { states: { v: { touchedMs: 0, version: 2 } } } })
  })

  test('an upcaster that makes what the table cannot keep is told like a step that does', () => {
    const bad = valueState<Date>({ version: 2, upcast: { 1: (old: number) => new Date(old) } })
    const { views } = draftOf({ bad }, itemOf({ bad: 1 }))
    expect(() => views.bad.get()).toThrow('key "h1": the state bad is a Date')
  })
})

describe('states that are not declared', () => {
  test('stay as they are, with what is kept beside them, and keep the item', () => {
    const own = { states: { gone: { touchedMs: 5, version: 3 } } }
    const { step, commit } = draftOf({ n: valueState<number>() }, itemOf({ gone: { x: 1 }, n: 1 }, own))
    step(({ n }) => n.clear())
    expect(commit().item).toEqual({ position: 6, states: { gone: { x: 1 } }, expiresAtSeconds: undefined, own })
  })
})

describe('the text of what a step changed', () => {
  const states = () => ({ a: valueState<StateValue>(), b: valueState<StateValue>(), m: mapState<StateValue>() })

  test('is the same whatever the order and the way', () => {
    const { changes } = draftOf(states())
    const one = changes(({ a, b, m }) => {
      a.set({ x: 1, y: 2 })
      b.set(1)
      m.set('e', 1)
    })
    const other = changes(({ a, b, m }) => {
      m.set('e', 2)
      m.set('e', 1)
      b.set(0)
      b.set(1)
      a.set({ y: 2, x: 1 })
    })
    expect(one).toBe(other)
    expect(changes(({ a }) => a.get())).toBe('')
  })

  test('tells apart whatever differs', () => {
    const { step, changes } = draftOf(states())
    step(({ a, m }) => {
      a.set(1)
      m.set('e', 1)
    })
    const texts = [
      changes(() => undefined),
      changes(({ a }) => a.clear()),
      ...[
        1,
        1n,
        '1',
        '1n',
        [1],
        ['1'],
        { 0: 1 },
        Uint8Array.of(1),
        'bytes:01',
        null,
        'null',
        true,
        [1, [2]],
        [[1, 2]],
      ].map((value) => changes(({ a }) => a.set(value))),
      changes(({ a }) => a.set('removed')),
      changes(({ b }) => b.set(1)),
      changes(({ m }) => m.set('e', 1)),
      changes(({ m }) => m.set('f', 1)),
      changes(({ m }) => m.set('', 1)),
      changes(({ m }) => m.delete('e')),
    ]
    expect(new Set(texts).size).toBe(texts.length)
  })
})
