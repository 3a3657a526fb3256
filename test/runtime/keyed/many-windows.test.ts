/**
 * Very many windows end at one number of the log, as at a full hour. They close over several invocations of little time, some of
 * which are killed in the middle; each window has one result, and no invocation passes its deadline.
 */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { seeded } from '../../../bench/state/zipf.ts'
import { type Trip, WindowStages } from '../../../bench/windows/stages.ts'
import { outputIdentity } from '../../../lib/core/record.ts'
import type { PartitionBatch } from '../../../lib/runtime/batch.ts'
import { delivered, type Sink } from '../../../lib/runtime/sink.ts'
import { MemoryStateStore } from '../../../lib/state/memory-store.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'
import { VirtualClock } from '../../../lib/testing/index.ts'

const keys = 100_000
const hourMs = 3_600_000
const startMs = Date.UTC(2026, 0, 1, 10)
const invocationMs = 5_000

/** What a call takes, in ms of the virtual clock. Commits run side by side, so one adds little. */
const costMs: Partial<Record<keyof StateStore | 'deliver', number>> = {
  readKeys: 20,
  commit: 0.2,
  readDue: 5,
  putDue: 20,
  deleteDue: 20,
  deliver: 20,
}

interface Delivered {
  readonly identity: string
  readonly value: { readonly key: string; readonly revision: number; readonly value: { readonly count: number } }
}

class World {
  readonly clock = new VirtualClock(startMs + hourMs)
  readonly store = new MemoryStateStore({ stage: 'by-key', clock: this.clock })
  /** By identity, as whoever reads them keeps them. */
  readonly results = new Map<string, Delivered['value']>()
  /** Identities that came again with another value. */
  readonly changed: string[] = []

  /** What is done before each call. */
  before: (name: string) => void = () => undefined

  /** How many deliveries from now on are refused, as by a stream that is throttled. */
  refusals = 0

  /** An execution environment that dies after so many calls: no answer reaches it any more, and it does nothing. */
  environment(callsToLive: number): { readonly stages: WindowStages; readonly death: Promise<'killed'> } {
    const death = Promise.withResolvers<'killed'>()
    let calls = 0
    const call = async <T>(name: keyof typeof costMs, effect: () => Promise<T>): Promise<T> => {
      if (++calls > callsToLive) {
        death.resolve('killed')
        return new Promise<T>(() => undefined)
      }
      this.before(name)
      this.clock.advance(costMs[name] ?? 1)
      return effect()
    }
    const store = new Proxy<StateStore>(this.store, {
      get: (target, name: keyof StateStore) => {
        const method = target[name] as (...args: unknown[]) => Promise<unknown>
        return (...args: unknown[]) => call(name, () => method.apply(target, args))
      },
    })
    const sink = (): Sink<unknown, Delivered> => ({
      prepare: ({ value, record, index }) => ({
        identity: outputIdentity(record, index),
        value: value as Delivered['value'],
      }),
      deliver: (items) =>
        call('deliver', async () => {
          if (this.refusals > 0) {
            this.refusals--
            return items.map(() => ({ status: 'retry', error: new Error('throttled') }))
          }
          for (const { identity, value } of items) {
            const known = this.results.get(identity)
            if (known && JSON.stringify(known) !== JSON.stringify(value)) this.changed.push(identity)
            this.results.set(identity, value)
          }
          return items.map(() => delivered)
        }),
    })
    return {
      stages: new WindowStages('hourly', { store, clock: this.clock, sink: sink as never }),
      death: death.promise,
    }
  }
}

const tripOf = (index: number): Trip => ({ key: `key-${index}`, atMs: startMs + index, cents: index })

/** Opens a window for each key; the answer is the frame at which all of them end. */
async function open(world: World, count: number): Promise<PartitionBatch> {
  const { stages } = world.environment(Number.POSITIVE_INFINITY)
  await stages.run(await stages.announce())
  for (let from = 0; from < count; from += 1_000) {
    await stages.send(Array.from({ length: 1_000 }, (_, i) => tripOf(from + i)))
  }
  expect(world.results.size).toBe(0)
  const closing = await stages.announce({ idleMs: () => hourMs })
  expect(closing.records.length).toBe(1)
  return closing
}

/** One result for each key: what was published twice had the same identity and the same value. */
async function expectOneEach(world: World, count: number): Promise<void> {
  expect(world.results.size).toBe(count)
  expect(new Set([...world.results.values()].map(({ key }) => key)).size).toBe(count)
  const wrong = [...world.results.values()].filter(({ revision, value }) => revision !== 0 || value.count !== 1)
  expect([wrong, world.changed]).toEqual([[], []])
  // Nothing waits any more, so nobody wakes the stage again.
  const { stages } = world.environment(Number.POSITIVE_INFINITY)
  expect((await stages.announce({ idleMs: () => 24 * hourMs })).records.length).toBe(0)
}

test('100,000 windows that end at once close over bounded invocations, some killed: none is missed, none is doubled', async () => {
  const world = new World()
  const random = seeded(6)
  let left: PartitionBatch | undefined = await open(world, keys)
  const invocations = { killed: 0, cut: 0, all: 0 }
  while (left !== undefined && invocations.all < 200) {
    invocations.all++
    const isToDie = random() < 0.5
    const environment = world.environment(isToDie ? 1 + Math.floor(random() * 20_000) : Number.POSITIVE_INFINITY)
    const deadlineMs = world.clock.nowMs() + invocationMs
    const outcome: PartitionBatch | undefined | 'killed' = await Promise.race([
      environment.stages.invoke(left, deadlineMs),
      environment.death,
    ])
    if (outcome === 'killed') {
      invocations.killed++
      continue
    }
    expect(world.clock.nowMs()).toBeLessThanOrEqual(deadlineMs)
    if (outcome !== undefined) invocations.cut++
    left = outcome
  }
  expect(left).toBeUndefined()
  expect(invocations.killed).toBeGreaterThan(1)
  expect(invocations.cut).toBeGreaterThan(1)
  await expectOneEach(world, keys)
}, 600_000)

test.each([1, 2])('a sink that refuses %p times in the middle makes no window miss its result', async (refusals) => {
  const world = new World()
  let left: PartitionBatch | undefined = await open(world, 4_000)
  for (let i = 0; left !== undefined && i < 50; i++) {
    if (i === 0) world.refusals = refusals
    left = await world.environment(Number.POSITIVE_INFINITY).stages.invoke(left, world.clock.nowMs() + 60_000)
  }
  expect(left).toBeUndefined()
  await expectOneEach(world, 4_000)
})

test('keys that an attempt has fired before it died are looked at, and not kept in memory', async () => {
  const count = 20_000
  const world = new World()
  const left = await open(world, count)
  const dying = world.environment(count)
  await Promise.race([dying.stages.invoke(left, Number.MAX_SAFE_INTEGER), dying.death])
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const liveMiB: number[] = []
  world.before = (name) => {
    if (name !== 'readKeys') return
    collectGarbage()
    liveMiB.push(process.memoryUsage().heapUsed / 2 ** 20)
  }
  await world.environment(Number.POSITIVE_INFINITY).stages.invoke(left, world.clock.nowMs() + hourMs)
  await expectOneEach(world, count)
  expect(liveMiB.length).toBeGreaterThanOrEqual(4)
  // Each draft takes more than a KiB.
  expect((liveMiB.at(-1) as number) - (liveMiB[0] as number)).toBeLessThan(10)
}, 240_000)
