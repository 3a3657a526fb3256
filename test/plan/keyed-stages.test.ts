import { minutes } from '../../lib/core/duration.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { otherwise } from '../../lib/operators/branch.ts'
import { lookup, refreshedTable, staticTable, type Table } from '../../lib/operators/enrich/table.ts'
import { sideOutput } from '../../lib/operators/keyed/side-output.ts'
import { plan, streamNameOf, tableNameOf } from '../../lib/plan/plan.ts'
import { operatorState, valueState } from '../../lib/state/states.ts'
import type { KeyedStream, Stream } from '../../lib/topology/stream.ts'
import { Topology } from '../../lib/topology/topology.ts'

function lines() {
  const app = new Topology('app')
  return {
    app,
    source: app.source('lines', text()),
    /** Declared where it is asked for: a sink that nothing is written to is refused. */
    get sink() {
      return app.sink<string>('out')
    },
  }
}

const self = (line: string): string => line
const last = <K extends string>(stream: KeyedStream<string, K>, name: string) =>
  stream.process(name, { state: { last: valueState<string>() }, step: (line) => [line] })

const rows = async () => new Map<string, number>()
const join = (stream: Stream<string>, from: Table<number>): Stream<string> =>
  stream.enrich({ from, key: self, join: (line, row) => `${line}${row}` })

describe('stages', () => {
  test('a keyBy with a keyed operator behind it ends the stage of its source and begins the one of its name', () => {
    const { app, source, sink } = lines()
    last(source.map(self).keyBy('by-line', self, { slots: 8 }), 'last')
      .map(self)
      .to(sink)
    const planned = plan(app)
    const [feeding, keyed] = planned.stages
    expect(planned.hints).toEqual([])
    expect(planned.stages).toHaveLength(2)
    expect(feeding).toMatchObject({ name: 'lines', kind: 'feeding', sinks: [], source: { name: 'lines' } })
    expect(feeding?.nodes.map(({ type }) => type)).toEqual(['source', 'operator', 'key-by'])
    expect(feeding?.feeds).toMatchObject([{ stage: 'by-line', keyBy: { name: 'by-line' }, slots: 8 }])
    expect(keyed).toMatchObject({ name: 'by-line', kind: 'keyed', slots: 8, sinks: ['out'], feeds: [] })
    expect(keyed?.nodes.map(({ type }) => type)).toEqual(['key-by', 'keyed', 'operator', 'to'])
    expect(keyed).toMatchObject({ input: keyed?.entry, fedBy: ['lines'] })
  })

  test('a keyBy without one stays inside its stage, with a hint', () => {
    const { app, source, sink } = lines()
    source.keyBy('by-line', self).map(self).to(sink)
    const { stages, hints } = plan(app)
    expect(stages).toMatchObject([{ name: 'lines', kind: 'stateless', feeds: [] }])
    expect(hints).toEqual([expect.stringContaining('keyBy "by-line": no step behind it keeps state')])
  })

  test('a keyed stage may feed another, and two sources one', () => {
    const { app, source, sink } = lines()
    const both = source.merge(app.source('more', text()))
    const first = last(both.keyBy('first', self), 'one')
    first.to(sink)
    last(first.keyBy('second', self, { slots: 1 }), 'two').to(sink)
    const planned = plan(app)
    expect(planned.stages.map(({ name, kind }) => [name, kind])).toEqual([
      ['lines', 'feeding'],
      ['more', 'feeding'],
      ['first', 'keyed'],
      ['second', 'keyed'],
    ])
    expect(planned.stages[2]).toMatchObject({ fedBy: ['lines', 'more'], slots: 64, feeds: [{ stage: 'second' }] })
    expect(planned.stages[3]).toMatchObject({ fedBy: ['first'], slots: 1, feeds: [] })
  })

  test('the states of a stage are those of all its operators, by stored name', () => {
    const { app, source } = lines()
    const state = { last: valueState<string>(), seen: operatorState({ initial: 0, add: (n, _: string) => n + 1 }) }
    source
      .keyBy('by-line', self)
      .process('totals', { state, step: (line) => [line] })
      .deduplicate('once', { ttl: { by: 'event-time', after: minutes(1) } })
      .reduce('longest', (a, b) => (b.length > a.length ? b : a), { emit: 'per-batch' })
    const stage = plan(app).stages[1]
    if (stage?.kind !== 'keyed') throw new Error('no keyed stage')
    expect([...stage.states].map(([name, { kind }]) => [name, kind])).toEqual([
      ['totals.last', 'value'],
      ['once', 'value'],
      ['longest', 'reducing'],
    ])
    expect([...stage.operatorStates.keys()]).toEqual(['totals.seen'])
  })

  test('its stream and its table follow its name alone, and so does the table of one that feeds it', () => {
    expect([streamNameOf('app', 'one'), tableNameOf('app', 'one')]).toEqual(['app-one', 'app-one-state'])
    expect(tableNameOf('app', 'lines')).toBe('app-lines-state')
  })
})

