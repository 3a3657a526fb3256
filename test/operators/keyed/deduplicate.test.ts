import fc from 'fast-check'
import { milliseconds, seconds } from '../../../lib/core/duration.ts'
import { ConfigurationError, TerminalError } from '../../../lib/core/errors.ts'
import { type Deduplication, deduplicate } from '../../../lib/operators/keyed/deduplicate.ts'
import { OperatorWorld } from './operator-world.ts'

const ttl = { by: 'event-time', after: seconds(10) } as const
const identity = (value: string): string => value.slice(0, 2)

test('of each key the first value passes, until its TTL is over', () => {
  const world = new OperatorWorld(deduplicate<string>('once', { ttl }))
  world.step('a', 'a1', 0)
  world.step('a', 'a2', 9_999)
  world.step('b', 'b1', 9_999)
  world.step('a', 'a3', 10_000)
  expect(world.outputs).toEqual(['a1', 'b1', 'a3'])
})

test('with `by` the first of each identity of a key passes, and prefetch names it', () => {
  const world = new OperatorWorld(deduplicate<string>('once', { ttl, by: identity }))
  for (const value of ['p1x', 'p2x', 'p1y', 'p2y']) world.step('a', value)
  world.step('b', 'p1z')
  expect(world.outputs).toEqual(['p1x', 'p2x', 'p1z'])
  expect(world.loadedLate).toEqual([])
})

test('agrees with a list of what passed and when', () => {
  const anyValue = fc.record({
    key: fc.constantFrom('a', 'b'),
    value: fc.constantFrom('p1x', 'p1y', 'p2x'),
    timeMs: fc.nat({ max: 30 }),
  })
  fc.assert(
    fc.property(fc.array(anyValue), fc.boolean(), (values, byIdentity) => {
      const short = { by: 'event-time', after: milliseconds(10) } as const
      const options: Deduplication<string> = byIdentity ? { ttl: short, by: identity } : { ttl: short }
      const world = new OperatorWorld(deduplicate<string>('once', options))
      const passed = new Map<string, number>()
      const times = new Map<string, number>()
      for (const { key, value, timeMs } of values) {
        const nowMs = Math.max(timeMs, times.get(key) ?? 0)
        times.set(key, nowMs)
        const name = byIdentity ? `${key} ${identity(value)}` : key
        const seenMs = passed.get(name)
        const isNew = seenMs === undefined || nowMs >= seenMs + 10
        if (isNew) passed.set(name, nowMs)
        expect(world.step(key, value, timeMs)).toEqual(isNew ? [value] : [])
      }
    }),
  )
})

test('keeps one value, or entries where it has identities', () => {
  const kinds = (options: Deduplication<string>) =>
    [...deduplicate<string>('once', options).states].map(([name, { kind }]) => [name, kind])
  expect(kinds({ ttl })).toEqual([['once', 'value']])
  expect(kinds({ ttl, by: identity })).toEqual([['once', 'map']])
  expect(deduplicate<string>('once', { ttl })).toMatchObject({ kind: 'deduplicate', sides: [], emits: 'each' })
})

test('refuses to remember for ever, or for no time', () => {
  const declaring = (options: object) => () => deduplicate<string>('once', options as Deduplication<string>)
  expect(declaring({})).toThrow(ConfigurationError)
  expect(declaring({})).toThrow('deduplicate "once" has no ttl, so it would remember for ever: say for how long')
  expect(declaring({ ttl: { by: 'event-time', after: seconds(0) } })).toThrow('deduplicate "once": a ttl of 0 ms')
})

test.each<[string, unknown, string]>([
  ['a number', 7, 'the function `by` of deduplicate "once" gave a number, not a string'],
  ['null', null, 'gave null, not a string'],
  ['a promise', Promise.resolve('x'), 'the function of a `deduplicate "once"` step returned a promise'],
])('refuses %s as an identity', (_what, result, message) => {
  const world = new OperatorWorld(deduplicate<string>('once', { ttl, by: () => result as string }))
  expect(() => world.step('a', 'x')).toThrow(TerminalError)
  expect(() => world.step('a', 'x')).toThrow(message)
})
