import fc from 'fast-check'
import { milliseconds } from '../../lib/core/duration.ts'
import { KeyDraft, type TimerDomain } from '../../lib/state/key-draft.ts'
import { mostTimers } from '../../lib/state/key-timers.ts'
import type { KeyItem } from '../../lib/state/state-store.ts'
import { type StateDeclaration, valueState } from '../../lib/state/states.ts'

const nowMs = 1_000_000_000_000
const noStates: ReadonlyMap<string, StateDeclaration> = new Map()
const epoch = { eventTimeMs: 0, arrivalTimeMs: 0 }

function draftOf(item?: KeyItem, states = noStates): KeyDraft {
  return new KeyDraft('h1', item, states)
}

function step(draft: KeyDraft, run: (draft: KeyDraft) => void): void {
  draft.begin(epoch)
  run(draft)
  draft.accept(draft.position + 1)
}

const itemOf = (timers: Partial<Record<TimerDomain, Record<string, number>>>): KeyItem => ({
  position: 5,
  states: {},
  expiresAtSeconds: undefined,
  own: { timers },
})

const terminal = (code: string, message: RegExp) =>
  expect.objectContaining({ name: 'TerminalError', code, message: expect.stringMatching(message) })

const thrownBy = (run: () => void): unknown => {
  try {
    run()
    return undefined
  } catch (error) {
    return error
  }
}

