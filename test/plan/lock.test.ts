import fc from 'fast-check'
import { minutes } from '../../lib/core/duration.ts'
import {
  approximateDistinct,
  collect,
  count,
  custom,
  distinct,
  first,
  last,
  listState,
  max,
  mean,
  min,
  operatorState,
  plan,
  quantile,
  sum,
  Topology,
  text,
  topN,
  tumbling,
  valueState,
} from '../../lib/index.ts'
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
              ...{ kind: 'window', window: 'tumbling(300000 ms)', graceMs: 60_000, aggregators: { lines: 'count' } },
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

describe('compareLock, over aggregators', () => {
  const length = (line: string): number => line.length
  const one = { init: () => 0, add: (n: number) => n + 1, merge: (a: number, b: number) => a + b, result: String }
  const release = (aggregation: unknown) => {
    const app = new Topology('app')
    const sink = app.sink<unknown>('out')
    const windows = app
      .source('lines', text())
      .keyBy('by-line', self)
      .window(tumbling(minutes(5), { grace: minutes(1) }))
      .aggregate('per-line', aggregation as { lines: ReturnType<typeof count> }, { emit: 'final' })
    windows.results.to(sink)
    windows.late.to(sink)
    return lockOf(plan(app))
  }
  const kindsOf = (lock: TopologyLock) => (lock.stages['by-line'] as KeyedStageLock).operators['per-line']?.aggregators
  const changes = (before: unknown, now: unknown) => compareLock(release(before), release(now))

  /** All that there are, by the kinds that are recorded of them. */
  const kinds: Readonly<Record<string, unknown>> = {
    count: count(),
    sum: sum(length),
    mean: mean(length),
    min: min(length),
    max: max(length),
    first: first(),
    last: last(),
    distinct: distinct(self),
    'approximateDistinct(precision: 12)': approximateDistinct(self),
    'approximateDistinct(precision: 8)': approximateDistinct(self, { precision: 8 }),
    'quantile(relativeError: 0.01)': quantile(0.9, length),
    'quantile(relativeError: 0.05)': quantile(0.9, length, { relativeError: 0.05 }),
    collect: collect({ atMost: 2 }),
    'topN(order: largest)': topN(2, length),
    'topN(order: smallest)': topN(2, length, { order: 'smallest' }),
    custom: custom(one),
  }

  test('every one is recorded by its name with its kind, and with what else decides what it stores', () => {
    const byName = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, kind]))
    expect(kindsOf(release(kinds))).toEqual(byName)
  })

  test.each(Object.keys(kinds))('whatever %s becomes is named, unless it is that again', (kind) => {
    for (const [other, aggregator] of Object.entries(kinds)) {
      expect(changes({ x: kinds[kind] }, { x: aggregator })).toEqual(
        other === kind
          ? []
          : [
              {
                name: 'per-line',
                message: `aggregator "x" of state "per-line" of stage "by-line" is ${other} instead of ${kind}: what open windows have gathered would be misread. Give the new aggregator another name.`,
              },
            ],
      )
    }
  })

  test.each<[string, unknown, unknown]>([
    ['a predicate', count(), count((line: string) => line === '')],
    ['a selector', sum(length), sum(() => 1)],
    ['the share of a quantile', quantile(0.9, length), quantile(0.5, length)],
    ['how many are kept', topN(2, length), topN(3, length)],
    ['how many are collected', collect({ atMost: 2 }), collect({ atMost: 5, keep: length })],
  ])('%s changes nothing that is there', (_, before, now) => {
    expect(changes({ x: before }, { x: now })).toEqual([])
  })

  test('one more, one less, and another order pass', () => {
    const [n, total] = [count(), sum(length)]
    expect(changes({ n }, { total, n })).toEqual([])
    expect(changes({ total, n }, { n })).toEqual([])
    expect(sameLock(release({ n }), release({ total, n }))).toBe(false)
    expect(sameLock(release({ n, total }), release({ total, n }))).toBe(true)
  })

  test('a single one has its kind alone, and is not one by name', () => {
    expect(kindsOf(release(count()))).toBe('count')
    expect(kindsOf(release(one))).toBe('custom')
    for (const [before, now, told] of [
      [count(), sum(length), 'a single sum instead of a single count'],
      [count(), { n: count() }, 'several by name (n) instead of a single count'],
      [{ n: count(), m: count() }, one, 'a single custom instead of several by name (m, n)'],
    ]) {
      expect(changes(before, now)).toEqual([
        {
          name: 'per-line',
          message: `the aggregation of state "per-line" of stage "by-line" is ${told}: what open windows have gathered would be misread. Give the new window another name.`,
        },
      ])
    }
  })

  test('other windows with other aggregators are both told', () => {
    const before = release({ x: sum(length) })
    const told = compareLock(
      JSON.parse(JSON.stringify(before).replace('300000', '60000')) as TopologyLock,
      release({ x: count() }),
    )
    expect(told.map(({ name }) => name)).toEqual(['per-line', 'per-line'])
    expect(told[0]?.message).toContain('tumbling(300000 ms) instead of tumbling(60000 ms)')
  })

  test('a lock of a release that recorded none is read, refuses nothing, and is to be completed', () => {
    const before = structuredClone(release({ x: count() })) as unknown as Draft
    delete before.stages['by-line']?.operators['per-line']?.aggregators
    const file = lockText(new Map([['app', { file: 'app.ts', ...asLock(before) }]]))
    const read = parseLock(file, 'millrace.lock.json').get('app') as TopologyLock
    expect(compareLock(read, release({ x: sum(length) }))).toEqual([])
    expect(sameLock(read, release({ x: count() }))).toBe(false)
  })

  test('a lock file in which they are something else is refused', () => {
    const lock = structuredClone(release({ x: count() })) as unknown as Draft
    for (const aggregators of [5, ['count'], { x: 5 }, null]) {
      Object.assign(lock.stages['by-line']?.operators['per-line'] as object, { aggregators })
      const file = lockText(new Map([['app', { file: 'app.ts', ...asLock(lock) }]]))
      expect(() => parseLock(file, 'my.lock.json')).toThrow('my.lock.json is not what `millrace lock` writes')
    }
  })
})

const names = fc.constantFrom('a', 'b', 'c', 'd', 'constructor')
const kind = fc.constantFrom('count', 'sum')
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
      aggregators: fc.oneof(kind, fc.dictionary(names, kind, { minKeys: 1, noNullPrototype: true })),
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
        {
          kind: string
          window?: string
          aggregators?: string | Record<string, string>
          states: Record<string, { kind: string; version: number }>
        }
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
  'an aggregator of another kind': (draft, pick) => {
    const { operator: found, operatorName } = pickOf(draft, pick)
    const { aggregators } = found
    if (aggregators === undefined) return undefined
    if (typeof aggregators === 'string') found.aggregators = 'mean'
    else aggregators[Object.keys(aggregators)[pick % Object.keys(aggregators).length] as string] = 'mean'
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
            if (typeof found.aggregators === 'object') found.aggregators.more = 'mean'
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
