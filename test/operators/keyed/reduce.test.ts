import fc from 'fast-check'
import { seconds } from '../../../lib/core/duration.ts'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import type { AggregateOptions } from '../../../lib/operators/keyed/aggregate.ts'
import { reduce } from '../../../lib/operators/keyed/reduce.ts'
import { OperatorWorld } from './operator-world.ts'

const joined = (options: AggregateOptions<string>) => reduce<string>('joined', (a, b) => a + b, options)

test('hands on the first value as it is, then what the values so far come to, per key', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.string({ minLength: 1 }))), (values) => {
      const world = new OperatorWorld(joined({ emit: 'on-update' }))
      const sofar: Record<string, string> = { a: '', b: '' }
      for (const [key, value] of values) {
        sofar[key] += value
        expect(world.step(key, value)).toEqual([sofar[key]])
      }
    }),
  )
})

test('keeps its value under its own name, and says whether only the last of a batch counts', () => {
  const operator = joined({ emit: 'per-batch' })
  expect([...operator.states].map(([name, { kind }]) => [name, kind])).toEqual([['joined', 'reducing']])
  expect(operator).toMatchObject({ kind: 'reduce', name: 'joined', sides: [], emits: 'latest' })
})

test('begins anew after its TTL', () => {
  const world = new OperatorWorld(joined({ emit: 'on-update', ttl: { by: 'processing-time', after: seconds(1) } }))
  expect([world.step('a', 'x', 0), world.step('a', 'y', 999), world.step('a', 'z', 1_999)]).toEqual([
    ['x'],
    ['xy'],
    ['z'],
  ])
})

test('refuses what has no meaning, by its name', () => {
  expect(() => joined({} as AggregateOptions<string>)).toThrow(ConfigurationError)
  expect(() => joined({} as AggregateOptions<string>)).toThrow('reduce "joined" says emit: undefined')
  expect(() => joined({ emit: 'on-update', ttl: { by: 'event-time', after: seconds(0) } })).toThrow(
    'reduce "joined": a ttl of 0 ms',
  )
})

test('refuses a promise', () => {
  const world = new OperatorWorld(reduce<number>('later', (async () => 7) as never, { emit: 'on-update' }))
  world.step('a', 1)
  expect(() => world.step('a', 2)).toThrow('the function of a `reduce "later"` step returned a promise')
})
