import { ConfigurationError, TerminalError } from '../../../lib/core/errors.ts'
import type { StateDeclarations } from '../../../lib/operators/keyed/declarations.ts'
import { type Process, process } from '../../../lib/operators/keyed/process.ts'
import { type SideDeclarations, sideOutput } from '../../../lib/operators/keyed/side-output.ts'
import { eventTimer } from '../../../lib/operators/keyed/timers.ts'
import type { Key } from '../../../lib/state/key-encoding.ts'
import { listState, mapState, operatorState, valueState } from '../../../lib/state/states.ts'
import { OperatorWorld } from './operator-world.ts'

/** With the types that a stream would infer. */
const processOf = <D extends StateDeclarations, O = never, S extends SideDeclarations = Record<never, never>>(
  declared: Process<string, O, Key, D, S>,
) => process<string, O, Key, D, S>('totals', declared)

const last = { last: valueState<string>() }

test('a step reads and writes the states of its key, and of no other', () => {
  const world = new OperatorWorld(
    processOf({
      state: { ...last, all: listState<string>({ atMost: 2 }) },
      step: (value, { key, state }) => {
        const before = state.last.get()
        state.last.set(value)
        state.all.add(value)
        return [{ key, before, all: state.all.get() }]
      },
    }),
  )
  expect(world.step('a', 'x')).toEqual([{ key: 'a', before: undefined, all: ['x'] }])
  expect(world.step('a', 'y')).toEqual([{ key: 'a', before: 'x', all: ['x', 'y'] }])
  expect(world.step('b', 'z')).toEqual([{ key: 'b', before: undefined, all: ['z'] }])
  expect(world.step(['a', 'b'], 'z')).toEqual([{ key: ['a', 'b'], before: undefined, all: ['z'] }])
})

test('its states are stored under its name; those of the slot are apart', () => {
  const seen = operatorState({ initial: 0, add: (n, _: string) => n + 1 })
  const operator = processOf({ state: { ...last, seen }, step: (_value, { state }) => [state.seen.get()] })
  expect([...operator.states.keys()]).toEqual(['totals.last'])
  expect([...operator.operatorStates]).toEqual([['totals.seen', seen]])
  expect(operator).toMatchObject({ kind: 'process', name: 'totals', sides: [], emits: 'each' })
  const world = new OperatorWorld(operator)
  world.slot.set('totals.seen', 7)
  expect(world.step('a', 'x')).toEqual([7])
})

test('outputs come in the order in which an array, a generator or any iterable gives them; nothing is none', () => {
  const step = (value: string): (Iterable<string> & object) | undefined => {
    if (value === 'array') return ['a', 'b']
    if (value === 'set') return new Set(['c', 'd'])
    return value === 'none' ? undefined : lettersOf(value)
  }
  const world = new OperatorWorld(processOf({ state: last, step }))
  for (const value of ['array', 'set', 'none', 'ef']) world.step('a', value)
  expect(world.outputs).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
})

function* lettersOf(word: string): Iterable<string> & object {
  yield* word
}

test('a generator that is written to has done so when its last output is handed on', () => {
  const world = new OperatorWorld(
    processOf({
      state: last,
      *step(value, { state }) {
        yield state.last.get()
        state.last.set(value)
        yield state.last.get()
      },
    }),
  )
  expect(world.step('a', 'x')).toEqual([undefined, 'x'])
})

describe('side outputs', () => {
  const withSides = (step: Parameters<typeof odd>[0]) => new OperatorWorld(odd(step))
  const odd = (
    step: Process<string, string, Key, typeof last, { odd: ReturnType<typeof sideOutput<string>> }>['step'],
  ) => processOf({ state: last, sides: { odd: sideOutput<string>() }, step })

  test('are handed on after the outputs, in their order', () => {
    const world = withSides((value, { sides }) => {
      sides.odd.emit(`${value}1`)
      sides.odd.emit(`${value}2`)
      return [value]
    })
    world.step('a', 'x')
    world.step('a', 'y')
    expect(world.handedOn).toEqual([
      ['out', 'x'],
      ['odd', 'x1'],
      ['odd', 'x2'],
      ['out', 'y'],
      ['odd', 'y1'],
      ['odd', 'y2'],
    ])
  })

  test('of a step that threw are forgotten', () => {
    const world = withSides((value, { sides }) => {
      sides.odd.emit(value)
      if (value === 'bad') throw new Error('bad')
    })
    expect(() => world.step('a', 'bad')).toThrow('bad')
    world.step('a', 'good')
    expect(world.handedOn).toEqual([['odd', 'good']])
  })

  test('refuse a promise', () => {
    const world = withSides((value, { sides }) => sides.odd.emit(Promise.resolve(value) as unknown as string))
    expect(() => world.step('a', 'x')).toThrow('the function of a `process "totals"` step returned a promise')
    expect(world.handedOn).toEqual([])
  })
})

