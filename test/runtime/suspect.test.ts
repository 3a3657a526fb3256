/** The rules of suspect.ts. */
import * as fc from 'fast-check'
import type { Suspect } from '../../lib/runtime/progress/progress.ts'
import { clearedThrough, killerAt, mayKill, nextSuspect, verdictOf } from '../../lib/runtime/suspect.ts'

test('what arrived a minute ago is not suspected (1)', () => {
  expect([mayKill(0, 60_000), mayKill(0, 60_001)]).toEqual([false, true])
})

test('numbers are halved when an attempt finds them unfinished as often as is allowed (2)', () => {
  const numbers = { from: 1, to: 8 }
  const told = (known: Suspect | undefined) => nextSuspect(known, numbers, 2)
  expect(told(undefined)).toEqual({ suspect: { from: 1, to: 8, attempts: 1 } })
  expect(told({ from: 1, to: 8, attempts: 1 })).toEqual({ suspect: { from: 1, to: 8, attempts: 2 } })
  expect(told({ from: 1, to: 8, attempts: 2 })).toEqual({ suspect: { from: 1, to: 4, attempts: 1 } })
  expect(told({ from: 1, to: 2, attempts: 2 })).toEqual({ suspect: { from: 1, to: 1, attempts: 1 } })
  expect(told({ from: 1, to: 1, attempts: 2 })).toEqual({ killer: 1 })
  // What is done, or cut otherwise, begins anew.
  expect(told({ from: 0, to: 8, attempts: 2 })).toEqual({ suspect: { from: 1, to: 8, attempts: 1 } })
  expect(told({ from: 1, to: 9, attempts: 2 })).toEqual({ suspect: { from: 1, to: 8, attempts: 1 } })
})

test('numbers that were cleared are not suspected again (4)', () => {
  const numbers = { from: 1, to: 8 }
  expect(nextSuspect(clearedThrough(4, 8), numbers, 2)).toEqual({ suspect: { from: 5, to: 8, attempts: 1 } })
  expect(nextSuspect(clearedThrough(8, 8), numbers, 2)).toBeUndefined()
})

test('whichever numbers kill, each is found in turn, and none other', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { maxLength: 4 }),
      fc.integer({ min: 40, max: 40 }),
      fc.integer({ min: 1, max: 3 }),
      (killers, last, mostAttempts) => {
        const found: number[] = []
        let [done, known] = [0, undefined as Suspect | undefined]
        let failing: ReturnType<typeof killerAt> | undefined
        for (let attempts = 0; done < last; attempts++) {
          expect(attempts).toBeLessThan(1_000)
          const next = nextSuspect(known, { from: done + 1, to: last }, mostAttempts)
          if (next === undefined) throw new Error('nothing was cleared')
          if ('killer' in next) failing = killerAt(next.killer, mostAttempts)
          known = 'killer' in next ? undefined : next.suspect
          const to = 'killer' in next ? last : next.suspect.to
          const steps = Array.from({ length: to - done }, (_, i) => done + 1 + i)
          if (steps.some((n) => killers.includes(n) && verdictOf(failing, n, mostAttempts) !== 'give-up-unseen'))
            continue
          found.push(...steps.filter((n) => verdictOf(failing, n, mostAttempts) === 'give-up-unseen'))
          done = to
          known = undefined
        }
        expect(found).toEqual(killers.toSorted((a, b) => a - b))
      },
    ),
  )
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
