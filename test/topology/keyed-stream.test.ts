import { minutes } from '../../lib/core/duration.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { sideOutput } from '../../lib/operators/keyed/side-output.ts'
import { mapState, operatorState, valueState } from '../../lib/state/states.ts'
import { pathTo } from '../../lib/topology/graph.ts'
import { Topology } from '../../lib/topology/topology.ts'

function lines() {
  const app = new Topology('app')
  return { app, source: app.source('lines', text()), sink: app.sink<string>('out') }
}

const self = (line: string): string => line
const last = { state: { last: valueState<string>() }, step: (line: string) => [line] }
const ttl = { by: 'event-time', after: minutes(1) } as const

describe('names', () => {
  test('a keyed operator owns its name as everything persistent does', () => {
    const { source } = lines()
    const keyed = source.keyBy('by-line', self)
    keyed.process('last', last)
    expect(() => keyed.deduplicate('last', { ttl })).toThrow('two things named "last" (a process and a deduplicate)')
    expect(() => keyed.reduce('by-line', self, { emit: 'on-update' })).toThrow('(a keyBy and a reduce)')
    expect(() => source.keyBy('last', self)).toThrow('(a process and a keyBy)')
    expect(() => keyed.process('out', last)).toThrow('(a sink and a process)')
  })

  test.each(['', 'Last', 'a.b', undefined])('%j cannot name one', (given) => {
    const name = given as string
    const keyed = lines().source.keyBy('by-line', self)
    const aggregation = { init: () => 0, add: (n: number) => n + 1, result: (n: number) => n }
    for (const declare of [
      () => keyed.process(name, last),
      () => keyed.aggregate(name, aggregation, { emit: 'on-update' }),
      () => keyed.reduce(name, self, { emit: 'on-update' }),
      () => keyed.deduplicate(name, { ttl }),
    ]) {
      expect(declare).toThrow(ConfigurationError)
      expect(declare).toThrow('use lower-case words joined by "-"')
    }
  })
})

test('a topology that was read takes no keyed operator', () => {
  const { app, source } = lines()
  const keyed = source.keyBy('by-line', self)
  app.describe()
  expect(() => keyed.process('last', last)).toThrow(
    'process "last" was added to topology "app" after it had been planned or described',
  )
})

describe('slots', () => {
  test('are 64 unless said', () => {
    const { app, source } = lines()
    source.keyBy('some', self)
    source.keyBy('few', self, { slots: 4 })
    expect(app.graph().nodes.slice(1)).toMatchObject([
      { name: 'some', slots: 64 },
      { name: 'few', slots: 4 },
    ])
  })

  test.each([0, 3, 8_192, 1.5, Number.NaN])('%d of them are refused, with the name of the keyBy', (slots) => {
    const { source } = lines()
    expect(() => source.keyBy('by-line', self, { slots })).toThrow(ConfigurationError)
    expect(() => source.keyBy('by-line', self, { slots })).toThrow(
      `keyBy "by-line": ${slots} slots cannot be had: give a power of two from 1 to 4096, such as 64.`,
    )
  })
})

test('the graph holds each operator behind its keyBy, and its side outputs', () => {
  const { app, source, sink } = lines()
  const processed = source
    .keyBy('by-line', self)
    .deduplicate('once', { ttl })
    .process('last', { ...last, sides: { odd: sideOutput<string>() } })
  processed.to(sink)
  processed.sides.odd.to(sink)
  const { nodes } = app.graph()
  expect(nodes.map((node) => pathTo(node).split(' > ').at(-1))).toEqual([
    'source "lines"',
    'keyBy "by-line"',
    'deduplicate "once"',
    'process "last"',
    'side "odd"',
    'sink "out"',
    'sink "out"',
  ])
  expect(nodes[5]).toMatchObject({ input: nodes[3] })
  expect(nodes[6]).toMatchObject({ input: { type: 'side', input: nodes[3] } })
})

function described(): Topology {
  const { app, source, sink } = lines()
  const seen = operatorState({ initial: 0, add: (n, _: string) => n + 1 })
  const processed = source.keyBy('by-line', self, { slots: 1 }).process('last', {
    state: { last: valueState<string>(), byDay: mapState<number>(), seen },
    sides: { odd: sideOutput<string>() },
    step: (line) => [line],
  })
  processed.reduce('longest', self, { emit: 'per-batch' }).to(sink)
  processed.sides.odd.keyBy('not-cut', self).to(sink)
  return app
}

test('as text: slots where it is cut, and what each operator keeps', () => {
  expect(described().describe()).toBe(
    `topology "app"
  source "lines" (text, event time on arrival)
    keyBy "by-line" (1 slot)
      process "last" (keeps last.last (value), last.byDay (map), last.seen (operator))
        side "odd"
          keyBy "not-cut"
            sink "out"
        reduce "longest" (keeps longest (reducing); emits per batch)
          sink "out"`,
  )
})

test('as Mermaid: keyed operators by their shape, side outputs as ways out of them', () => {
  expect(described().describe('mermaid')).toBe(
    `flowchart LR
  n0(["source 'lines'"])
  n1["keyBy 'by-line'"]
  n2[["process 'last'"]]
  n4[["reduce 'longest'"]]
  n6["keyBy 'not-cut'"]
  sink-out[("sink 'out'")]
  n0 --> n1
  n1 --> n2
  n2 --> n4
  n2 -->|"odd"| n6
  n4 --> sink-out
  n6 --> sink-out`,
  )
})
