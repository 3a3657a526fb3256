import fc from 'fast-check'
import { minutes } from '../../lib/core/duration.ts'
import { count, listState, operatorState, plan, Topology, text, tumbling, valueState } from '../../lib/index.ts'
import {
  compareLock,
  type KeyedStageLock,
  lockOf,
  type OperatorLock,
  type StateLock,
  sameLock,
  type TopologyLock,
} from '../../lib/plan/lock.ts'
import { lockText, parseLock } from '../../lib/plan/lock-file.ts'

const self = (line: string): string => line

describe('lockOf', () => {
  test('has what outlives a deployment: stages, slots, versions, operators, windows, states and sinks, all sorted', () => {
    const app = new Topology('app')
    const [out, late] = [app.sink<unknown>('out'), app.sink<string>('late')]
    const source = app.source('lines', text())
    const seen = operatorState({ initial: 0, add: (n, _: string) => n + 1 })
    const last = valueState<string>({ version: 2, upcast: { 1: String } })
    source
      .keyBy('by-line', self, { slots: 16, version: 2, upcast: { 1: String } })
      .process('last', { state: { seen, last }, step: (line) => [line] })
      .to(out)
    const windows = source
      .keyBy('by-end', (line) => line.slice(-1))
      .window(tumbling(minutes(5), { grace: minutes(1) }))
      .aggregate('per-end', { lines: count() }, { emit: 'final' })
    windows.results.to(out)
    windows.late.to(late)
    expect(lockOf(plan(app))).toEqual({
      sinks: { late: {}, out: {} },
      stages: {
        'by-end': {
          ...{ kind: 'keyed', slots: 64, valueVersion: 1 },
          operators: {
            'per-end': {
              ...{ kind: 'window', window: 'tumbling(300000 ms)' },
              states: { 'per-end': { kind: 'packed', version: 1 } },
            },
          },
        },
        'by-line': {
          ...{ kind: 'keyed', slots: 16, valueVersion: 2 },
          operators: {
            last: {
              kind: 'process',
              states: { 'last.last': { kind: 'value', version: 2 }, 'last.seen': { kind: 'operator', version: 1 } },
            },
          },
        },
        lines: { kind: 'source' },
      },
    })
  })

  test('says the same of one topology, in whatever order it is declared', () => {
    const declared = (names: readonly string[]) => {
      const app = new Topology('app')
      const source = app.source('lines', text())
      for (const name of names) source.to(app.sink<string>(name))
      return lockText(new Map([['app', { file: 'app.ts', ...lockOf(plan(app)) }]]))
    }
    expect(declared(['b', 'a'])).toBe(declared(['a', 'b']))
  })
})

describe('compareLock, over topologies', () => {
  function release(given: { readonly slots?: number; readonly states?: object; readonly operator?: string } = {}) {
    const { slots = 64, states = { last: valueState(), recent: listState({ atMost: 3 }) }, operator = 'totals' } = given
    const app = new Topology('app')
    app
      .source('lines', text())
      .keyBy('by-line', self, { slots })
      .process(operator, { state: { ...states }, step: () => [] })
    return lockOf(plan(app))
  }

  test.each<[string, Parameters<typeof release>[0], string, string]>([
    ['slots', { slots: 8 }, 'by-line', 'keyBy("by-line", ..., { slots: 64 })'],
    ['a removed state', { states: { last: valueState() } }, 'totals.recent', 'its values would be lost'],
    [
      'a renamed state',
      { states: { last: valueState(), newest: listState({ atMost: 3 }) } },
      'totals.recent',
      'renamed to "totals.newest"',
    ],
    [
      'a state of another kind',
      { states: { last: listState({ atMost: 1 }), recent: listState({ atMost: 3 }) } },
      'totals.last',
      'of the kind "list" instead of "value"',
    ],
    ['a renamed operator', { operator: 'sums' }, 'totals', 'its state (totals.last, totals.recent) would be lost'],
  ])('names %s, and says what to do', (_, changed, name, message) => {
    expect(compareLock(release(), release(changed))).toEqual([{ name, message: expect.stringContaining(message) }])
    expect(compareLock(release(), release())).toEqual([])
  })

  test('a TTL, the length of a list and a new state change nothing that is there', () => {
    const states = {
      last: valueState({ ttl: { by: 'event-time', after: minutes(1) } }),
      recent: listState({ atMost: 50 }),
      added: valueState(),
    }
    expect(compareLock(release(), release({ states }))).toEqual([])
  })

  test('a stage that is no more asks for a drain, and a new one of its kind is taken for a rename', () => {
    const named = (keyBy: string, sink: string) => {
      const app = new Topology('app')
      app
        .source('lines', text())
        .keyBy(keyBy, self)
        .reduce(`of-${keyBy}`, (a) => a, { emit: 'on-update' })
        .to(app.sink<string>(sink))
      return lockOf(plan(app))
    }
    const [stage, sink] = compareLock(named('by-line', 'out'), named('by-text', 'outputs'))
    expect(stage?.message).toContain('stage "by-line" is gone: its state (of-by-line)')
    expect(stage?.message).toContain('renamed to "by-text"')
    expect(stage?.message).toContain('`millrace drain`, then `millrace lock --accept by-line`')
    expect(sink?.message).toContain('sink "out" is gone')
    expect(sink?.message).toContain('`millrace drain`, then `millrace lock --accept out`')
  })
})

