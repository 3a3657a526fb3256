/** The rules of suspect.ts. */
import * as fc from 'fast-check'
import type { Suspect } from '../../lib/runtime/progress/progress.ts'
import { clearedThrough, killerAt, lastToStep, mayKill, nextSuspect, verdictOf } from '../../lib/runtime/suspect.ts'

test('what arrived a minute ago is not suspected (1)', () => {
  expect([mayKill(0, 60_000), mayKill(0, 60_001)]).toEqual([false, true])
})

test('numbers that attempts did not come back from as often as is allowed are halved with each that does not (2)', () => {
  const numbers = { from: 1, to: 8 }
  const told = (known: Suspect | undefined) => nextSuspect(known, numbers, 2)
  expect(told(undefined)).toEqual({ suspect: { from: 1, to: 8, attempts: 1 } })
  expect(told({ from: 1, to: 8, attempts: 1 })).toEqual({ suspect: { from: 1, to: 8, attempts: 2 } })
  // They hold one: the first half is tried.
  expect(told({ from: 1, to: 8, attempts: 2 })).toEqual({ suspect: { from: 1, to: 8, attempts: 3 } })
  expect(told({ from: 1, to: 8, attempts: 3 })).toEqual({ suspect: { from: 1, to: 4, attempts: 3 } })
  expect([2, 3].map((attempts) => lastToStep({ from: 1, to: 8, attempts }, 2))).toEqual([8, 4])
  // A single number counts its own attempts, of which that at the half was the first.
  expect(told({ from: 1, to: 2, attempts: 3 })).toEqual({ suspect: { from: 1, to: 1, attempts: 2 } })
  expect(told({ from: 1, to: 1, attempts: 2 })).toEqual({ killer: 1 })
  // What is done, or cut otherwise, begins anew.
  expect(told({ from: 0, to: 8, attempts: 2 })).toEqual({ suspect: { from: 1, to: 8, attempts: 1 } })
  expect(told({ from: 1, to: 9, attempts: 2 })).toEqual({ suspect: { from: 1, to: 8, attempts: 1 } })
})

test('where the first half did not kill, the second does, and a single number is still tried as often as is allowed (2)', () => {
  const tried = { from: 1, to: 8, attempts: 3 }
  expect(clearedThrough(tried, 4, 30, 2)).toEqual({ from: 5, to: 8, attempts: 2 })
  expect(clearedThrough(tried, 7, 30, 2)).toEqual({ from: 8, to: 8, attempts: 0 })
})

test('numbers that were cleared are not suspected again (4)', () => {
  const numbers = { from: 1, to: 8 }
  const noted = { ...numbers, attempts: 1 }
  expect(nextSuspect(clearedThrough(noted, 4, 8, 2), numbers, 2)).toEqual({ suspect: { from: 5, to: 8, attempts: 1 } })
  expect(nextSuspect(clearedThrough(noted, 8, 8, 2), numbers, 2)).toBeUndefined()
})

/** Steps the numbers up to `last` as attempts do that die at `killers`: who was given up, and how many died. */
function searched(killers: readonly number[], last: number, mostAttempts: number) {
  const found: number[] = []
  let [done, deaths, known] = [0, 0, undefined as Suspect | undefined]
  let failing: ReturnType<typeof killerAt> | undefined
  for (let attempts = 0; done < last; attempts++) {
    if (attempts === 1_000) throw new Error('the search does not end')
    const next = nextSuspect(known, { from: done + 1, to: last }, mostAttempts)
    if (next === undefined) throw new Error('nothing was cleared')
    if ('killer' in next) failing = killerAt(next.killer, mostAttempts)
    known = 'killer' in next ? undefined : next.suspect
    const to = known === undefined ? last : lastToStep(known, mostAttempts)
    const steps = Array.from({ length: to - done }, (_, i) => done + 1 + i)
    const isUnseen = (n: number) => verdictOf(failing, n, mostAttempts) === 'give-up-unseen'
    if (steps.some((n) => killers.includes(n) && !isUnseen(n))) {
      deaths++
      continue
    }
    found.push(...steps.filter(isUnseen))
    done = to
    known = known && clearedThrough(known, to, last, mostAttempts)
  }
  return { found, deaths }
}

test('whichever numbers kill, each is found in turn, and none other', () => {
  const killers = fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { maxLength: 4 })
  fc.assert(
    fc.property(killers, fc.integer({ min: 1, max: 3 }), (numbers, mostAttempts) => {
      const { found } = searched(numbers, 40, mostAttempts)
      expect(found).toEqual(numbers.toSorted((a, b) => a - b))
    }),
  )
})

test('a killer costs its attempts twice, and one for each time that its frame can be halved', () => {
  const deaths = Array.from({ length: 1_000 }, (_, i) => searched([i + 1], 1_000, 3).deaths)
  expect(Math.max(...deaths)).toBeLessThanOrEqual(3 + 10 + 3)
})

test('what somebody skipped is given up at the next attempt, however often it may fail', () => {
  expect(verdictOf({ number: 4, attempts: 1, skipped: true }, 4, 1_000)).toBe('give-up')
  expect(verdictOf({ number: 4, attempts: 9, skipped: true }, 4, 3)).toBe('give-up')
  expect(verdictOf({ number: 4, attempts: 1, skipped: true }, 5, 3)).toBe('step')
})

test('a failing record is stepped until its attempts are used up, a killer never (3)', () => {
  expect(verdictOf(undefined, 4, 3)).toBe('step')
  expect([1, 2, 3, 4].map((attempts) => verdictOf({ number: 4, attempts }, 4, 3))).toEqual([
    'step',
    'step',
    'give-up',
    'give-up-unseen',
  ])
  expect(verdictOf({ number: 4, attempts: 4 }, 5, 3)).toBe('step')
  expect(verdictOf(killerAt(4, 3), 4, 3)).toBe('give-up-unseen')
})