describe('map entries', () => {
  const counting = (prefetch?: (value: string) => { byDay?: string[] }) =>
    new OperatorWorld(
      processOf({
        state: { byDay: mapState<number>() },
        ...(prefetch && { prefetch }),
        step: (day, { state }) => {
          const count = (state.byDay.get(day) ?? 0) + 1
          state.byDay.set(day, count)
          return [`${day}${count}`]
        },
      }),
    )

  test('that prefetch names are there when the step runs', () => {
    const world = counting((day) => ({ byDay: [day] }))
    expect([...world.step('a', 'mon'), ...world.step('a', 'mon')]).toEqual(['mon1', 'mon2'])
    expect(world.loadedLate).toEqual([])
  })

  test('that it does not name are loaded, and the step runs again with nothing left of the first run', () => {
    const world = counting((day) => (day === 'mon' ? { byDay: ['mon'] } : {}))
    for (const day of ['mon', 'tue', 'tue']) world.step('a', day)
    expect(world.outputs).toEqual(['mon1', 'tue1', 'tue2'])
    expect(world.loadedLate).toEqual(['tue'])
  })

  test.each<[string, object, string]>([
    ['a state that is none', { toString: ['x'] }, 'names "toString", which is no map state of it'],
    ['text', { byDay: 'mon' }, 'gave text for "byDay": give a list of names, such as [day]'],
    ['a name that is no text', { byDay: [7] }, 'names an entry of "byDay" by a number: names are text'],
    ['a promise', Promise.resolve({}), 'returned a promise'],
  ])('%s is refused', (_what, prefetched, message) => {
    const world = counting(() => prefetched)
    expect(() => world.step('a', 'x')).toThrow(TerminalError)
    expect(() => world.step('a', 'x')).toThrow(message)
  })
})

describe('what is refused when a record is stepped', () => {
  const returning = (result: unknown) => new OperatorWorld(processOf({ state: last, step: () => result as string[] }))

  test.each<[string, unknown, string]>([
    ['a promise', Promise.resolve(['x']), 'the function of a `process "totals"` step returned a promise'],
    ['a promise among the outputs', [Promise.resolve('x')], 'returned a promise, but steps are synchronous'],
    ['text', 'abc', 'the function of process "totals" returned a string that is no list of outputs'],
    ['a number', 7, 'returned a number that is no list of outputs: return an array'],
    ['null', null, 'returned null that is no list of outputs'],
    ['an asynchronous generator', (async function* () {})(), 'returned an object that is no list of outputs'],
  ])('%s', (_what, result, message) => {
    expect(() => returning(result).step('a', 'x')).toThrow(TerminalError)
    expect(() => returning(result).step('a', 'x')).toThrow(message)
  })

  test('a step that throws leaves its state as it was', () => {
    const world = new OperatorWorld(
      processOf({
        state: last,
        step: (value, { state }) => {
          const before = state.last.get()
          state.last.set(value)
          if (value === 'bad') throw new Error('bad')
          return [before]
        },
      }),
    )
    world.step('a', 'x')
    expect(() => world.step('a', 'bad')).toThrow('bad')
    expect(world.step('a', 'y')).toEqual(['x'])
  })
})

describe('what is refused when it is declared', () => {
  const declaring = (state: object, sides: object = {}) =>
    processOf({ state: state as typeof last, sides: sides as Record<never, never>, step: () => [] })

  test.each<[string, object, string]>([
    ['no state', {}, 'process "totals" declares no state: give it one, such as'],
    ['no state, and nothing that waits', {}, 'state: { last: valueState() }, or use flatMap, which needs none.'],
    ['a state that is none', { last: 7 }, 'the state "last" of process "totals" is none: declare it with valueState()'],
    ['a state that is missing', { last: undefined }, 'the state "last" of process "totals" is none'],
    ['an empty name', { '': valueState() }, '"" cannot name a state of process "totals": use letters and digits'],
    ['a name with a separator', { 'a.b': valueState() }, '"a.b" cannot name a state'],
    ['a name that is a number', { '7': valueState() }, '"7" cannot name a state'],
    ['a name that is too long', { ['a'.repeat(65)]: valueState() }, 'at most 64 of them'],
  ])('%s', (_what, state, message) => {
    expect(() => declaring(state)).toThrow(ConfigurationError)
    expect(() => declaring(state)).toThrow(message)
  })

  test('no state, where timers are: flatMap has none', () => {
    const waiting = { state: {}, timers: { idle: eventTimer() }, step: () => [], onTimer: { idle: () => [] } }
    const make = () => process('totals', waiting as never)
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(
      'give it one, such as state: { last: valueState() }, for what a timer is to find when it fires.',
    )
  })

  test.each<[string, object, string]>([
    ['a side output that is none', { odd: {} }, 'the side output "odd" of process "totals" is none: declare it with'],
    ['a bad name', { 'a b': sideOutput() }, '"a b" cannot name a side output of process "totals"'],
  ])('%s', (_what, sides, message) => {
    expect(() => declaring(last, sides)).toThrow(ConfigurationError)
    expect(() => declaring(last, sides)).toThrow(message)
  })

  test('names that every object has are names like any other', () => {
    const world = new OperatorWorld(
      processOf({
        state: { constructor: valueState<string>(), toString: valueState<string>() },
        step: (value, { state }) => {
          const before = [state.constructor.get(), state.toString.get()]
          state.constructor.set(value)
          return [before]
        },
      }),
    )
    expect([...world.step('a', 'x'), ...world.step('a', 'y')]).toEqual([
      [undefined, undefined],
      ['x', undefined],
    ])
  })
})