const names = fc.constantFrom('a', 'b', 'c', 'd', 'constructor')
const version = fc.integer({ min: 1, max: 5 })
const state: fc.Arbitrary<StateLock> = fc.record({ kind: fc.constantFrom('value', 'map', 'operator'), version })
const statesOf = (operator: string) =>
  fc
    .dictionary(names, state, { minKeys: 1, noNullPrototype: true })
    .map((states) => Object.fromEntries(Object.entries(states).map(([name, kept]) => [`${operator}.${name}`, kept])))
const dictionaryOf = <V>(prefix: string, of: (name: string) => fc.Arbitrary<V>) =>
  fc
    .uniqueArray(names, { minLength: 1 })
    .chain((keys) =>
      fc.tuple(...keys.map((key) => of(`${prefix}-${key}`).map((value) => [`${prefix}-${key}`, value] as const))),
    )
    .map((entries): Record<string, V> => Object.fromEntries(entries))
const operator = (name: string): fc.Arbitrary<OperatorLock> =>
  fc.oneof(
    fc.record({ kind: fc.constantFrom('process', 'reduce'), states: statesOf(name) }),
    fc.record({
      ...{ kind: fc.constant('window'), window: fc.constantFrom('tumbling(1 ms)', 'session(gap 1 ms)') },
      states: fc.constant({ [name]: { kind: 'packed', version: 1 } }),
    }),
  )
const keyed = (name: string): fc.Arbitrary<KeyedStageLock> =>
  fc.record({
    ...{ kind: fc.constant('keyed' as const), slots: fc.constantFrom(1, 64), valueVersion: version },
    operators: dictionaryOf(`${name}-operator`, operator),
  })
const topology: fc.Arbitrary<TopologyLock> = fc
  .record({
    sinks: dictionaryOf('sink', () => fc.constant({})),
    sources: dictionaryOf('source', () => fc.constant({ kind: 'source' as const })),
    keyed: dictionaryOf('by', keyed),
  })
  .map(({ sinks, sources, keyed }) => ({ sinks, stages: { ...sources, ...keyed } }))

/** A copy in which anything may be changed. */
type Draft = {
  sinks: Record<string, object>
  stages: Record<
    string,
    {
      kind: string
      slots: number
      valueVersion: number
      operators: Record<
        string,
        { kind: string; window?: string; states: Record<string, { kind: string; version: number }> }
      >
    }
  >
}
const draftOf = (lock: TopologyLock) => structuredClone(lock) as unknown as Draft
const asLock = (draft: Draft) => draft as unknown as TopologyLock

/** Something of the topology that was picked, and where it stands. */
function pickOf(draft: Draft, pick: number) {
  const at = <V>(all: Record<string, V>): [string, V] =>
    Object.entries(all)[pick % Object.keys(all).length] as [string, V]
  const keyedStages = Object.fromEntries(Object.entries(draft.stages).filter(([, { kind }]) => kind === 'keyed'))
  const [stageName, stage] = at(keyedStages)
  const [operatorName, found] = at(stage.operators)
  const [stateName, kept] = at(found.states)
  return { stageName, stage, operatorName, operator: found, stateName, state: kept }
}

