/** The invariants of feeding-runner.ts (docs/guarantees.md 1, 2 and 4). */
import { z } from 'zod'
import { epochMs, lookup, milliseconds, minutes, RetryableError, TerminalError, Topology } from '../../../lib/index.ts'
import { comparePositions, endOf } from '../../../lib/runtime/frames/position.ts'
import { readSourceProgress } from '../../../lib/runtime/progress/progress-format.ts'
import { once, StageWorld, until } from '../stage-world.ts'

const schema = z.object({ key: z.string(), n: z.number(), time: z.number().optional() })
type Value = z.infer<typeof schema>
/** Event times count from here. */
const startMs = Date.UTC(2026, 0, 1)
const since = (marksMs: readonly number[]) => marksMs.map((markMs) => markMs - startMs)

type Step = (value: Value) => unknown[]

const prices = lookup('prices', { ttl: minutes(1), answers: 'may-change', load: async () => new Map<string, number>() })

/** `values` > flatMap (> lookup) > sink `out` and keyBy `by-key`, whose stage is not run. */
function feeding(step: Step = (value) => [value], looksUp = false) {
  const app = new Topology('feeding-app')
  const out = app.sink<unknown>('out')
  const stepped = app
    .source('values', schema, { eventTime: epochMs((v) => startMs + (v.time ?? v.n)), outOfOrderness: milliseconds(5) })
    .flatMap((value) => step(value))
  const mapped = looksUp
    ? stepped.enrich({ from: prices, key: (value) => (value as Value).key, join: (value) => value })
    : stepped
  mapped.to(out)
  mapped
    .keyBy('by-key', (value) => (value as Value).key, { slots: 4 })
    .reduce('last', (_, value) => value, { emit: 'on-update' })
    .to(app.sink<unknown>('lasts'))
  const world = new StageWorld(app, 'values')
  const send = (values: readonly Value[], options: Parameters<StageWorld['append']>[1] = {}) => {
    for (const value of values) world.append(JSON.stringify(value), options)
  }
  return { world, send, received: () => world.memory.received(out) }
}

const v = (key: string, n: number): Value => ({ key, n })
const ns = (values: readonly unknown[]) => values.map((value) => (value as Value).n)
const failingAt =
  (numbers: readonly number[], error: () => Error): Step =>
  (value) => {
    if (numbers.includes(value.n)) throw error()
    return [value]
  }
const boom = () => new Error('boom')

describe('numbers and outputs (1)', () => {
  test('every attempt publishes the same under the same positions, however its batch is cut', async () => {
    const values = Array.from({ length: 9 }, (_, i) => ({ ...v('abc'[i % 3] as string, i), time: (i * 7) % 11 }))
    const { world, send } = feeding((value) => [value, { ...value, n: value.n + 0.5 }])
    send(values)
    // `taken` refuses two contents of one position: the batches overlap, and progress is only written by the last.
    for (const [from, to] of [
      [0, 3],
      [0, 5],
      [0, 9],
    ] as const) {
      world.before = ({ name }) => (name === 'write-progress' ? Promise.reject(new Error('throttled')) : undefined)
      expect(await world.run(world.container({ maxPendingOutputs: 1 + to }), from, to)).toBe(0)
    }
    world.before = () => undefined
    expect(await world.run(world.container())).toBe(9)
    expect(ns(world.taken())).toEqual(values.flatMap(({ n }) => [n, n + 0.5]))
  })

  test('a record carries the largest event time before it, less the disorder, as its own mark', async () => {
    const { world, send } = feeding()
    send([20, 10, 30, 25].map((time, n) => ({ ...v('a', n), time })))
    for (const n of [0, 1, 2, 3]) expect(await world.run(world.container(), n, n + 1)).toBe(n + 1)
    expect(since(world.applied.map(({ ownMarkMs }) => ownMarkMs))).toEqual([Number.NEGATIVE_INFINITY, 15, 15, 25])
    expect(since(world.frames.map(({ markMs }) => markMs))).toEqual([Number.NEGATIVE_INFINITY, 15, 15, 25])
  })

  test('an attempt that is killed at any port call, and wakes when another has done its work, changes nothing', async () => {
    let killed = 0
    for (const side of ['before', 'after'] as const) {
      for (let at = 0; at < 100; at++) {
        const { world, send, received } = feeding()
        send([v('a', 1), v('b', 2), v('c', 3), v('a', 4), v('d', 5)])
        let calls = 0
        world[side] = () => (calls++ === at ? world.sleep() : undefined)
        const options = { maxPendingOutputs: 4 }
        const attempt = world.run(world.container(options))
        await Promise.race([attempt, until(() => world.sleeping > 0)])
        if (world.sleeping === 0) break
        killed++
        expect(await world.drain(options)).toBe(1)
        world.wake()
        expect(await attempt).toBe(5)
        expect({ side, at, received: ns(received()) }).toEqual({ side, at, received: [1, 2, 3, 4, 5] })
        expect(ns(world.taken())).toEqual([1, 2, 3, 4, 5])
      }
    }
    expect(killed).toBeGreaterThan(8)
  })
})

