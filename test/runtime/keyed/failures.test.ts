/** Invariant 4 of keyed-runner.ts (docs/guarantees.md 4 and 5): failing records, dead letters, killers, deadlines. */

import { crc32 } from 'node:zlib'
import { RetryableError, TerminalError } from '../../../lib/index.ts'
import { encodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import type { Ports } from '../../../lib/runtime/ports.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'
import { once, until } from '../stage-world.ts'
import { adder, adding, type Step, value } from './keyed-world.ts'

const failingAt =
  (numbers: readonly number[], error: () => Error): Step =>
  (given, context) => {
    context.state.sum.set(-1)
    if (numbers.includes(given.n)) throw error()
    context.state.sum.clear()
    context.state.last.add(given.n)
    return [{ key: given.key, n: given.n }]
  }

const effects = (calls: readonly string[]) => calls.filter((call) => !call.startsWith('read'))
const boom = () => new Error('boom')

test('nothing behind a failing record is published or committed, for any key, and its failure is counted', async () => {
  const { world, received } = adder(failingAt([3], boom))
  world.frame([value('a', 1), value('b', 2)])
  world.frame([value('a', 3), value('c', 4), value('b', 5)])
  expect(await world.run(world.container())).toBe(1)
  expect(effects(world.calls).toSorted()).toEqual([
    'commit a@1',
    'commit b@2',
    'publish by-parity',
    'sink out',
    'write-progress',
  ])
  expect(received()).toEqual([
    { key: 'a', n: 1 },
    { key: 'b', n: 2 },
  ])
  expect(await world.progress()).toMatchObject({ completed: '100', number: 2, failing: { number: 3, attempts: 1 } })
  expect(await world.stateOf('a')).toEqual({ 'adder.last': [1] })
  expect(String(world.error)).toBe('Error: boom')
})

test('after its attempts the record is a dead letter with its bytes, its coordinates and the error', async () => {
  const { world, received } = adder(failingAt([3], boom))
  world.frame([value('a', 1), value('a', 3), value('b', 5)])
  // Three failures, then one attempt that gives it up.
  expect(await world.drain({ attempts: 3 })).toBe(4)
  expect(world.memory.deadLettered).toHaveLength(1)
  const [letter] = world.memory.deadLettered
  expect(letter).toMatchObject({
    id: 'by-key/slot-0/2',
    stage: 'by-key',
    source: 'values',
    partition: 'p-0',
    position: '2',
    reason: { message: 'boom', phase: 'step', attempts: 3 },
    keyed: { side: 'by-key', slot: 0, number: 2, eventTimeMs: 2, ownMarkMs: null },
  })
  expect(Buffer.from(letter?.payload ?? '', 'base64').toString()).toBe(JSON.stringify(value('a', 3)))
  expect(Buffer.from(letter?.key ?? '', 'base64').toString()).toBe('a')
  expect(received()).toHaveLength(2)
  expect(await world.stateOf('a')).toEqual({ 'adder.last': [1] })
  expect((await world.progress()).failing).toBeUndefined()
})

test('attempts count over the containers, and only at their record', async () => {
  const { world } = adder(failingAt([1, 2], boom))
  world.frame([value('a', 1), value('a', 2), value('b', 3)])
  const failing: unknown[] = []
  for (let i = 0; i < 10 && failing.at(-1) !== 'none'; i++) {
    await world.run(world.container({ attempts: 2 }))
    failing.push((await world.progress()).failing ?? 'none')
  }
  expect(failing).toEqual([
    { number: 1, attempts: 1 },
    { number: 1, attempts: 2 },
    { number: 2, attempts: 1 },
    { number: 2, attempts: 2 },
    'none',
  ])
  // Two poison records of one source stage, in one frame: a dead letter each.
  expect(world.memory.deadLettered.map(({ keyed }) => keyed?.number)).toEqual([1, 2])
})

test('a TerminalError makes a dead letter at once, and the batch goes on', async () => {
  const { world, received } = adder(failingAt([2], () => new TerminalError('never')))
  world.frame([value('a', 1), value('a', 2), value('a', 3)])
  expect(await world.run(world.container())).toBe(1)
  expect(world.memory.deadLettered).toMatchObject([{ reason: { message: 'never', attempts: 1 } }])
  expect(received()).toEqual([
    { key: 'a', n: 1 },
    { key: 'a', n: 3 },
  ])
  expect(await world.stateOf('a')).toEqual({ 'adder.last': [1, 3] })
})

test('a RetryableError goes back and is never counted', async () => {
  const { world } = adder(failingAt([2], () => new RetryableError('later')))
  world.frame([value('a', 1), value('a', 2)])
  for (let i = 0; i < 9; i++) expect(await world.run(world.container({ attempts: 2 }))).toBe(0)
  expect(await world.progress()).toMatchObject({ doneThrough: 1 })
  expect((await world.progress()).failing).toBeUndefined()
  expect(world.memory.deadLettered).toEqual([])
})

test('a record that does not fail any more after its attempts is a dead letter all the same', async () => {
  const faults: { on: boolean } = { on: true }
  const { world, received } = adder((given, context) => {
    if (faults.on) throw new Error('boom')
    return adding(given, context)
  })
  world.frame([value('a', 1), value('a', 2)])
  expect(await world.run(world.container({ attempts: 1 }))).toBe(0)
  faults.on = false
  expect(await world.run(world.container({ attempts: 1 }))).toBe(1)
  expect(world.memory.deadLettered).toMatchObject([{ reason: { code: 'given-up' } }])
  expect(received()).toEqual([{ key: 'a', n: 2, sum: 2 }])
})

test('a step that changes what it was given starts anew when it runs again', async () => {
  const { world, received } = adder((given, { state }) => {
    given.n += 1
    state.byEntry.set('x', (state.byEntry.get('x') ?? 0) + given.n)
    return [{ n: given.n }]
  })
  const ports = { freezesValues: false }
  world.frame([value('a', 1)])
  await world.run(world.container({}, ports))
  world.frame([value('a', 10)])
  expect(await world.run(world.container({}, ports), 1)).toBe(2)
  expect(received()).toEqual([{ n: 2 }, { n: 11 }])
})

test('an entry that cannot be decoded is a dead letter with its bytes, and takes a number', async () => {
  const { world, received } = adder()
  world.append('no frame at all')
  world.frame([value('a', 1)])
  expect(await world.run(world.container())).toBe(2)
  const [letter] = world.memory.deadLettered
  expect(letter).toMatchObject({
    stage: 'by-key',
    source: 'by-key',
    position: '100',
    reason: { phase: 'decode', attempts: 1 },
  })
  expect(Buffer.from(letter?.payload ?? '', 'base64').toString()).toBe('no frame at all')
  expect(received()).toHaveLength(1)
  expect(await world.positionOf('a')).toBe(2)
})

test('a frame of a newer release waits, and what lies before it is done', async () => {
  const { world, received } = adder()
  world.frame([value('a', 1)])
  const newer = Buffer.from(encodeFrame(emptyFrame).bytes)
  newer[6] = 99
  newer.writeUInt32BE(crc32(newer.subarray(6)), 2)
  world.append(newer)
  const end = await world.run(world.container())
  expect([end, received().length]).toEqual([1, 1])
  expect(world.error).toMatchObject({ code: 'frame-newer' })
  expect(world.memory.deadLettered).toEqual([])
})

const emptyFrame = {
  kind: 'frame',
  upstream: { name: 'values', partition: 'p-0' },
  slot: 0,
  schemaVersion: 1,
  markMs: 0,
  claims: [],
  records: [],
} as const

/** A step that kills its process is one that never lets the attempt go on. */
function killing(numbers: readonly number[], ports: Partial<Ports> = {}) {
  const made = adder((given, context) => {
    if (numbers.includes(given.n)) throw new Killed()
    return adding(given, context)
  })
  const attempt = async (from: number, to: number): Promise<number | undefined> => {
    // The process is gone as soon as the step is reached, so nothing that comes after it happens.
    const world = made.world
    let isDead = false
    world.before = () => (isDead ? world.sleep() : undefined)
    Killed.ring = () => {
      isDead = true
    }
    const ended = world.run(world.container({ attempts: 2 }, ports), from, to)
    const died = until(() => isDead).then(
      () => undefined,
      () => undefined,
    )
    return Promise.race([ended, died])
  }
  return { ...made, attempt }
}

class Killed extends Error {
  static ring: () => void = () => undefined

  constructor() {
    super('killed')
    Killed.ring()
  }
}

test.each([[[3]], [[1]], [[8]], [[2, 7]], [[4, 5]]])(
  'records %j that kill the process are found inside a lone frame, and become dead letters unseen',
  async (killers) => {
    const { world, attempt, received } = killing(killers)
    const arrivalTimeMs = world.clock.nowMs() - 120_000
    world.frame(
      [1, 2, 3, 4, 5, 6, 7, 8].map((n) => value(n % 2 === 0 ? 'even' : 'odd', n)),
      { arrivalTimeMs },
    )
    let attempts = 0
    let done: number | undefined
    for (; attempts < 60 && done !== 1; attempts++) done = await attempt(0, 1)
    expect(done).toBe(1)
    expect(world.memory.deadLettered.map(({ keyed, reason }) => [keyed?.number, reason.code])).toEqual(
      killers.map((number) => [number, 'killed-process']),
    )
    expect(received().map((output) => (output as { n: number }).n)).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8].filter((n) => !killers.includes(n)),
    )
    expect(await world.progress()).toMatchObject({ number: 8 })
  },
)

