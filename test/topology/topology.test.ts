import { z } from 'zod'
import { milliseconds, minutes } from '../../lib/core/duration.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { otherwise } from '../../lib/operators/branch.ts'
import { epochMs } from '../../lib/time/event-time.ts'
import { consumersOf, inputsOf, pathTo } from '../../lib/topology/graph.ts'
import { Topology } from '../../lib/topology/topology.ts'

const lines = (name = 'app') => {
  const app = new Topology(name)
  return { app, source: app.source('lines', text()), sink: app.sink<string>('out') }
}

describe('names', () => {
  test.each(['a', 'booking-requests', 'v2-x', 'a'.repeat(64)])('%s can name a source', (name) => {
    const app = new Topology('app')
    expect(app.source(name, text()).name).toBe(name)
  })

  test.each(['', 'A', '1a', '-a', 'a-', 'a--b', 'a_b', 'a b', 'ä', 'a\n', '__proto__', 'a'.repeat(65), undefined, 7])(
    '%j cannot name anything',
    (given) => {
      const name = given as string
      const app = new Topology('app')
      for (const declare of [() => new Topology(name), () => app.source(name, text()), () => app.sink(name)]) {
        expect(declare).toThrow(ConfigurationError)
        expect(declare).toThrow('use lower-case words joined by "-"')
      }
    },
  )

  test('a name owns one thing, whatever kind it is', () => {
    const { app } = lines()
    expect(() => app.source('lines', text())).toThrow('two things named "lines" (a source and a source)')
    expect(() => app.sink('lines')).toThrow('two things named "lines" (a source and a sink)')
    expect(() => app.source('out', text())).toThrow('two things named "out" (a sink and a source)')
    expect(() => app.sink('out')).toThrow('give each its own')
  })
})

test.each([[(event: { at: number }) => event.at], [epochMs], [{ unit: 'epochMs' }], ['at'], [null]])(
  'an event time that cannot be asked for it, %p, is refused by the name of the source',
  (eventTime) => {
    const declare = () => new Topology('app').source('lines', text(), { eventTime: eventTime as never })
    expect(declare).toThrow(ConfigurationError)
    expect(declare).toThrow('source "lines": its eventTime does not say how to read the time: give epochMs(')
  },
)

describe('lengths of time of a source', () => {
  test.each([
    [60_000, '60000'],
    [{ ms: Number.NaN }, 'NaN ms'],
    [{ ms: -3_600_000 }, '-3600000 ms'],
    [{ ms: Number.POSITIVE_INFINITY }, 'Infinity ms'],
    [null, 'null'],
  ])('%j is refused by the names of the source and the option', (duration, shown) => {
    for (const option of ['outOfOrderness', 'skewLimit']) {
      const declare = () => new Topology('app').source('lines', text(), { [option]: duration })
      expect(declare).toThrow(ConfigurationError)
      expect(declare).toThrow(`source "lines": ${option} is ${shown}: give a length of time, such as `)
    }
  })

  test('may be none', () => {
    const lengths = { outOfOrderness: milliseconds(0), skewLimit: milliseconds(0) }
    const { declaration } = new Topology('app').source('lines', text(), lengths)
    expect(declaration).toMatchObject({ outOfOrdernessMs: 0, skewLimitMs: 0 })
  })
})

test('building reads nothing and calls nothing of the user', () => {
  const never = () => {
    throw new Error('called')
  }
  const { app, source, sink } = lines()
  source.map(never).filter(never).flatMap<string>(never).to(sink)
  expect(app.describe()).toContain('flatMap')
})

describe('once it was read, a topology is sealed', () => {
  test.each<[string, (app: Topology) => void]>([
    ['described', (app) => app.describe()],
    ['read', (app) => app.graph()],
  ])('after it was %s nothing can be added', (_what, read) => {
    const { app, source, sink } = lines()
    const branches = source.branch({ a: () => true, b: otherwise })
    read(app)
    const late = 'after it had been planned or described'
    expect(() => app.source('late', text())).toThrow(late)
    expect(() => app.sink('late')).toThrow(`sink "late" was added to topology "app" ${late}`)
    expect(() => source.map((x) => x)).toThrow(`a map step was added to topology "app" ${late}`)
    expect(() => source.filter(() => true)).toThrow('a filter step')
    expect(() => branches.a.merge(branches.b)).toThrow('a merge step')
    expect(() => source.to(sink)).toThrow('a to step')
    expect(() => source.branch({ a: otherwise })).toThrow('a branch step')
  })
})

describe('a branch', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['without otherwise', { a: () => true }, 'branch({ a }) is not exhaustive'],
    ['without arms', {}, 'is not exhaustive'],
    ['with otherwise first', { a: otherwise, b: () => true }, '`otherwise` before its last arm'],
    ['with otherwise twice', { a: otherwise, b: otherwise }, '`otherwise` before its last arm'],
    ['with an arm named by a number', { 1: () => true, rest: otherwise }, 'an arm named by a number'],
  ])('%s is refused', (_what, arms, message) => {
    const { source } = lines()
    expect(() => source.branch(arms as { rest: typeof otherwise })).toThrow(ConfigurationError)
    expect(() => source.branch(arms as { rest: typeof otherwise })).toThrow(message)
  })
})

describe('a merge', () => {
  test('takes streams of one topology, each once', () => {
    const { source } = lines()
    const other = lines('other').source
    expect(() => source.merge(other)).toThrow('merge() was given a stream of another topology')
    expect(() => source.merge(source)).toThrow('merge() was given the same stream twice')
    const mapped = source.map((x) => x)
    expect(() => source.merge(mapped, mapped)).toThrow('the same stream twice')
    expect(() => source.merge(mapped)).not.toThrow()
  })

  test('takes two sources of one topology', () => {
    const { app, source, sink } = lines()
    const second = app.source('second', text())
    source.merge(second).to(sink)
    expect(app.graph().nodes.find(({ type }) => type === 'merge')).toMatchObject({
      inputs: [{ name: 'lines' }, { name: 'second' }],
    })
  })
})

test('the graph says what feeds what, and the way to a step in words', () => {
  const { app, source, sink } = lines()
  const { long, rest } = source.branch({ long: (x) => x.length > 9, rest: otherwise })
  long.map((x) => x).to(sink)
  rest.to(sink)
  const graph = app.graph()
  const to = graph.nodes.find((node) => node.type === 'to')
  const [first] = graph.nodes
  if (!to || !first) throw new Error('the graph lacks a node')
  expect(pathTo(to)).toBe('source "lines" > arm "long" > map > sink "out"')
  expect(inputsOf(first)).toEqual([])
  expect(
    consumersOf(graph)
      .get(first)
      ?.map(({ type }) => type),
  ).toEqual(['branch'])
})

test('a source says what it declares', () => {
  const app = new Topology('app')
  const eventTime = epochMs((b: { at: number }) => b.at)
  const source = app.source('bookings', z.object({ at: z.number() }), { eventTime, outOfOrderness: minutes(1) })
  expect(source.declaration).toMatchObject({
    name: 'bookings',
    format: { name: 'json' },
    outOfOrdernessMs: 60_000,
    eventTime: { unit: 'epochMs' },
  })
  expect(app.source('plain', text()).declaration).toMatchObject({
    schema: undefined,
    eventTime: undefined,
    outOfOrdernessMs: 0,
  })
})
