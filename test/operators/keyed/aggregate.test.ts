import { seconds } from '../../../lib/core/duration.ts'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import { type AggregateOptions, aggregate } from '../../../lib/operators/keyed/aggregate.ts'
import { OperatorWorld } from './operator-world.ts'

interface Mean {
  readonly count: number
  readonly sum: number
}

const mean = {
  init: (): Mean => ({ count: 0, sum: 0 }),
  add: ({ count, sum }: Mean, value: number): Mean => ({ count: count + 1, sum: sum + value }),
  result: ({ count, sum }: Mean) => sum / count,
}
const meanOf = (options: AggregateOptions<Mean>) => aggregate<number, Mean, number>('mean', mean, options)

test('hands on the result after each value, per key', () => {
  const world = new OperatorWorld(meanOf({ emit: 'on-update' }))
  expect(world.step('a', 2)).toEqual([2])
  expect(world.step('b', 8)).toEqual([8])
  expect(world.step('a', 4)).toEqual([3])
})

test('keeps the accumulator under its own name, and says whether only the last of a batch counts', () => {
  const operator = meanOf({ emit: 'per-batch' })
  expect([...operator.states].map(([name, { kind }]) => [name, kind])).toEqual([['mean', 'aggregating']])
  expect(operator).toMatchObject({ kind: 'aggregate', name: 'mean', sides: [], emits: 'latest' })
  expect(meanOf({ emit: 'on-update' }).emits).toBe('each')
  const world = new OperatorWorld(operator)
  world.step('a', 2)
  world.step('a', 4)
  expect(world.draft('a').commit(0, 0).item.states).toEqual({ mean: { count: 2, sum: 6 } })
})

test('begins anew after its TTL', () => {
  const world = new OperatorWorld(meanOf({ emit: 'on-update', ttl: { by: 'event-time', after: seconds(10) } }))
  const means = [world.step('a', 2, 0), world.step('a', 4, 9_999), world.step('a', 9, 19_999)]
  expect(means).toEqual([[2], [3], [9]])
})

test.each<[string, unknown, string]>([
  ['no emit', {}, `aggregate "mean" says emit: undefined: say 'on-update'`],
  ['another emit', { emit: 'final' }, 'aggregate "mean" says emit: "final"'],
  [
    'a ttl of no length',
    { emit: 'on-update', ttl: { by: 'event-time', after: seconds(0) } },
    'aggregate "mean": a ttl',
  ],
  [
    'a missing upcaster',
    { emit: 'on-update', version: 2 },
    'aggregate "mean": version 2 has no upcaster for version 1',
  ],
])('refuses %s', (_what, options, message) => {
  expect(() => meanOf(options as AggregateOptions<Mean>)).toThrow(ConfigurationError)
  expect(() => meanOf(options as AggregateOptions<Mean>)).toThrow(message)
})

test.each(['add', 'result'])('refuses a promise of its function `%s`, and keeps nothing of it', (name) => {
  const broken = { ...mean, [name]: async () => 7 }
  const world = new OperatorWorld(aggregate<number, Mean, number>('mean', broken, { emit: 'on-update' }))
  expect(() => world.step('a', 2)).toThrow('the function of a `aggregate "mean"` step returned a promise')
  expect(world.outputs).toEqual([])
  expect(world.draft('a').isChanged).toBe(false)
})