test.each([[[3]], [[1, 6]], [[5, 6]]])(
  'records %j that kill the process are found inside a batch that nobody bisects: Kafka without provisioned pollers',
  async (killers) => {
    const { world, attempt, received } = killing(killers, { readsAnswers: () => false })
    const arrivalTimeMs = world.clock.nowMs() - 120_000
    for (const ns of [[1, 2], [3], [4, 5, 6]]) {
      world.frame(
        ns.map((n) => value(n % 2 === 0 ? 'even' : 'odd', n)),
        { arrivalTimeMs },
      )
    }
    let done: number | undefined
    for (let attempts = 0; attempts < 60 && done !== 3; attempts++) done = await attempt(0, 3)
    expect(done).toBe(3)
    expect(world.memory.deadLettered.map(({ keyed, reason }) => [keyed?.number, reason.code])).toEqual(
      killers.map((number) => [number, 'killed-process']),
    )
    expect(received().map((output) => (output as { n: number }).n)).toEqual(
      [1, 2, 3, 4, 5, 6].filter((n) => !killers.includes(n)),
    )
  },
)

test('an attempt that was taken for dead does not apply its record after all, once that is a dead letter', async () => {
  const { world } = adder()
  world.frame([value('a', 1)], { arrivalTimeMs: world.clock.nowMs() - 120_000 })
  let written = 0
  // The first write notes the suspect, the second clears it.
  world.before = once(({ name }) => name === 'write-progress' && ++written === 2, world.sleep)
  const attempt = world.run(world.container({ attempts: 1 }))
  await until(() => world.sleeping > 0)
  expect(await world.run(world.container({ attempts: 1 }))).toBe(1)
  expect(world.memory.deadLettered).toMatchObject([{ reason: { code: 'killed-process' } }])
  world.wake()
  expect(await attempt).toBe(1)
  expect(await world.stateOf('a')).toEqual({})
  expect(await world.positionOf('a')).toBe(1)
})

