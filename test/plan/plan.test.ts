import { hours, minutes } from '../../lib/core/duration.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { count } from '../../lib/operators/aggregators/count.ts'
import { otherwise } from '../../lib/operators/branch.ts'
import { lookup, refreshedTable, staticTable, type Table } from '../../lib/operators/enrich/table.ts'
import { plan, stageNamed } from '../../lib/plan/plan.ts'
import { type EventTime, epochMs } from '../../lib/time/event-time.ts'
import { countWindow } from '../../lib/time/windows/count-window.ts'
import { tumbling } from '../../lib/time/windows/hopping.ts'
import type { Stream } from '../../lib/topology/stream.ts'
import { Topology } from '../../lib/topology/topology.ts'

function lines() {
  const app = new Topology('app')
  return { app, source: app.source('lines', text()), sink: app.sink<string>('out') }
}

const join = (stream: Stream<string>, from: Table<number>): Stream<string> =>
  stream.enrich({ from, key: (line) => line, join: (line, row) => `${line}${row}` })

const rows = async () => new Map<string, number>()

describe('stages', () => {
  test('a source and the steps behind it are one stage, named after the source', () => {
    const { app, source, sink } = lines()
    const other = app.sink<string>('other')
    const table = staticTable<number>('t', () => new Map())
    const upper = join(source, table).map((line) => line.toUpperCase())
    upper.to(sink)
    upper.filter((line) => line !== '').to(other)
    const { topology, stages, hints } = plan(app)
    expect(topology).toBe('app')
    expect(hints).toEqual([])
    expect(stages).toHaveLength(1)
    expect(stages[0]).toMatchObject({ name: 'lines', kind: 'stateless', sinks: ['out', 'other'], tables: [table] })
    expect(stages[0]?.nodes.map(({ type }) => type)).toEqual(['source', 'enrich', 'operator', 'to', 'operator', 'to'])
  })

  test('what follows a merge of two sources belongs to the stage of each', () => {
    const { app, source, sink } = lines()
    const second = app.source('second', text())
    const alone = app.sink<string>('alone')
    source.map((line) => line).to(alone)
    source.merge(second).to(sink)
    const [first, other] = plan(app).stages
    expect(first).toMatchObject({ name: 'lines', sinks: ['alone', 'out'] })
    expect(other).toMatchObject({ name: 'second', sinks: ['out'] })
    expect(other?.nodes.map(({ type }) => type)).toEqual(['source', 'merge', 'to'])
  })

  test('a node of a diamond, a sink and a table are there once, each node after what feeds it', () => {
    const { app, source, sink } = lines()
    const table = staticTable<number>('t', () => new Map())
    const { a, b } = source.branch({ a: (line) => line === 'a', b: otherwise })
    const merged = join(a, table).merge(join(b, table))
    merged.to(sink)
    merged.map((line) => line).to(sink)
    const [stage] = plan(app).stages
    expect(stage).toMatchObject({ sinks: ['out'], tables: [table] })
    const nodes = stage?.nodes ?? []
    expect(new Set(nodes).size).toBe(nodes.length)
    expect(nodes.filter(({ type }) => type === 'merge')).toHaveLength(1)
    for (const [at, node] of nodes.entries()) {
      const inputs = node.type === 'source' ? [] : node.type === 'merge' ? node.inputs : [node.input]
      for (const input of inputs) expect(nodes.indexOf(input)).toBeLessThan(at)
    }
  })

  test('a table that is read twice counts where it is read last', () => {
    const { app, source, sink } = lines()
    const [a, b] = [lookup('a', { load: rows, ttl: minutes(1) }), lookup('b', { load: rows, ttl: minutes(1) })]
    join(join(join(source, a), b), a).to(sink)
    expect(plan(app).stages[0]?.tables.map(({ name }) => name)).toEqual(['b', 'a'])
  })

  test('planning is pure: it may be done again', () => {
    const { app, source, sink } = lines()
    source.to(sink)
    expect(plan(app)).toEqual(plan(app))
    expect(() => source.to(sink)).toThrow('after it had been planned')
  })

  test('a stage is found by its name', () => {
    const { app, source, sink } = lines()
    source.to(sink)
    expect(stageNamed(plan(app), 'lines').name).toBe('lines')
    expect(() => stageNamed(plan(app), 'line')).toThrow('topology "app" has no stage "line": its stages are "lines".')
  })
})

