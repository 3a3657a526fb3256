/** The rules of latest-only.ts. */
import * as fc from 'fast-check'
import { LatestOnly } from '../../lib/runtime/latest-only.ts'

const kept = (latest: LatestOnly, end: number) => {
  const keeps = latest.take()
  return Array.from({ length: end }, (_, place) => place).filter((place) => keeps?.(place) ?? true)
}

test('a later output replaces all of an earlier one of its key (1)', () => {
  const latest = new LatestOnly()
  for (const place of [0, 1]) latest.note(place, 'sum', 1)
  latest.settle(0, 2, 'a', new Map([['sum', 1]]))
  latest.note(2, 'sum', 1)
  latest.settle(2, 3, 'b', new Map([['sum', 1]]))
  latest.note(3, 'sum', 1)
  latest.settle(3, 4, 'a', new Map([['sum', 1]]))
  expect(kept(latest, 4)).toEqual([2, 3])
})

test('one of which nothing reaches the lane replaces the earlier one all the same (2)', () => {
  const latest = new LatestOnly()
  latest.note(0, 'sum', 1)
  latest.settle(0, 1, 'a', new Map([['sum', 1]]))
  latest.settle(1, 1, 'a', new Map([['sum', 1]]))
  expect(kept(latest, 1)).toEqual([])
})

test('a step that is taken back replaces nothing (3)', () => {
  const latest = new LatestOnly()
  latest.note(0, 'sum', 1)
  latest.settle(0, 1, 'a', new Map([['sum', 1]]))
  latest.note(1, 'sum', 1)
  latest.rewind(1)
  expect(kept(latest, 1)).toEqual([0])
})

test('any run of steps keeps, per operator and key, what comes of the last output alone', () => {
  const step = fc.record({
    key: fc.constantFrom('a', 'b'),
    isTakenBack: fc.boolean(),
    outputs: fc.array(fc.record({ operator: fc.constantFrom('x', 'y', undefined), items: fc.nat({ max: 2 }) }), {
      maxLength: 4,
    }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const latest = new LatestOnly()
      let items: { readonly owner: string | undefined; readonly output: object }[] = []
      const last = new Map<string, object>()
      for (const { key, isTakenBack, outputs } of steps) {
        const mark = items.length
        const emissions = new Map<string, number>()
        const lastOfStep = new Map<string, object>()
        for (const output of outputs) {
          const { operator } = output
          if (operator) emissions.set(operator, (emissions.get(operator) ?? 0) + 1)
          const owner = operator && `${operator} ${key}`
          if (owner) lastOfStep.set(owner, output)
          for (let i = 0; i < output.items; i++) {
            if (operator) latest.note(items.length, operator, emissions.get(operator) ?? 0)
            items.push({ owner, output })
          }
        }
        if (isTakenBack) {
          items = items.slice(0, mark)
          latest.rewind(mark)
        } else {
          latest.settle(mark, items.length, key, emissions)
          for (const [owner, output] of lastOfStep) last.set(owner, output)
        }
      }
      const expected = items.flatMap(({ owner, output }, i) =>
        owner === undefined || last.get(owner) === output ? [i] : [],
      )
      expect(kept(latest, items.length)).toEqual(expected)
    }),
  )
})
