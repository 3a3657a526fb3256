import { ConfigurationError, RetryableError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { otherwise } from '../../lib/operators/branch.ts'
import { delivered, type Sink } from '../../lib/runtime/sink.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { answering, mapped, recordsOf, runnerOf } from './runner-world.ts'

const same = (line: string): string => line

describe('the way of a record', () => {
  test('a diamond gives each record once, in order', async () => {
    const app = new Topology('app')
    const out = app.sink<string>('out')
    const { odd, even } = app.source('lines', text()).branch({ odd: (line) => Number(line) % 2 === 1, even: otherwise })
    odd
      .map((line) => `${line} is odd`)
      .merge(even)
      .to(out)
    const world = runnerOf(app)
    await world.run({ p: recordsOf(['1', '2', '3', '4']) })
    expect(world.ports.received(out)).toEqual(['1 is odd', '2', '3 is odd', '4'])
  })

  test('outputs of one record to one sink have names of their own, whichever way they came', async () => {
    const app = new Topology('app')
    const out = app.sink<string>('out')
    const source = app.source('lines', text())
    source.to(out)
    source.flatMap((line) => [line, line]).to(out)
    const seen: [string, number][] = []
    const sink: Sink = {
      prepare: ({ record, index }) => seen.push([record.position, index]),
      deliver: async (items) => items.map(() => delivered),
    }
    const world = runnerOf(app, { sinks: { out: sink } })
    await world.run({ p: recordsOf(['a', 'b']) })
    expect(seen).toEqual([
      ['0', 0],
      ['0', 1],
      ['0', 2],
      ['1', 0],
      ['1', 1],
      ['1', 2],
    ])
  })

  test('outputs that multiply are delivered in parts, and no record is cut in two', async () => {
    const app = new Topology('app')
    app
      .source('lines', text())
      .flatMap((line) => [line, line, line])
      .to(app.sink<string>('out'))
    const { sink, calls } = answering(async (items) => items.map(() => delivered))
    const world = runnerOf(app, { sinks: { out: sink }, maxPendingOutputs: 4 })
    await world.run({ p: recordsOf(['a', 'b', 'c']) })
    expect(calls).toEqual([
      ['a', 'a', 'a', 'b', 'b', 'b'],
      ['c', 'c', 'c'],
    ])
  })

  test('once a part was refused nothing of that partition follows it', async () => {
    const { sink, calls } = answering(async (items) =>
      items.map((item) => (item === 'b' ? { status: 'retry', error: new Error('full') } : delivered)),
    )
    const world = mapped(same, { sinks: { out: sink }, maxPendingOutputs: 1 })
    expect(await world.run({ p: recordsOf(['a', 'b', 'c']), q: recordsOf(['d'], 'q') })).toEqual({ p: 1 })
    expect(calls).toEqual([['a'], ['b'], ['d']])
  })

  test('overlapping invocations do not mix their outputs', async () => {
    const release: (() => void)[] = []
    const { sink, calls } = answering(async (items) => {
      await new Promise<void>((resolve) => release.push(resolve))
      return items.map((item) => (item === 'a2' ? { status: 'retry', error: new Error('full') } : delivered))
    })
    const world = mapped(same, { sinks: { out: sink }, maxPendingOutputs: 1 })
    const first = world.run({ a: recordsOf(['a1', 'a2', 'a3'], 'a') })
    const second = world.run({ b: recordsOf(['b1', 'b2'], 'b') })
    let answered = 0
    void first.then(() => answered++)
    void second.then(() => answered++)
    while (answered < 2) {
      release.shift()?.()
      await Promise.resolve()
    }
    expect(await first).toEqual({ a: 1 })
    expect(await second).toEqual({})
    expect(calls.flat().filter((line) => String(line).startsWith('a'))).toEqual(['a1', 'a2'])
    expect(calls.flat().filter((line) => String(line).startsWith('b'))).toEqual(['b1', 'b2'])
  })
})

describe('what it says', () => {
  test('counts what came, went, failed and returned', async () => {
    const world = mapped(
      (line) => {
        if (line === 'bad') throw new Error('no')
        if (line === 'later') throw new RetryableError('later')
        return line
      },
      { tries: 2 },
    )
    await world.run({ p: recordsOf(['a', 'bad', 'b', 'later', 'c']) })
    const names = ['records-in', 'records-out', 'dead-letters', 'attempts-failed', 'records-returned'] as const
    expect(names.map((name) => world.ports.counted(name))).toEqual([3, 2, 1, 2, 2])
  })

  test('logs ten dead letters by name and the rest by number, and no payload at all', async () => {
    const world = mapped((line) => {
      throw new Error(`secret ${line}`)
    })
    await world.run({ p: recordsOf(Array.from({ length: 13 }, (_, i) => `secret-${i}`)) })
    expect(world.ports.lines.filter(({ message }) => message === 'a record became a dead letter')).toHaveLength(10)
    expect(world.ports.lines.at(-1)).toMatchObject({ level: 'warn', fields: { count: 3 } })
    expect(JSON.stringify(world.ports.lines)).not.toContain('secret')
  })

  test.each([0, -1, 1.5, Number.NaN])('tries and maxPendingOutputs of %d are mistakes', (value) => {
    expect(() => mapped(same, { tries: value })).toThrow(`tries is ${value}: give a whole number above 0.`)
    expect(() => mapped(same, { maxPendingOutputs: value })).toThrow(ConfigurationError)
  })
})