describe('the next timer', () => {
  test('is the one that is due first; of one time, that with the lesser name', () => {
    const draft = draftOf()
    draft.begin(epoch)
    expect(draft.nextTimer('event-time')).toBeUndefined()
    for (const [name, timeMs] of [
      ['c', 5],
      ['b', -3],
      ['a', -3],
      ['d', -3],
    ] as const) {
      draft.setTimer('event-time', name, timeMs)
    }
    expect(draft.nextTimer('event-time')).toEqual({ name: 'a', timeMs: -3 })
    draft.clearTimer('event-time', 'a')
    expect(draft.nextTimer('event-time')).toEqual({ name: 'b', timeMs: -3 })
    draft.setTimer('event-time', 'b', 9)
    draft.clearTimer('event-time', 'd')
    expect(draft.nextTimer('event-time')).toEqual({ name: 'c', timeMs: 5 })
    draft.setTimer('event-time', 'c', -1)
    expect(draft.nextTimer('event-time')).toEqual({ name: 'c', timeMs: -1 })
  })

  test('is that of its domain: the two know nothing of each other, also under one name', () => {
    const draft = draftOf()
    draft.begin(epoch)
    draft.setTimer('event-time', 'a', 1)
    draft.setTimer('processing-time', 'a', 2)
    expect(draft.nextTimer('processing-time')).toEqual({ name: 'a', timeMs: 2 })
    draft.clearTimer('processing-time', 'a')
    expect(draft.timer('event-time', 'a')).toBe(1)
    expect(draft.nextTimer('processing-time')).toBeUndefined()
  })

  test('is what a look at all of them finds, after any changes', () => {
    const change = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      timeMs: fc.option(fc.integer({ min: -3, max: 3 }), { nil: undefined }),
      asks: fc.boolean(),
      ends: fc.constantFrom('goes on', 'goes on', 'accept', 'rollback'),
    })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
        const draft = draftOf()
        let timers = new Map<string, number>()
        let before = new Map<string, number>()
        draft.begin(epoch)
        for (const { name, timeMs, asks, ends } of changes) {
          if (timeMs === undefined) {
            draft.clearTimer('event-time', name)
            timers.delete(name)
          } else {
            draft.setTimer('event-time', name, timeMs)
            timers.set(name, timeMs)
          }
          if (ends === 'accept') draft.accept(draft.position + 1)
          if (ends === 'rollback') {
            draft.rollback()
            timers = new Map(before)
          }
          if (ends !== 'goes on') {
            before = new Map(timers)
            draft.begin(epoch)
          }
          const least = [...timers].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1))[0]
          if (asks) expect(draft.nextTimer('event-time')).toEqual(least && { name: least[0], timeMs: least[1] })
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('a step', () => {
  test('that throws leaves the timers as they were', () => {
    const draft = draftOf(itemOf({ 'event-time': { a: 1, b: 2 } }))
    draft.begin(epoch)
    draft.clearTimer('event-time', 'a')
    draft.setTimer('event-time', 'a', 7)
    draft.setTimer('event-time', 'b', 8)
    draft.setTimer('processing-time', 'c', 9)
    draft.rollback()
    expect([draft.timer('event-time', 'a'), draft.timer('event-time', 'b')]).toEqual([1, 2])
    expect(draft.timer('processing-time', 'c')).toBeUndefined()
    expect(draft.nextTimer('event-time')).toEqual({ name: 'a', timeMs: 1 })
    step(draft, () => undefined)
    expect(draft.isChanged).toBe(false)
  })

  test('that sets a timer to the time that it has, or clears what is not set, changes nothing', () => {
    const draft = draftOf(itemOf({ 'event-time': { a: 1, zero: 0 } }))
    step(draft, () => {
      draft.setTimer('event-time', 'a', 1)
      draft.setTimer('event-time', 'zero', -0)
      draft.clearTimer('event-time', 'b')
      expect(draft.changesText()).toBe('')
    })
    expect(draft.isChanged).toBe(false)
  })

  test('that only moves a timer is something to commit', () => {
    const changes: ((draft: KeyDraft) => void)[] = [
      (draft) => draft.setTimer('event-time', 'a', 2),
      (draft) => draft.clearTimer('event-time', 'a'),
      (draft) => draft.setTimer('processing-time', 'a', 1),
    ]
    for (const change of changes) {
      const draft = draftOf(itemOf({ 'event-time': { a: 1 } }))
      step(draft, change)
      expect(draft.isChanged).toBe(true)
    }
  })

  test('is told apart from another by the timers that it changed, whatever the order and the way', () => {
    const textOf = (run: (draft: KeyDraft) => void): string => {
      const draft = draftOf(itemOf({ 'event-time': { a: 1 } }))
      draft.begin(epoch)
      run(draft)
      return draft.changesText()
    }
    const set = textOf((draft) => {
      draft.setTimer('event-time', 'a', 2)
      draft.setTimer('event-time', 'b', 3)
    })
    const otherWay = textOf((draft) => {
      draft.setTimer('event-time', 'b', 4)
      draft.clearTimer('event-time', 'a')
      draft.setTimer('event-time', 'b', 3)
      draft.setTimer('event-time', 'a', 2)
    })
    expect(otherWay).toBe(set)
    const backAgain = (draft: KeyDraft): void => {
      draft.setTimer('event-time', 'a', 2)
      draft.setTimer('event-time', 'a', 1)
    }
    expect(textOf(backAgain)).toBe('')
    const others = [
      textOf((draft) => draft.setTimer('event-time', 'a', 2)),
      textOf((draft) => draft.setTimer('event-time', 'a', 3)),
      textOf((draft) => draft.setTimer('processing-time', 'a', 2)),
      textOf((draft) => draft.clearTimer('event-time', 'a')),
      '',
      set,
    ]
    expect(new Set(others).size).toBe(others.length)
  })
})

describe('the item of the key', () => {
  test('holds the timers beside the values, and nothing where none is set', () => {
    const draft = draftOf()
    step(draft, () => {
      draft.setTimer('event-time', 'by-hour.close', -5)
      draft.setTimer('event-time', 'constructor', 7)
      draft.setTimer('processing-time', 'poll', nowMs)
    })
    const timers = { 'event-time': { 'by-hour.close': -5, constructor: 7 }, 'processing-time': { poll: nowMs } }
    expect(draft.commit(nowMs, 0).item).toEqual({ ...itemOf(timers), position: 1 })
    draft.committed()
    const reread = draftOf({ ...itemOf(timers), position: 1 })
    expect(reread.nextTimer('event-time')).toEqual({ name: 'by-hour.close', timeMs: -5 })
    expect(reread.timer('event-time', 'constructor')).toBe(7)
    expect(reread.timer('event-time', 'toString')).toBeUndefined()
    step(reread, () => {
      reread.clearTimer('event-time', 'by-hour.close')
      reread.clearTimer('event-time', 'constructor')
    })
    expect(reread.commit(nowMs, 0).item.own).toEqual({ timers: { 'processing-time': { poll: nowMs } } })
    step(reread, () => reread.clearTimer('processing-time', 'poll'))
    expect(reread.commit(nowMs, 0).item.own).toBeUndefined()
  })

  test('stays while a timer is set, whatever ttl its states have', () => {
    const ttl = { by: 'event-time' as const, after: milliseconds(5) }
    const draft = draftOf(undefined, new Map([['n', valueState<number>({ ttl })]]))
    step(draft, () => {
      draft.write('n', 1)
      draft.setTimer('processing-time', 'a', 1)
    })
    expect(draft.commit(nowMs, 0).item.expiresAtSeconds).toBeUndefined()
    step(draft, () => draft.clearTimer('processing-time', 'a'))
    expect(draft.commit(nowMs, 0).item.expiresAtSeconds).toBeGreaterThan(nowMs / 1_000)
  })

  test('says when its first timer is due as it was read or committed last, whatever steps did since', () => {
    const draft = draftOf(itemOf({ 'event-time': { a: 3, b: 5 } }))
    expect([draft.storedNextMs('event-time'), draft.storedNextMs('processing-time')]).toEqual([3, undefined])
    step(draft, () => {
      draft.clearTimer('event-time', 'a')
      draft.setTimer('processing-time', 'c', 9)
    })
    expect([draft.storedNextMs('event-time'), draft.storedNextMs('processing-time')]).toEqual([3, undefined])
    draft.commit(nowMs, 0)
    expect(draft.storedNextMs('event-time')).toBe(3)
    draft.committed()
    expect([draft.storedNextMs('event-time'), draft.storedNextMs('processing-time')]).toEqual([5, 9])
    expect(draftOf().storedNextMs('event-time')).toBeUndefined()
  })
})

describe('what is refused, by key and name, and leaves everything as it was', () => {
  test.each([0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('the time %p', (timeMs) => {
    const draft = draftOf(itemOf({ 'event-time': { idle: 1 } }))
    draft.begin(epoch)
    const error = thrownBy(() => draft.setTimer('event-time', 'idle', timeMs))
    expect(error).toEqual(terminal('unsupported-timer', /key "h1".*"idle".*whole milliseconds/))
    expect([draft.timer('event-time', 'idle'), draft.changesText()]).toEqual([1, ''])
  })

  test.each(['', '__proto__', '\ud800'])('the name %j, which the table could not hold', (name) => {
    const draft = draftOf()
    draft.begin(epoch)
    const error = thrownBy(() => draft.setTimer('event-time', name, 1))
    expect(error).toEqual(terminal('unsupported-timer', /key "h1"/))
    expect(draft.nextTimer('event-time')).toBeUndefined()
  })

  test('one timer too many, both domains together; one that is there may move, and one that is cleared makes room', () => {
    const draft = draftOf()
    draft.begin(epoch)
    for (let i = 0; i < mostTimers; i += 1) {
      draft.setTimer(i % 2 === 0 ? 'event-time' : 'processing-time', `by-hour.${i}`, i)
    }
    const error = thrownBy(() => draft.setTimer('event-time', 'sessions.close', 1))
    expect(error).toEqual(terminal('too-many-timers', /key "h1".*operator sessions .*"sessions.close".*1000 already/))
    draft.setTimer('event-time', 'by-hour.0', 5_000)
    draft.clearTimer('event-time', 'by-hour.2')
    draft.setTimer('event-time', 'sessions.close', 1)
    expect(draft.nextTimer('event-time')).toEqual({ name: 'sessions.close', timeMs: 1 })
    draft.rollback()
    expect(draft.nextTimer('event-time')).toBeUndefined()
  })
})