test('a record whose attempt dies behind its step, when it was published, is no killer', async () => {
  const { world, received } = adder()
  world.frame([value('a', 1)], { arrivalTimeMs: world.clock.nowMs() - 120_000 })
  for (let died = 0; died < 5; died++) {
    world.before = once(({ name }) => name === 'commit', world.sleep)
    void world.run(world.container({ attempts: 1 }))
    await until(() => world.sleeping > died)
  }
  expect(await world.run(world.container({ attempts: 1 }))).toBe(1)
  expect(world.memory.deadLettered).toEqual([])
  expect(received()).toHaveLength(1)
  expect(await world.positionOf('a')).toBe(1)
})

test('a lone frame is not suspected because a port fails', async () => {
  const { world, received } = adder()
  world.frame([value('a', 1)], { arrivalTimeMs: world.clock.nowMs() - 120_000 })
  for (const name of ['read-keys', 'publish', 'commit', 'read-keys', 'publish', 'commit', 'read-keys', 'sink']) {
    world.before = once(
      (call) => call.name === name,
      () => Promise.reject(new Error('throttled')),
    )
    expect(await world.run(world.container({ attempts: 2 }))).toBe(0)
    expect([undefined, { from: 2, to: 1, attempts: 0 }]).toContainEqual((await world.progress()).suspect)
  }
  expect(await world.run(world.container({ attempts: 2 }))).toBe(1)
  expect(world.memory.deadLettered).toEqual([])
  expect(received()).toHaveLength(1)
})

