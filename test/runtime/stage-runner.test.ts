import { milliseconds, seconds } from '../../lib/core/duration.ts'
import { ConfigurationError, RetryableError, TerminalError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { delivered, type Outcome, type Sink } from '../../lib/runtime/sink.ts'
import { MemorySink } from '../../lib/testing/memory-ports.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { answering, mapped, recordsOf, runnerOf, undecodable, type WorldOptions } from './runner-world.ts'

const same = (line: string): string => line
const codes = (letters: readonly unknown[]) =>
  letters.map((letter) => (letter as { reason: { code: string; attempts: number } }).reason)

describe('invariant 1: a record is done when every sink holds its outputs, or the dead letters hold the record', () => {
  test('the answer names the first record that some sink refused, whichever sink it was', async () => {
    const app = new Topology('app')
    const [a, b] = [app.sink<string>('a'), app.sink<string>('b')]
    const source = app.source('lines', text())
    source.to(a)
    source.to(b)
    const world = runnerOf(app)
    world.ports.refuse(a, (line) => (line === '3' ? { status: 'retry', error: new Error('full') } : undefined))
    world.ports.refuse(b, (line) => (line === '2' ? { status: 'retry', error: new Error('full') } : undefined))
    const records = recordsOf(['0', '1', '2', '3', '4'])
    expect(await world.run({ p: records })).toEqual({ p: 2 })
    world.ports.refuse(a)
    world.ports.refuse(b)
    expect(await world.run({ p: records.slice(2) })).toEqual({})
    expect(world.ports.received(a)).toEqual(['0', '1', '2', '3', '4'])
    expect(world.ports.received(b)).toEqual(['0', '1', '2', '3', '4'])
  })

  test('each output that a sink rejects is a dead letter, which has its record and says which output it is', async () => {
    const app = new Topology('app')
    const out = app.sink<string>('out')
    app
      .source('lines', text())
      .flatMap((line) => [...line])
      .to(out)
    const world = runnerOf(app)
    world.ports.refuse(out, (char) =>
      char === 'x' ? { status: 'rejected', error: new TerminalError('no x', { code: 'no-x' }) } : undefined,
    )
    expect(await world.run({ p: recordsOf(['ab', 'xcx', 'd']) })).toEqual({})
    expect(world.ports.received(out)).toEqual(['a', 'b', 'c', 'd'])
    expect(world.ports.counted('dead-letters')).toBe(2)
    const reason = { code: 'no-x', phase: 'sink', attempts: 1 }
    expect(world.ports.deadLettered).toMatchObject([
      { id: 'lines/p/1/0/out/0', position: '1', reason, output: { sink: 'out', index: 0, value: null } },
      { id: 'lines/p/1/0/out/2', position: '1', reason, output: { sink: 'out', index: 2, value: null } },
    ])
    // The record travels once, however many of its outputs are rejected.
    const [first, second] = world.ports.deadLettered
    expect([first?.payload, first?.recordIn]).toEqual([Buffer.from('xcx').toString('base64'), undefined])
    expect([second?.payload, second?.key, second?.recordIn]).toEqual([null, null, first?.id])
  })

  test('while an output of a record is to come again, it has no dead letters: which is the first is not known', async () => {
    const app = new Topology('app')
    const [a, b] = [app.sink<string>('a'), app.sink<string>('b')]
    const source = app.source('lines', text())
    source.to(a)
    source.to(b)
    const world = runnerOf(app)
    const rejected: Outcome = { status: 'rejected', error: new TerminalError('never') }
    world.ports.refuse(a, () => ({ status: 'retry', error: new Error('down') }))
    world.ports.refuse(b, () => rejected)
    expect(await world.run({ p: recordsOf(['x']) })).toEqual({ p: 0 })
    expect(world.ports.deadLettered).toEqual([])
    world.ports.refuse(a, () => rejected)
    expect(await world.run({ p: recordsOf(['x']) })).toEqual({})
    expect(world.ports.deadLettered.map(({ id, recordIn }) => [id, recordIn])).toEqual([
      ['lines/p/0/0/a/0', undefined],
      ['lines/p/0/0/b/0', 'lines/p/0/0/a/0'],
    ])
  })

  test.each<[string, Outcome['status']]>([
    ['refuse', 'retry'],
    ['reject', 'rejected'],
  ])('a dead letter that the dead letters %s returns its record, which is not lost', async (_what, status) => {
    const deadLetters = new MemorySink()
    const world = mapped(same, { deadLetters: deadLetters as never })
    deadLetters.refuse = () => ({ status, error: new Error('down') }) as Outcome
    const batch = recordsOf(['a', undecodable, 'c'])
    expect(await world.run({ p: batch })).toEqual({ p: 1 })
    expect(deadLetters.values).toEqual([])
    deadLetters.refuse = undefined
    expect(await world.run({ p: batch.slice(1) })).toEqual({})
    expect(deadLetters.values).toHaveLength(1)
    expect(world.received()).toEqual(['a', 'c'])
  })

  test('a dead letter that cannot even be written returns its record', async () => {
    const deadLetters: Sink = {
      prepare: () => {
        throw new Error('broken')
      },
      deliver: async () => [],
    }
    const world = mapped(
      () => {
        throw new TerminalError('no')
      },
      { deadLetters: deadLetters as never },
    )
    expect(await world.run({ p: recordsOf(['a', 'b']) })).toEqual({ p: 0 })
  })

  test('an empty batch, and empty partitions among others, are done', async () => {
    const world = mapped(same)
    expect(await world.run({})).toEqual({})
    world.ports.refuse({ name: 'out' } as never, () => ({ status: 'retry', error: new Error('full') }))
    expect(await world.run({ a: [], b: recordsOf(['x'], 'b'), c: [], d: recordsOf(['y'], 'd'), e: [] })).toEqual({
      b: 0,
      d: 0,
    })
  })
})

describe('invariant 2: a step that throws', () => {
  test('is tried three times, then its record is a dead letter with the error', async () => {
    let tries = 0
    const world = mapped((line) => {
      if (line !== 'bad') return line
      tries++
      throw Object.assign(new RangeError('cannot'), { code: 'E7' })
    })
    expect(await world.run({ p: recordsOf(['a', 'bad', 'b']) })).toEqual({})
    expect(tries).toBe(3)
    expect(world.received()).toEqual(['a', 'b'])
    expect(world.ports.deadLettered).toMatchObject([
      {
        topology: 'app',
        stage: 'lines',
        position: '1',
        payload: Buffer.from('bad').toString('base64'),
        reason: { name: 'RangeError', message: 'cannot', code: 'E7', phase: 'step', attempts: 3 },
      },
    ])
    expect(world.ports.counted('attempts-failed')).toBe(3)
  })

  test('and then passes leaves nothing of the failed attempt behind', async () => {
    const app = new Topology('app')
    const [first, second] = [app.sink<string>('first'), app.sink<string>('second')]
    let throws = true
    const halves = app.source('lines', text()).flatMap(function* (line) {
      yield `${line}-1`
      if (throws) {
        throws = false
        throw new Error('once')
      }
      yield `${line}-2`
    })
    halves.to(first)
    halves.map((half) => half.toUpperCase()).to(second)
    const world = runnerOf(app, { maxPendingOutputs: 2 })
    expect(await world.run({ p: recordsOf(['a', 'b']) })).toEqual({})
    expect(world.ports.received(first)).toEqual(['a-1', 'a-2', 'b-1', 'b-2'])
    expect(world.ports.received(second)).toEqual(['A-1', 'A-2', 'B-1', 'B-2'])
    expect(world.ports.deadLettered).toEqual([])
  })

  test('for good leaves no output at all', async () => {
    const app = new Topology('app')
    const [early, late] = [app.sink<string>('early'), app.sink<string>('late')]
    const source = app.source('lines', text())
    source.to(early)
    source
      .map((line) => {
        if (line === 'bad') throw new Error('no')
        return line
      })
      .to(late)
    const world = runnerOf(app)
    await world.run({ p: recordsOf(['a', 'bad', 'b']) })
    expect(world.ports.received(early)).toEqual(['a', 'b'])
    expect(world.ports.received(late)).toEqual(['a', 'b'])
    expect(world.ports.deadLettered).toHaveLength(1)
  })

  test('a TerminalError makes a dead letter at once', async () => {
    let tries = 0
    const world = mapped(() => {
      tries++
      throw new TerminalError('never', { code: 'never' })
    })
    expect(await world.run({ p: recordsOf(['a']) })).toEqual({})
    expect(tries).toBe(1)
    expect(codes(world.ports.deadLettered)).toMatchObject([{ code: 'never', attempts: 1 }])
  })

  test('a RetryableError ends the partition there, and is not counted as an attempt', async () => {
    const stepped: string[] = []
    const world = mapped((line) => {
      stepped.push(line)
      if (line === 'later') throw new RetryableError('later')
      return line
    })
    expect(await world.run({ p: recordsOf(['a', 'later', 'b']) })).toEqual({ p: 1 })
    expect(stepped).toEqual(['a', 'later'])
    expect(world.received()).toEqual(['a'])
    expect(world.ports.counted('attempts-failed')).toBe(0)
    expect(world.ports.counted('records-returned')).toBe(2)
  })

  test.each<[string, () => unknown, string]>([
    ['undefined', () => undefined, 'a step threw undefined, which is not an Error'],
    ['null', () => null, 'a step threw null, which is not an Error'],
    ['a frozen object', () => Object.freeze({}), 'a step threw [object Object], which is not an Error'],
    ['a frozen error', () => Object.freeze(new Error('cold')), 'cold'],
    [
      'an error whose message throws',
      () =>
        Object.defineProperty(new Error(), 'message', {
          get() {
            throw new Error('x')
          },
        }),
      'a step threw a value that cannot be shown',
    ],
    ['an object without prototype', () => Object.create(null), 'a step threw a value that cannot be shown'],
  ])('that throws %s makes a dead letter, and its neighbours go on', async (_what, thrown, message) => {
    const world = mapped((line) => {
      if (line === 'bad') throw thrown()
      return line
    })
    expect(await world.run({ p: recordsOf(['a', 'bad', 'b']) })).toEqual({})
    expect(world.received()).toEqual(['a', 'b'])
    expect(world.ports.deadLettered).toMatchObject([{ reason: { message, code: 'step-failed' } }])
  })

  test('a record that cannot be decoded is tried once, and its phase is said', async () => {
    const app = new Topology('app')
    app.source('lines', text()).to(app.sink<string>('out'))
    const world = runnerOf(app)
    expect(await world.run({ p: recordsOf([undecodable]) })).toEqual({})
    expect(codes(world.ports.deadLettered)).toMatchObject([{ code: 'not-utf8', phase: 'decode', attempts: 1 }])
  })

  test('an output that the sink cannot take, and a key that is none, are the record’s failure', async () => {
    const app = new Topology('app')
    const source = app.source('lines', text())
    const keyed = app.sink<string>('keyed', {
      key: (line) => (line === 'odd' ? (undefined as unknown as string) : String(line)),
    })
    source.map((line) => (line === 'fn' ? ((() => line) as unknown as string) : line)).to(keyed)
    const world = runnerOf(app)
    expect(await world.run({ p: recordsOf(['a', 'odd', 'fn', 'b']) })).toEqual({})
    expect(codes(world.ports.deadLettered)).toMatchObject([{ code: 'key-not-text' }, { code: 'not-serialisable' }])
    expect(world.ports.received(keyed)).toEqual(['a', 'b'])
  })

  test('a key with half a surrogate pair is refused: as UTF-8 two such keys would be one', async () => {
    const app = new Topology('app')
    const keyed = app.sink<string>('keyed', { key: (line) => JSON.parse(line) as string })
    app.source('lines', text()).to(keyed)
    const world = runnerOf(app)
    await world.run({ p: recordsOf(['"\\ud800"', '"\\ud801"', '"\\ud83d\\ude00"']) })
    expect(codes(world.ports.deadLettered).map(({ code }) => code)).toEqual(['key-not-text', 'key-not-text'])
    expect(world.ports.received(keyed)).toHaveLength(1)
  })
})

describe('invariant 3: partitions do not hold each other up', () => {
  test('each ends at its own first failure', async () => {
    const world = mapped((line) => {
      if (line === 'later') throw new RetryableError('later')
      return line
    })
    world.ports.refuse({ name: 'out' } as never, (line) =>
      line === 'full' ? { status: 'retry', error: new Error('full') } : undefined,
    )
    const answer = await world.run({
      a: recordsOf(['a0', 'later', 'a2'], 'a'),
      b: recordsOf(['b0', 'b1'], 'b'),
      c: recordsOf(['c0', 'c1', 'full', 'c3'], 'c'),
    })
    expect(answer).toEqual({ a: 1, c: 2 })
    expect(world.received()).toEqual(['a0', 'b0', 'b1', 'c0', 'c1'])
  })
})

describe('invariant 4: near the deadline', () => {
  test('no further record is stepped, what was stepped is delivered, and the rest goes back', async () => {
    const world = mapped((line) => {
      world.clock.work(20_000)
      return line
    })
    expect(await world.run({ p: recordsOf(['0', '1', '2', '3', '4']), q: recordsOf(['5'], 'q') })).toEqual({
      p: 3,
      q: 0,
    })
    expect(world.received()).toEqual(['0', '1', '2'])
  })

  test('the margin is kept free, and is half of what is left where that is less', async () => {
    const stepped = async (remainingMs: number, options: WorldOptions = {}) => {
      const world = mapped((line) => {
        world.clock.work(100)
        return line
      }, options)
      const { p = 100 } = await world.run({ p: recordsOf(Array.from({ length: 100 }, String)) }, remainingMs)
      return p
    }
    expect(await stepped(3_000)).toBe(20)
    expect(await stepped(1_000)).toBe(5)
    expect(await stepped(3_000, { deadlineMargin: milliseconds(500) })).toBe(25)
    expect(await stepped(3_000, { deadlineMargin: seconds(0) })).toBe(30)
  })

  test.each(['deadlineMargin', 'retention', 'marksEvery'])('%s is a length of time, or refused', (option) => {
    for (const [length, shown] of [
      [500, '500'],
      [{ ms: Number.NaN }, 'NaN ms'],
    ]) {
      expect(() => mapped(String, { [option]: length })).toThrow(ConfigurationError)
      expect(() => mapped(String, { [option]: length })).toThrow(`${option} is ${shown}: give a length of time`)
    }
  })

  test('a batch with no time left goes back whole, unstepped', async () => {
    for (const remainingMs of [0, -5_000]) {
      const world = mapped(() => {
        throw new Error('stepped')
      })
      expect(await world.run({ p: recordsOf(['a', 'b']), q: recordsOf(['c'], 'q') }, remainingMs)).toEqual({
        p: 0,
        q: 0,
      })
      expect(world.ports.deadLettered).toEqual([])
    }
  })

  test('a sink that waits is told, and what it has not taken goes back', async () => {
    const { sink, calls } = answering(async (items, signal) => {
      world.clock.advance(59_500)
      await Promise.resolve()
      const error = new Error('cut')
      return items.map((_, i) => (i === 0 && signal.aborted ? delivered : { status: 'retry', error }))
    })
    const world = mapped(same, { sinks: { out: sink }, maxPendingOutputs: 2 })
    expect(await world.run({ p: recordsOf(['a', 'b', 'c']) })).toEqual({ p: 1 })
    expect(calls).toEqual([['a', 'b']])
  })

  test('once the signal has aborted no further delivery begins: dead letters of what was rejected go back', async () => {
    const out = answering(async (items) => {
      world.clock.advance(60_000)
      return items.map(() => ({ status: 'rejected', error: new Error('no') }))
    })
    const dead = answering(async (items) => items.map(() => delivered))
    const world = mapped(same, { sinks: { out: out.sink }, deadLetters: dead.sink as never })
    expect(await world.run({ p: recordsOf(['a', 'b']) })).toEqual({ p: 0 })
    expect(dead.calls).toEqual([])
  })

  test('no timer is left behind', async () => {
    const world = mapped(same)
    await world.run({ p: recordsOf(['a']) })
    expect(world.clock.nextWakeMs).toBeUndefined()
  })
})

describe('invariant 5: nothing is done because an error was caught', () => {
  const failing: [string, (items: readonly unknown[]) => Promise<readonly Outcome[]>][] = [
    ['rejects', () => Promise.reject(new Error('down'))],
    ['rejects with null', () => Promise.reject(null)],
    [
      'throws',
      () => {
        throw undefined
      },
    ],
    ['answers undefined', async () => undefined as never],
    ['answers short', async (items) => items.slice(1).map(() => delivered)],
    ['answers long', async (items) => [...items, 0].map(() => delivered)],
    ['answers with holes', async (items) => new Array<Outcome>(items.length)],
    ['answers nulls', async (items) => items.map(() => null as never)],
    ['answers in words of its own', async (items) => items.map(() => ({ status: 'ok' }) as never)],
  ]
  test.each(failing)('a sink that %s has delivered nothing, and makes no dead letters', async (_what, answer) => {
    const world = mapped(same, { sinks: { out: answering(answer).sink } })
    expect(await world.run({ p: recordsOf(['a', 'b']), q: recordsOf(['c'], 'q') })).toEqual({ p: 0, q: 0 })
    expect(world.ports.deadLettered).toEqual([])
    expect(world.ports.counted('records-out')).toBe(0)
  })

  test.each(failing)('dead letters that a sink %s are not written', async (_what, answer) => {
    const world = mapped(
      () => {
        throw new TerminalError('no')
      },
      { deadLetters: answering(answer).sink as never },
    )
    expect(await world.run({ p: recordsOf(['a', 'b']) })).toEqual({ p: 0 })
  })

  test('one sink that fails does not undo what another has', async () => {
    const app = new Topology('app')
    const [good, bad] = [app.sink<string>('good'), app.sink<string>('bad')]
    const source = app.source('lines', text())
    source.to(good)
    source.filter((line) => line === 'b').to(bad)
    const world = runnerOf(app, { sinks: { bad: answering(() => Promise.reject(new Error('down'))).sink } })
    expect(await world.run({ p: recordsOf(['a', 'b', 'c']) })).toEqual({ p: 1 })
    expect(world.ports.received(good)).toEqual(['a', 'b', 'c'])
  })
})