describe('what is refused', () => {
  const refused = (app: Topology, message: string) => {
    expect(() => plan(app)).toThrow(ConfigurationError)
    expect(() => plan(app)).toThrow(message)
  }

  test('no source', () => {
    refused(new Topology('app'), `topology "app" has no source: declare one with app.source('name', schema).`)
  })

  test('a source that is not read', () => {
    refused(
      lines().app,
      'the results of source "lines" in topology "app" go nowhere: end it with .to(sink), or remove it.',
    )
  })

  test('a step whose results go nowhere', () => {
    const { app, source, sink } = lines()
    source.to(sink)
    source.map((line) => line).filter(() => true)
    refused(app, 'the results of source "lines" > map > filter in topology "app" go nowhere')
  })

  test('an arm that goes nowhere', () => {
    const { app, source, sink } = lines()
    source.branch({ a: () => true, rest: otherwise }).a.to(sink)
    refused(app, 'the results of source "lines" > arm "rest" in topology "app" go nowhere')
  })

  test('a sink that nothing is written to', () => {
    const { app, source, sink } = lines()
    app.sink('unused')
    source.to(sink)
    refused(
      app,
      'nothing is written to sink "unused" of topology "app": send a stream to it with .to(...), or remove it.',
    )
  })

  test('a sink of another topology', () => {
    const { app, source, sink } = lines()
    source.to(sink)
    source.to(new Topology('other').sink<string>('theirs'))
    refused(app, 'topology "app" writes to sink "theirs", which another topology declares')
  })

  test('a sink of another topology that has the name of one of its own', () => {
    const { app, source, sink } = lines()
    source.to(sink)
    source.to(lines().sink)
    refused(app, 'topology "app" writes to sink "out", which another topology declares')
  })

  test('two tables of one name', () => {
    const { app, source, sink } = lines()
    join(
      join(
        source,
        staticTable('t', () => new Map()),
      ),
      staticTable('t', () => new Map()),
    ).to(sink)
    refused(app, 'enriches from two tables named "t": give each its own name, or use one table object twice.')
  })
})

describe('a way that may change on a retry', () => {
  const refreshed = refreshedTable('rates', { load: rows, every: minutes(1) })
  const looked = lookup('accounts', { load: rows, ttl: minutes(1) })

  test.each<[string, Table<number>, (stream: Stream<string>) => Stream<string>, string]>([
    [
      'filter',
      refreshed,
      (stream) => stream.filter(() => true),
      'filter in source "lines" > enrich from "rates" > map > filter',
    ],
    [
      'flatMap',
      looked,
      (stream) => stream.flatMap((line) => [line]),
      'flatMap in source "lines" > enrich from "accounts" > map > flatMap',
    ],
    [
      'branch',
      looked,
      (stream) => {
        const { a, b } = stream.branch({ a: () => true, b: otherwise })
        return a.merge(b)
      },
      'branch in source "lines" > enrich from "accounts" > map may decide',
    ],
  ])('%s after it is refused, with the step and the remedy', (_kind, table, decide, message) => {
    const { app, source, sink } = lines()
    decide(join(source, table).map((line) => line)).to(sink)
    expect(() => plan(app)).toThrow(message)
    expect(() => plan(app)).toThrow(
      "decide before the enrichment, use a staticTable, or declare { answers: 'may-change' }",
    )
  })

  test('it is found behind a merge too', () => {
    const { app, source, sink } = lines()
    source
      .merge(join(source, looked))
      .filter(() => true)
      .to(sink)
    expect(() => plan(app)).toThrow('because the lookup table "accounts" may answer otherwise')
  })

  test.each<[string, (source: Stream<string>) => Stream<string>]>([
    [
      'the decision comes first',
      (source) =>
        join(
          source.filter(() => true),
          looked,
        ),
    ],
    [
      'only maps follow',
      (source) =>
        join(
          join(source, looked).map((line) => line),
          refreshed,
        ),
    ],
    [
      'the table is static',
      (source) =>
        join(
          source,
          staticTable('s', () => new Map()),
        ).flatMap((line) => [line]),
    ],
    [
      'it is said out loud',
      (source) =>
        join(source, lookup('l', { load: rows, ttl: minutes(1), answers: 'may-change' })).flatMap((line) => [line]),
    ],
    ['the decision is on another way', (source) => join(source, looked).merge(source.filter(() => true))],
  ])('it is allowed where %s', (_why, steps) => {
    const { app, source, sink } = lines()
    steps(source).to(sink)
    expect(plan(app).stages).toHaveLength(1)
  })
})

test('a hint says where windows go by when records arrive, as nobody said when they happened', () => {
  const windowed = (eventTime?: EventTime<string>) => {
    const app = new Topology('app')
    const byLine = app.source('lines', text(), eventTime && { eventTime }).keyBy('by-line', (line) => line)
    const hourly = byLine.window(tumbling(hours(1), { grace: minutes(5) }))
    const hour = hourly.aggregate('hourly', { lines: count() }, { emit: 'on-close' })
    hour.results.to(app.sink<unknown>('hours'))
    hour.late.to(app.sink<string>('late'))
    const ten = byLine.window(countWindow(10)).aggregate('tens', { lines: count() }, { emit: 'on-close' })
    ten.results.to(app.sink<unknown>('by-ten'))
    return plan(app).hints
  }
  expect(windowed(epochMs((line) => Number(line)))).toEqual([])
  expect(windowed()).toEqual([
    'source "lines": it says no event time, so window "hourly" goes by when records arrive in the stream: where they say themselves when they happened, say eventTime, such as eventTime: isoTime((value) => value.at).',
  ])
})

test('a hint says where a filter would save reads', () => {
  const { app, source, sink } = lines()
  join(
    source,
    staticTable('t', () => new Map()),
  )
    .filter(() => true)
    .to(sink)
  expect(plan(app).hints).toEqual([
    'source "lines" > enrich from "t" > filter: where the filter does not need the row of "t", put it before the enrichment, so that fewer rows are read.',
  ])
})