describe('progress (2)', () => {
  test('is written when everything was taken, and what is done is not done again', async () => {
    const { world, send } = feeding()
    send([v('a', 1), v('b', 2)])
    expect(await world.run(world.container())).toBe(2)
    const [progress, ...others] = ['write-progress', 'sink out', 'publish by-key'].map((call) =>
      world.calls.indexOf(call),
    )
    for (const at of others) expect(at).toBeLessThan(progress as number)
    expect(await world.progress()).toMatchObject({ completed: '101', number: 2 })
    world.calls.length = 0
    expect(await world.run(world.container())).toBe(2)
    expect(world.calls).toEqual(['read-progress'])
  })

  test('does not cover what a sink refused, and what is behind it comes again', async () => {
    const { world, send, received } = feeding()
    send([v('a', 1), v('b', 2), v('a', 3)])
    world.refuse = (_, value) => ((value as Value).n === 2 ? { status: 'retry', error: new Error('down') } : undefined)
    expect(await world.run(world.container())).toBe(1)
    expect(await world.progress()).toMatchObject({ completed: '100', number: 1 })
    const { sent } = readSourceProgress(await world.progress())
    for (const position of sent.get('by-key')?.values() ?? []) {
      expect(comparePositions(position, endOf(1))).toBeLessThanOrEqual(0)
    }
    expect(sent.get('by-key')?.size).toBe(2)
    world.refuse = () => undefined
    expect(await world.run(world.container(), 1)).toBe(3)
    expect(ns(received()).toSorted()).toEqual([1, 2, 3])
    expect(ns(world.taken())).toEqual([1, 2, 3])
  })

  test('an output refused for good has its dead letter, although a later one of the batch is to come again', async () => {
    const { world, send } = feeding()
    send([v('a', 1), v('b', 2), v('a', 3)])
    world.refuse = (sink, value) => {
      if (sink !== 'out') return undefined
      if ((value as Value).n === 1) return { status: 'rejected', error: new Error('not this one') }
      return (value as Value).n === 3 ? { status: 'retry', error: new Error('down') } : undefined
    }
    expect(await world.run(world.container())).toBe(2)
    expect(world.memory.deadLettered).toMatchObject([{ position: '100', reason: { phase: 'sink' } }])
  })

  test('does not cover a record whose dead letter was not taken', async () => {
    const { world, send } = feeding(failingAt([1], () => new TerminalError('never')))
    send([v('a', 0), v('b', 1), v('a', 2)])
    world.refuse = (sink) => (sink === '' ? { status: 'rejected', error: new Error('too large') } : undefined)
    expect(await world.run(world.container())).toBe(1)
    world.refuse = () => undefined
    expect(await world.run(world.container(), 1)).toBe(3)
    expect(world.memory.deadLettered).toHaveLength(1)
  })

  test('is not written over that of another attempt, and the answer is what is stored', async () => {
    const { world, send } = feeding()
    send([v('a', 1), v('b', 2), v('c', 3)])
    world.before = once(({ name }) => name === 'write-progress', world.sleep)
    const attempt = world.run(world.container(), 0, 3)
    await until(() => world.sleeping > 0)
    expect(await world.run(world.container(), 0, 2)).toBe(2)
    world.wake()
    expect(await attempt).toBe(2)
    expect(await world.progress()).toMatchObject({ completed: '101', number: 2 })
    expect(await world.run(world.container(), 2)).toBe(3)
    expect(ns(world.taken())).toEqual([1, 2, 3])
  })

  test('says of what was sent only what is done, so that the next attempt can vouch for the rest', async () => {
    const { world, send } = feeding()
    send(Array.from({ length: 20 }, (_, n) => v('a', n)))
    // The frames of the first attempt are taken by nobody, again and again.
    world.before = ({ name }) => (name === 'publish' ? Promise.reject(new Error('refused')) : undefined)
    for (let i = 0; i < 5; i++) expect(await world.run(world.container())).toBe(0)
    world.before = () => undefined
    expect(await world.run(world.container())).toBe(20)
    expect(world.gaps()).toEqual([])
  })

  test('slow steps come on, attempt by attempt', async () => {
    const { world, send, received } = feeding((value) => {
      world.clock.advance(1_000)
      return [value]
    })
    send(Array.from({ length: 30 }, (_, n) => v('a', n)))
    let done = 0
    for (let i = 0; i < 8 && done < 30; i++) done = await world.run(world.container(), done, 30, 10_000)
    expect([done, received().length]).toEqual([30, 30])
  })
})