test.each([
  ['does not come', () => Promise.reject(new Error('unanswered'))],
  ['looks like that to another attempt', () => false],
])('a lone frame is not suspected by a note whose answer %s: it is taken back', async (_, answer) => {
  const { world, received } = adder()
  world.frame([value('a', 1)], { arrivalTimeMs: world.clock.nowMs() - 120_000 })
  const store = world.ports().state?.('by-key') as StateStore
  for (let attempts = 0; attempts < 4; attempts++) {
    let written = 0
    const writeProgress: StateStore['writeProgress'] = async (...args) => {
      const isWritten = await store.writeProgress(...args)
      return ++written === 1 ? answer() : isWritten
    }
    const state = () => ({ ...store, writeProgress })
    expect(await world.run(world.container({ attempts: 2 }, { state }))).toBe(0)
    expect((await world.progress()).suspect).toBeUndefined()
  }
  expect(await world.run(world.container({ attempts: 2 }))).toBe(1)
  expect(world.memory.deadLettered).toEqual([])
  expect(received()).toHaveLength(1)
})

test('what was stepped and published is not suspected again, although its commit was refused', async () => {
  const { world } = adder()
  world.frame([value('a', 1)], { arrivalTimeMs: world.clock.nowMs() - 120_000 })
  world.before = once(
    (call) => call.name === 'commit',
    () => Promise.reject(new Error('throttled')),
  )
  expect(await world.run(world.container({ attempts: 1 }))).toBe(0)
  expect((await world.progress()).suspect).toEqual({ from: 2, to: 1, attempts: 0 })
  expect(await world.run(world.container({ attempts: 1 }))).toBe(1)
  expect((await world.progress()).suspect).toBeUndefined()
})

test('several keys that outgrow their items in a lone frame are no killers', async () => {
  const { world } = adder((given, { state }) => {
    state.blob.set('x'.repeat(given.n))
  })
  const many = ['a', 'b', 'c', 'd', 'e'].map((key) => value(key, 390_000))
  world.frame([...many, value('f', 1)], { arrivalTimeMs: world.clock.nowMs() - 120_000 })
  expect(await world.run(world.container({ attempts: 1 }))).toBe(1)
  expect(world.memory.deadLettered.map(({ reason }) => reason.code)).toEqual(Array(5).fill('state-too-large'))
  expect(await world.stateOf('f')).toMatchObject({ 'adder.blob': 'x' })
})

describe('deadlines', () => {
  test('slow steps come on, attempt by attempt', async () => {
    const { world, received } = adder((given, context) => {
      world.clock.advance(1_000)
      return adding(given, context)
    })
    world.frame(Array.from({ length: 30 }, (_, i) => value('a', i)))
    const sizes: number[] = []
    for (let i = 0; i < 20 && sizes.at(-1) !== 30; i++) {
      await world.run(world.container(), 0, 1, 10_000)
      sizes.push(received().length)
    }
    expect(sizes.at(-1)).toBe(30)
    expect(sizes.length).toBeLessThan(8)
    expect(await world.stateOf('a')).toMatchObject({ 'adder.sum': 435 })
  })

  test.each(['read-keys', 'sink', 'publish', 'commit', 'read-entries'])(
    'a %s that lasts until the deadline leaves what was done before it',
    async (name) => {
      const { world, received } = adder((given, context) => {
        if (given.n === 3) context.state.byEntry.get('entry')
        return adding(given, context)
      })
      world.frame([value('a', 0), value('b', 0), value('c', 0)])
      await world.run(world.container())
      world.frame([value('a', 1), value('b', 2), value('c', 3)])
      let seen = 0
      world.before = (call) => {
        if (call.name !== name || ++seen < (name.startsWith('read') ? 1 : 2)) return undefined
        world.clock.advance(59_000)
        return undefined
      }
      const end = await world.run(world.container({ mostKeysPerCommit: 1 }), 1)
      const { number, doneThrough = number } = await world.progress()
      expect([end, number]).toEqual([1, 3])
      expect(doneThrough).toBe({ 'read-keys': 3, sink: 4, publish: 4, commit: 4, 'read-entries': 5 }[name])
      world.before = () => undefined
      expect(await world.run(world.container(), 1)).toBe(2)
      expect(received()).toHaveLength(6)
      expect([await world.stateOf('a'), await world.stateOf('b'), await world.stateOf('c')]).toMatchObject([
        { 'adder.sum': 1 },
        { 'adder.sum': 2 },
        { 'adder.sum': 3 },
      ])
      expect(world.taken()).toEqual(received())
    },
  )
})
