/** Declarations of states: `tsc` is half of the test, and each `@ts-expect-error` fails it where there is no error. */
import { days, minutes, seconds } from '../../lib/core/duration.ts'
import {
  type AggregatingView,
  aggregatingState,
  type ListView,
  listState,
  type MapView,
  mapState,
  type OperatorView,
  operatorState,
  packedState,
  type ReducingView,
  reducingState,
  type StateDeclaration,
  type StatesOf,
  type ValueView,
  valueState,
} from '../../lib/state/states.ts'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const check = <_T extends true>(): void => undefined

interface Position {
  readonly lat: number
  readonly lon: number
}
interface Gate {
  readonly gate: string
  readonly terminal: string
}

const states = {
  position: valueState<Position>(),
  recent: listState<Position>({ atMost: 3 }),
  byDay: mapState<number>({ ttl: { by: 'event-time', after: days(30) } }),
  worst: reducingState((a: number, b: number) => Math.max(a, b)),
  mean: aggregatingState({
    init: () => ({ count: 0, sum: 0 }),
    add: ({ count, sum }, value: number) => ({ count: count + 1, sum: sum + value }),
    result: ({ count, sum }) => `${sum / count}`,
  }),
  packed: packedState<ReadonlySet<number>>({
    encode: (set) => [...set],
    decode: (stored) => new Set(stored as readonly number[]),
  }),
  seen: operatorState({ initial: 0, add: (seen, _position: Position, { eventTimeMs }) => Math.max(seen, eventTimeMs) }),
}

test('each declaration has the type of its view', () => {
  type Views = StatesOf<typeof states>
  check<Equal<Views['position'], ValueView<Position>>>()
  check<Equal<Views['recent'], ListView<Position>>>()
  check<Equal<Views['byDay'], MapView<number>>>()
  check<Equal<Views['worst'], ReducingView<number>>>()
  check<Equal<Views['mean'], AggregatingView<number, string>>>()
  check<Equal<Views['packed'], ValueView<ReadonlySet<number>>>>()
  check<Equal<Views['seen'], OperatorView<number>>>()
  check<Equal<ReturnType<Views['position']['get']>, Position | undefined>>()
})

test('states of any type are declarations', () => {
  const { seen, ...keyed } = states
  const declarations: Record<string, StateDeclaration> = keyed
  expect(Object.values(declarations).map(({ kind }) => kind)).toEqual([
    'value',
    'list',
    'map',
    'reducing',
    'aggregating',
    'packed',
  ])
  expect(seen).toMatchObject({ kind: 'operator', initial: 0 })
})

test('a later version has an upcaster for every version below it', () => {
  const second = valueState<Gate>({ version: 2, upcast: { 1: (old: { gate: string }) => ({ ...old, terminal: '?' }) } })
  expect(second).toMatchObject({ version: 2, upcast: { 1: expect.any(Function) } })
  const third = mapState<number>({
    version: 3,
    ttl: { by: 'processing-time', after: minutes(1), refreshedOn: 'read-and-write' },
    upcast: { 1: (old: string) => ({ count: Number(old) }), 2: (old: { count: number }) => old.count },
  })
  expect(third).toMatchObject({ version: 3, ttl: { after: { ms: 60_000 } } })
  expect(valueState<Gate>()).toMatchObject({ version: 1, ttl: undefined })
  expect(valueState<Gate>({ version: 1 })).toMatchObject({ version: 1 })
})

test('a missing upcaster is an error of types, and one of configuration', () => {
  // @ts-expect-error version 2 has no upcasters
  expect(() => valueState<Gate>({ version: 2 })).toThrow('version 2 has no upcaster for version 1')
  // @ts-expect-error version 2 has no upcaster for version 1
  expect(() => valueState<Gate>({ version: 2, upcast: {} })).toThrow('upcast: { 1: (old) => ... }')
  // @ts-expect-error version 3 has no upcaster for version 2
  expect(() => listState<number>({ atMost: 2, version: 3, upcast: { 1: () => [] } })).toThrow(
    'no upcaster for version 2',
  )
  // @ts-expect-error version 3 has no upcaster for version 1
  expect(() => reducingState<number>(Math.max, { version: 3, upcast: { 2: () => 1 } })).toThrow('for version 1')
  const spec = { init: () => 0, add: (a: number, b: number) => a + b, result: String }
  // @ts-expect-error version 2 has no upcasters
  expect(() => aggregatingState(spec, { version: 2 })).toThrow('aggregatingState: version 2')
  // @ts-expect-error the last upcaster makes what the state keeps
  valueState<Gate>({ version: 2, upcast: { 1: () => ({ gate: 'B1' }) } })
  // @ts-expect-error there is nothing below version 1
  valueState<Gate>({ version: 1, upcast: { 1: () => ({ gate: '', terminal: '' }) } })
})

test.each([0, -1, 1.5, 33, Number.NaN])('%p is no version', (version) => {
  expect(() => valueState({ version: version as 1 })).toThrow('is no schema version: give an integer from 1 to 32')
})

test.each([
  [{ by: 'wall-clock', after: seconds(1) }, "say 'event-time' or 'processing-time'"],
  [{ by: 'event-time', after: seconds(0) }, 'a ttl of 0 ms'],
  [{ by: 'event-time', after: 5 }, 'a ttl of 5: give a length'],
  [{ by: 'event-time' }, 'a ttl of undefined: give a length'],
  [{ by: 'event-time', after: { ms: Number.POSITIVE_INFINITY } }, 'a ttl of Infinity ms'],
  [{ by: 'event-time', after: seconds(1), refreshedOn: 'read' }, "say 'write' or 'read-and-write'"],
])('the ttl %j is refused', (ttl, message) => {
  expect(() => mapState({ ttl: ttl as never })).toThrow(message)
})

test.each([0, -1, 2.5, Number.POSITIVE_INFINITY, undefined])('a list of %p elements is refused', (atMost) => {
  expect(() => listState({ atMost: atMost as number })).toThrow('an integer above 0')
})

test('an operator state begins with what the table could return', () => {
  expect(() => operatorState({ initial: new Map(), add: (seen) => seen })).toThrow('operatorState: initial is a Map')
})

test('what an operator state begins with cannot be changed, neither by a step nor through what was declared', () => {
  const declared = { byHotel: { h1: [1] } }
  const { initial } = operatorState({ initial: declared, add: (seen) => seen })
  declared.byHotel.h1.push(2)
  expect(initial).toEqual({ byHotel: { h1: [1] } })
  expect(() => initial.byHotel.h1.push(3)).toThrow(TypeError)
})

test('a packed state has upcasters of what is in the table', () => {
  const packing = { encode: (n: number) => [n], decode: (stored: unknown) => (stored as [number])[0] }
  expect(packedState<number>({ ...packing, version: 2, upcast: { 1: (old: number) => [old] } })).toMatchObject({
    version: 2,
    ttl: undefined,
  })
  // @ts-expect-error version 2 has no upcasters
  expect(() => packedState<number>({ ...packing, version: 2 })).toThrow('packedState: version 2')
  // @ts-expect-error an upcaster makes what the table holds
  packedState<number>({ ...packing, version: 2, upcast: { 1: () => new Date() } })
})