describe('failing records (3)', () => {
  test('nothing behind one is published, and its failures are counted until it is a dead letter', async () => {
    const { world, send, received } = feeding(failingAt([2], boom))
    send([v('a', 1), v('b', 2), v('c', 3)])
    expect(await world.run(world.container())).toBe(1)
    expect([ns(received()), ns(world.taken())]).toEqual([[1], [1]])
    expect(await world.progress()).toMatchObject({ number: 1, failing: { number: 2, attempts: 1 } })
    expect(await world.drain()).toBe(3)
    expect(world.memory.deadLettered).toMatchObject([
      { position: '101', reason: { message: 'boom', attempts: 3, phase: 'step' } },
    ])
    expect(ns(world.taken())).toEqual([1, 3])
  })

  test('a record that cannot be decoded is a dead letter at once, and takes nothing of its neighbours', async () => {
    const { world, send, received } = feeding()
    send([v('a', 1)])
    world.append('{')
    world.append('{"key":1}')
    send([v('b', 4)])
    expect(await world.run(world.container())).toBe(4)
    expect([ns(received()), ns(world.taken())]).toEqual([
      [1, 4],
      [1, 4],
    ])
    expect(world.memory.deadLettered.map(({ reason }) => reason.phase)).toEqual(['decode', 'validate'])
  })

  test('a TerminalError makes a dead letter at once; a RetryableError is never counted', async () => {
    const { world, send } = feeding((value) => {
      if (value.n === 1) throw new TerminalError('never')
      if (value.n === 2) throw new RetryableError('later')
      return [value]
    })
    send([v('a', 0), v('a', 1), v('a', 2), v('a', 3)])
    for (let i = 0; i < 6; i++) expect(await world.run(world.container({ attempts: 2 }))).toBe(2)
    expect(world.memory.deadLettered.map(({ reason }) => reason.message)).toEqual(['never'])
    expect((await world.progress()).failing).toBeUndefined()
  })

  test('one inside an aggregate ends its entry there, and the next attempt goes on behind what is done', async () => {
    const { world, send, received } = feeding(failingAt([3, 5], boom))
    send([v('a', 1), v('b', 2), v('c', 3), v('d', 4), v('e', 5), v('f', 6)], { position: '100' })
    expect(await world.run(world.container())).toBe(0)
    expect(await world.progress()).toMatchObject({ number: 0, doneThrough: 2 })
    expect(await world.drain({ attempts: 2 })).toBeLessThan(8)
    expect(world.memory.deadLettered.map(({ subPosition }) => subPosition)).toEqual([2, 4])
    expect([ns(received()), ns(world.taken())]).toEqual([
      [1, 2, 4, 6],
      [1, 2, 4, 6],
    ])
    // The event times of what was done before still count.
    expect(since(world.applied.map(({ ownMarkMs }) => ownMarkMs))).toEqual([Number.NEGATIVE_INFINITY, -4, -2, 0])
  })
})

describe('records that end the process (4)', () => {
  const aggregate = { name: 'an aggregate', position: '100', isBisected: true }
  const batch = { name: 'a batch that nobody bisects', position: undefined, isBisected: false }
  const lookedUp = { ...aggregate, name: 'an aggregate for which something is looked up', looksUp: true }
  test.each(
    [[3], [1], [6], [2, 5]].flatMap((killers) => [aggregate, batch, lookedUp].map((of) => ({ killers, ...of }))),
  )('$killers of $name are found, and become dead letters', async ({ killers, position, isBisected, ...of }) => {
    let isDead = false
    const made = feeding(
      (value) => {
        if (killers.includes(value.n)) isDead = true
        return [value]
      },
      'looksUp' in of,
    )
    const { world, send } = made
    const arrivalTimeMs = world.clock.nowMs() - 120_000
    send(
      [1, 2, 3, 4, 5, 6].map((n) => v('ab'[n % 2] as string, n)),
      { ...(position && { position }), arrivalTimeMs },
    )
    let done: number | undefined
    for (let i = 0; i < 60 && done !== 6; i++) {
      isDead = false
      world.before = () => (isDead ? world.sleep() : undefined)
      const died = until(() => isDead && world.sleeping > 0).then(
        () => undefined,
        () => undefined,
      )
      const container = world.container({ attempts: 2 }, { readsAnswers: () => isBisected })
      done = await Promise.race([world.run(container), died])
    }
    expect(done).toBe(6)
    expect(
      world.memory.deadLettered.map(({ payload, reason }) => [
        JSON.parse(Buffer.from(payload ?? '', 'base64').toString()).n,
        reason.code,
      ]),
    ).toEqual(killers.map((number) => [number, 'killed-process']))
    expect(ns(world.taken())).toEqual([1, 2, 3, 4, 5, 6].filter((n) => !killers.includes(n)))
  })
})