/** Each changes one thing that may not be, and gives the name under which it is told; undefined where it has nothing to change. */
const incompatible: Record<string, (draft: Draft, pick: number) => string | undefined> = {
  'a removed sink': (draft, pick) => {
    const name = Object.keys(draft.sinks)[pick % Object.keys(draft.sinks).length] as string
    delete draft.sinks[name]
    return name
  },
  'a removed stage': (draft, pick) => {
    const name = Object.keys(draft.stages)[pick % Object.keys(draft.stages).length] as string
    delete draft.stages[name]
    return name
  },
  'other slots': (draft, pick) => {
    const { stage, stageName } = pickOf(draft, pick)
    stage.slots *= 2
    return stageName
  },
  'a lower version of travelling values': (draft, pick) => {
    const { stage, stageName } = pickOf(draft, pick)
    stage.valueVersion -= 1
    return stageName
  },
  'a stage of another kind': (draft, pick) => {
    const { stageName } = pickOf(draft, pick)
    draft.stages[stageName] = { kind: 'source' } as never
    return stageName
  },
  'a removed operator': (draft, pick) => {
    const { stage, operatorName } = pickOf(draft, pick)
    delete stage.operators[operatorName]
    return operatorName
  },
  'an operator of another kind': (draft, pick) => {
    const { operator: found, operatorName } = pickOf(draft, pick)
    found.kind = 'aggregate'
    return operatorName
  },
  'other windows': (draft, pick) => {
    const { operator: found, operatorName } = pickOf(draft, pick)
    if (found.window === undefined) return undefined
    found.window = 'tumbling(2 ms)'
    return operatorName
  },
  'a removed state': (draft, pick) => {
    const { operator: found, stateName } = pickOf(draft, pick)
    delete found.states[stateName]
    return stateName
  },
  'a state of another kind': (draft, pick) => {
    const { state: kept, stateName } = pickOf(draft, pick)
    kept.kind = 'list'
    return stateName
  },
  'a lower version of a state': (draft, pick) => {
    const { state: kept, stateName } = pickOf(draft, pick)
    kept.version -= 1
    return stateName
  },
}

describe('compareLock, over all changes', () => {
  test('whatever only adds passes: stages, operators, states, sinks and higher versions', () => {
    fc.assert(
      fc.property(topology, topology, fc.nat({ max: 3 }), (locked, more, raised) => {
        const draft = draftOf(locked)
        draft.sinks['sink-more'] = {}
        for (const [name, stage] of Object.entries(draftOf(more).stages)) draft.stages[`more-${name}`] = stage
        for (const stage of Object.values(draft.stages)) {
          if (stage.kind !== 'keyed') continue
          stage.valueVersion += raised
          stage.operators.added = { kind: 'process', states: { 'added.state': { kind: 'value', version: 1 } } }
          for (const found of Object.values(stage.operators)) {
            for (const kept of Object.values(found.states)) kept.version += raised
            found.states['more.state'] = { kind: 'map', version: 1 }
          }
        }
        expect(compareLock(locked, asLock(draft))).toEqual([])
        expect(sameLock(locked, asLock(draft))).toBe(false)
      }),
    )
  })

  test.each(Object.entries(incompatible))('%s is named, and nothing else is', (_, change) => {
    fc.assert(
      fc.property(topology, fc.nat(), (locked, pick) => {
        const draft = draftOf(locked)
        const name = change(draft, pick)
        fc.pre(name !== undefined)
        const problems = compareLock(locked, asLock(draft))
        expect(problems.map((problem) => problem.name)).toEqual([name])
        expect(problems[0]?.message).toContain(`"${name}"`)
        expect(problems[0]?.message).toMatch(/\b(keep|give|undo|lock --accept)\b/i)
      }),
    )
  })
})

describe('the lock file', () => {
  test('is one text for one lock, whatever the order, and reads as what was written', () => {
    fc.assert(
      fc.property(fc.dictionary(names, topology, { noNullPrototype: true }), (locks) => {
        const lock = new Map(Object.entries(locks).map(([name, one]) => [name, { file: `${name}.ts`, ...one }]))
        const text = lockText(lock)
        expect(lockText(new Map([...lock].toReversed()))).toBe(text)
        expect(parseLock(text, 'millrace.lock.json')).toEqual(lock)
        expect(lockText(parseLock(text, 'millrace.lock.json'))).toBe(text)
      }),
    )
  })

  test.each([
    ['what a merge left behind', '<<<<<<< HEAD\n{}', 'resolve what a merge left in it'],
    ['a newer format', '{"formatVersion":2,"topologies":{}}', 'use the release that wrote it'],
    ['no format', '{"topologies":{}}', 'is not what `millrace lock` writes'],
    ['a list', '[]', 'is not what `millrace lock` writes'],
    [
      'a stage without slots',
      '{"formatVersion":1,"topologies":{"a":{"file":"a.ts","sinks":{},"stages":{"s":{"kind":"keyed"}}}}}',
      'is not what `millrace lock` writes',
    ],
  ])('%s is refused by its name', (_, found, message) => {
    expect(() => parseLock(found, 'my.lock.json')).toThrow(message)
    expect(() => parseLock(found, 'my.lock.json')).toThrow('my.lock.json')
  })
})