describe('what is refused', () => {
  const refused = (app: Topology, message: string) => {
    expect(() => plan(app)).toThrow(ConfigurationError)
    expect(() => plan(app)).toThrow(message)
  }

  test('a lookup in a keyed stage, by the name of the stage that would read it', () => {
    const { app, source, sink } = lines()
    const first = last(source.keyBy('first', self), 'one')
    join(last(first.keyBy('second', self), 'two'), lookup('rates', { load: rows, ttl: minutes(1) })).to(sink)
    refused(
      app,
      'the lookup table "rates" cannot be read in the keyed stage "second": look it up before the keyBy, or use a refreshedTable or a staticTable.',
    )
  })

  test.each<[string, Table<number>]>([
    ['refreshed', refreshedTable('rates', { load: rows, every: minutes(1) })],
    ['lookup', lookup('rates', { load: rows, ttl: minutes(1) })],
  ])('a %s table before a keyBy, unless it is said that its answers may change', (kind, table) => {
    const { app, source } = lines()
    last(join(source, table).map(self).keyBy('by-line', self), 'last')
    refused(
      app,
      `keyBy "by-line" in source "lines" > enrich from "rates" > map > keyBy "by-line" may decide otherwise on a retry, because the ${kind} table "rates" may answer otherwise`,
    )
  })

  test('operator state of an operator that follows another', () => {
    const { app, source } = lines()
    const seen = operatorState({ initial: 0, add: (n, _: string) => n + 1 })
    last(source.keyBy('by-line', self), 'first').process('second', { state: { seen }, step: (line) => [line] })
    refused(
      app,
      'the operator state "second.seen" adds what comes out of the keyBy, so process "second" must follow the keyBy directly: put it before process "first"',
    )
  })

  test('a side output that goes nowhere', () => {
    const { app, source, sink } = lines()
    source
      .keyBy('by-line', self)
      .process('p', { state: { s: valueState<string>() }, sides: { odd: sideOutput<string>() }, step: (l) => [l] })
      .to(sink)
    refused(
      app,
      'the results of source "lines" > keyBy "by-line" > process "p" > side "odd" in topology "app" go nowhere: send it to a sink with .to(...), or leave it out of `sides`.',
    )
  })

  test('a keyBy that nothing follows', () => {
    const { app, source, sink } = lines()
    source.to(sink)
    source.keyBy('by-line', self)
    refused(app, 'the results of source "lines" > keyBy "by-line" in topology "app" go nowhere')
  })
})

describe('what is allowed', () => {
  test.each<[string, (source: Stream<string>) => Stream<string>]>([
    [
      'a static table before a keyBy',
      (source) =>
        join(
          source,
          staticTable('t', () => new Map()),
        ),
    ],
    [
      'a changing table before a keyBy, said out loud',
      (source) => join(source, lookup('t', { load: rows, ttl: minutes(1), answers: 'may-change' })),
    ],
  ])('%s', (_what, steps) => {
    const { app, source, sink } = lines()
    last(steps(source).keyBy('by-line', self), 'last').to(sink)
    expect(plan(app).stages).toHaveLength(2)
  })

  test('a changing table before a keyBy that nothing is re-keyed by', () => {
    const { app, source, sink } = lines()
    join(source, lookup('t', { load: rows, ttl: minutes(1) }))
      .keyBy('by-line', self)
      .to(sink)
    expect(plan(app).stages).toHaveLength(1)
  })

  test('refreshed and static tables in a keyed stage', () => {
    const { app, source, sink } = lines()
    const kept = last(source.keyBy('by-line', self), 'last')
    join(
      join(kept, refreshedTable('r', { load: rows, every: minutes(1) })),
      staticTable('s', () => new Map()),
    ).to(sink)
    expect(plan(app).stages[1]?.tables.map(({ name }) => name)).toEqual(['r', 's'])
  })

  test('an operator whose results nobody reads: its state is a table', () => {
    const { app, source } = lines()
    last(source.keyBy('by-line', self), 'last')
    expect(plan(app).stages).toHaveLength(2)
  })

  test('steps with and without state on branches behind one keyBy', () => {
    const { app, source, sink } = lines()
    const keyed = source.keyBy('by-line', self)
    last(keyed, 'last').to(sink)
    const { a, b } = keyed.branch({ a: () => true, b: otherwise })
    a.merge(b).to(sink)
    expect(plan(app).stages[1]?.nodes.map(({ type }) => type)).toEqual([
      'key-by',
      'keyed',
      'to',
      'branch',
      'arm',
      'arm',
      'merge',
      'to',
    ])
  })
})

test('a warning says where a keyed stage would count what depends on where batches are cut', () => {
  const warningsOf = (emit: 'per-batch' | 'on-update') => {
    const { app, source } = lines()
    const longest = source.keyBy('first', self).reduce('longest', self, { emit })
    last(longest.map(self).keyBy('second', self), 'last')
    return plan(app).warnings
  }
  expect(warningsOf('on-update')).toEqual([])
  expect(warningsOf('per-batch')).toEqual([
    `source "lines" > keyBy "first" > reduce "longest" > map > keyBy "second": of each key and batch it gets the last result of reduce "longest" only, so what is counted behind it depends on where batches are cut; where every result counts, say emit: 'on-update'.`,
  ])
})
