import * as fc from 'fast-check'
import { exactSpan } from '../../lib/time/time-span.ts'

test('a length of time is said in the units that people use', () => {
  const shown = [0, 1, 1_500, 300_000, 5_400_000, 90_061_001].map(exactSpan)
  expect(shown).toEqual(['0 s', '1 ms', '1 s 500 ms', '5 min', '1 h 30 min', '1 d 1 h 1 min 1 s 1 ms'])
})

test('nothing of it is left out or rounded', () => {
  const msOf = { d: 86_400_000, h: 3_600_000, min: 60_000, s: 1_000, ms: 1 } as Readonly<Record<string, number>>
  fc.assert(
    fc.property(fc.nat({ max: 4_000_000_000 }), (ms) => {
      const parts = exactSpan(ms).matchAll(/(\d+) ([a-z]+)/g)
      const sum = [...parts].reduce((all, [, count, unit = '']) => all + Number(count) * (msOf[unit] ?? Number.NaN), 0)
      expect(sum).toBe(ms)
    }),
  )
})
