/**
 * After a reset from a time, state comes to what a fold of the records from that time on comes to, whatever was in flight, whatever old
 * frames still lie in the streams of the keyed stages, and however warm containers are. Attempts are cut at random, repeat what is done,
 * sleep at any port call and go on while the reset does its work.
 */
import * as fc from 'fast-check'
import { z } from 'zod'
import { SourceRecord } from '../../../lib/core/record.ts'
import { mapState, Topology, valueState } from '../../../lib/index.ts'
import { plan } from '../../../lib/plan/plan.ts'
import { announce } from '../../../lib/runtime/announcer/announcer.ts'
import type { Ports } from '../../../lib/runtime/ports.ts'
import { begin, fence, nextGeneration, type ResettableStage, release } from '../../../lib/runtime/progress/reset.ts'
import { createRunner, type Runner } from '../../../lib/runtime/runner.ts'
import { MemoryStateStore } from '../../../lib/state/memory-store.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { wholePartition } from '../../../lib/testing/memory-streams.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'

const { signal } = new AbortController()
const startMs = Date.UTC(2026, 0, 1)
const schema = z.object({ key: z.string(), n: z.number() })
type Value = z.infer<typeof schema>

function topology() {
  const app = new Topology('reset-app')
  const summed = app
    .source('values', schema)
    .keyBy('by-key', (value) => value.key, { slots: 4 })
    .process('adder', {
      state: { sum: valueState<number>(), tens: mapState<number>() },
      step: ({ n }, { key, state }) => {
        const sum = (state.sum.get() ?? 0) + n
        state.sum.set(sum)
        const entry = String(n % 10)
        state.tens.set(entry, (state.tens.get(entry) ?? 0) + 1)
        return [{ key, n, sum }]
      },
    })
  const sums = app.sink<{ key: string; n: number; sum: number }>('sums')
  summed.to(sums)
  summed
    .keyBy('by-digit', ({ n }) => String(n % 3), { slots: 4 })
    .process('totals', {
      state: { total: valueState<number>() },
      step: ({ n }, { state }) => {
        state.total.set((state.total.get() ?? 0) + n)
        return []
      },
    })
  return { app, sums }
}

/** Progress outlives a reset; everything else is dropped by `empty`. */
class EmptiedStore {
  readonly names = new Set<string>()
  readonly #progress: StateStore
  #keys: StateStore
  readonly #make: () => StateStore
  readonly port: StateStore

  constructor(make: () => StateStore) {
    this.#make = make
    this.#progress = make()
    this.#keys = make()
    const target = {} as StateStore
    this.port = new Proxy(target, {
      get: (_, name) => {
        const isOfProgress = name === 'readProgress' || name === 'writeProgress'
        return (...args: unknown[]) => {
          if (name === 'writeProgress') this.names.add(args[0] as string)
          const store = isOfProgress ? this.#progress : this.#keys
          return (Reflect.get(store, name) as (...all: unknown[]) => unknown).apply(store, args)
        }
      },
    })
  }

  empty(): void {
    this.#keys = this.#make()
  }
}

interface Log {
  readonly stage: string
  readonly partition: string
  readonly records: SourceRecord[]
  at: number
}

const quiet = (): Promise<undefined> => new Promise((resolve) => void setImmediate(() => resolve(undefined)))

const recordOf = (
  source: string,
  partition: string,
  position: string,
  arrivalTimeMs: number,
  payload: string | Buffer,
) =>
  new SourceRecord({ source, partition, position, arrivalTimeMs, key: 'k', payload } as ConstructorParameters<
    typeof SourceRecord
  >[0])

class World {
  readonly made = topology()
  readonly planned = plan(this.made.app)
  readonly memory = memoryPorts()
  readonly stores = new Map<string, EmptiedStore>()
  readonly #random: Random
  readonly #logs: Log[] = []
  readonly #idle: { readonly stage: string; readonly runner: Runner }[] = []
  readonly #asleep: (() => void)[] = []
  sleeps = true
  readonly errors: unknown[] = []

  constructor(seed: number, values: readonly Value[]) {
    this.#random = new Random(seed)
    this.memory.serve?.(this.planned)
    for (const { name } of this.planned.stages) {
      this.stores.set(name, new EmptiedStore(() => new MemoryStateStore({ stage: name, clock: this.memory.clock })))
    }
    const records = values.map((value, i) =>
      recordOf('values', 'shard-0', String(i), startMs + i, Buffer.from(JSON.stringify(value))),
    )
    this.#logs.push({ stage: 'values', partition: 'shard-0', records, at: 0 })
  }

  #below(share: number): boolean {
    return this.#random.next() < share
  }

  /** So many attempts, or until all is done. */
  async play(attempts: number): Promise<void> {
    for (let i = 0; i < attempts; i++) {
      if (this.#below(0.3) || !this.sleeps) await this.wake()
      if (this.#below(0.1)) await this.#announce()
      this.#read()
      const open = this.#logs.filter(({ at, records }) => at < records.length)
      if (open.length === 0 && this.#asleep.length === 0) return
      if (open.length > 0) await this.#attempt(open[Math.floor(this.#random.next() * open.length)] as Log)
    }
  }

  /** A round may sleep, too, and say what was true before a reset. */
  async #announce(): Promise<void> {
    const round = announce({ planned: this.planned, ports: this.#ports(), signal })
    await Promise.race([round.catch((error) => this.errors.push(error)), quiet()])
  }

  get isDrained(): boolean {
    this.#read()
    return this.#asleep.length === 0 && this.#logs.every(({ at, records }) => at === records.length)
  }

  async wake(): Promise<void> {
    this.#asleep.splice(Math.floor(this.#random.next() * this.#asleep.length), 1)[0]?.()
    await quiet()
  }

  async wakeAll(): Promise<void> {
    while (this.#asleep.length > 0) await this.wake()
  }

  /** What a mapping does that is made anew with an earlier position than the reset's, or with just that. */
  rewind(first: number): void {
    const [source] = this.#logs as [Log]
    source.at = Math.floor(this.#random.next() * (first + 1))
  }

  /** The reset, as the command does it: what is in flight goes on beside it, and has ended before anything is emptied. */
  async reset(startsAtMs: number): Promise<void> {
    const stages = this.planned.stages.map(
      ({ name, kind }): ResettableStage => ({
        name,
        kind: kind as 'feeding' | 'keyed',
        store: (this.stores.get(name) as EmptiedStore).port,
        progressNames: async () => {
          if (this.#below(0.5)) await this.wake()
          return [...(this.stores.get(name) as EmptiedStore).names].filter((stored) => stored.includes('/'))
        },
      }),
    )
    const generation = { generation: await nextGeneration(stages, signal), startsAtMs }
    await begin(stages, generation, signal)
    await fence(stages, generation, signal)
    // Some keyed attempts begin between the fences, too: a mapping may still deliver.
    await this.#attemptKeyed()
    await this.wakeAll()
    await fence(stages, generation, signal)
    for (const store of this.stores.values()) store.empty()
    await release(stages, generation, signal)
  }

  async #attemptKeyed(): Promise<void> {
    this.#read()
    const open = this.#logs.filter(({ stage, at, records }) => stage !== 'values' && at < records.length)
    for (const log of open) if (this.#below(0.5)) await this.#attempt(log)
  }

  #read(): void {
    for (const stage of ['by-key', 'by-digit']) {
      for (const { eventID, kinesis } of this.memory.takeFrames(stage).flatMap(({ Records }) => Records)) {
        const partition = eventID.slice(0, eventID.indexOf(':'))
        let log = this.#logs.find((one) => one.stage === stage && one.partition === partition)
        if (log === undefined) {
          log = { stage, partition, records: [], at: 0 }
          this.#logs.push(log)
        }
        log.records.push(recordOf(stage, partition, kinesis.sequenceNumber, startMs, kinesis.data))
      }
    }
  }

  async #attempt(log: Log): Promise<void> {
    const from = this.#below(0.2) && log.stage !== 'values' ? Math.floor(this.#random.next() * (log.at + 1)) : log.at
    const to = Math.min(log.records.length, from + 1 + Math.floor(this.#random.next() * 6))
    const index = this.#below(0.8) ? this.#idle.findIndex(({ stage }) => stage === log.stage) : -1
    const container = index < 0 ? this.#container(log.stage) : this.#idle.splice(index, 1)[0]
    if (container === undefined) return
    const records = log.records.slice(from, to)
    const run = async () => {
      try {
        const { failures } = await container.runner.run([{ partition: log.partition, records }], { deadlineMs: 1e15 })
        return failures[0] === undefined ? to : from + failures[0].index
      } catch (error) {
        this.errors.push(error)
        return from
      }
    }
    const done = await Promise.race([run(), quiet()])
    if (done === undefined) return
    this.#idle.push(container)
    log.at = Math.max(log.at, done)
  }

  #container(stage: string) {
    const planned = this.planned.stages.find(({ name }) => name === stage) as (typeof this.planned.stages)[number]
    const options = { mostKeysPerCommit: 1 + Math.floor(this.#random.next() * 3), warmKeys: 100 }
    return { stage, runner: createRunner(this.planned.topology, planned, this.#ports(), options) }
  }

  #ports(): Ports {
    const { memory } = this
    const gate = async () => {
      if (this.sleeps && this.#below(0.08)) await new Promise<void>((wake) => void this.#asleep.push(wake))
    }
    const watched = (store: StateStore): StateStore =>
      new Proxy(store, {
        get: (target, name) => {
          const method = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>
          return async (...args: unknown[]) => {
            await gate()
            const result = await method.apply(target, args)
            await gate()
            return result
          }
        },
      })
    const source = {
      list: async () => [{ partition: 'shard-0', isClosed: false, ...wholePartition }],
      isCaughtUp: async () => false,
      describe: async () => wholePartition,
      isDrained: async () => false,
    }
    return {
      ...memory,
      checksPurity: false,
      deadLetters: memory.deadLetters,
      state: (name) => watched((this.stores.get(name) as EmptiedStore).port),
      lineage: (name) => (name === 'values' ? source : memory.lineage?.(name)),
    }
  }
}

function oracle(values: readonly Value[]) {
  const sums = new Map<string, number>()
  const totals = new Map<string, number>()
  for (const { key, n } of values) {
    sums.set(key, (sums.get(key) ?? 0) + n)
    totals.set(String(n % 3), (totals.get(String(n % 3)) ?? 0) + n)
  }
  return { sums, totals }
}

test('after a reset state is that of the records from its time on, whatever went on before', async () => {
  const values = fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), n: fc.nat({ max: 99 }) }), {
    minLength: 1,
    maxLength: 30,
  })
  let dropped = 0
  const resets = fc.array(fc.tuple(fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 40 })), fc.nat({ max: 30 })), {
    minLength: 1,
    maxLength: 3,
  })
  await fc.assert(
    fc.asyncProperty(fc.integer(), values, resets, async (seed, sent, each) => {
      const world = new World(seed, sent)
      let first = 0
      for (const [attempts, from] of each) {
        await world.play(attempts)
        first = Math.min(from, sent.length)
        await world.reset(startMs + first)
        world.rewind(first)
      }
      world.sleeps = false
      await world.play(4_000)
      expect([world.isDrained, world.errors]).toEqual([true, []])
      const { sums, totals } = oracle(sent.slice(first))
      const byKey = await (world.stores.get('by-key') as EmptiedStore).port.readKeys(['a', 'b', 'c', 'd'], signal)
      expect(new Map([...byKey].map(([key, { states }]) => [key, states['adder.sum']]))).toEqual(sums)
      const byDigit = await (world.stores.get('by-digit') as EmptiedStore).port.readKeys(['0', '1', '2'], signal)
      expect(new Map([...byDigit].map(([key, { states }]) => [key, states['totals.total']]))).toEqual(totals)
      // What was computed before and after: each output of the last generation is there.
      const { made, memory } = world
      for (const [key, sum] of sums) {
        expect(
          memory
            .received(made.sums)
            .filter((output) => output.key === key)
            .at(-1)?.sum,
        ).toBe(sum)
      }
      if (memory.received(made.sums).length > sent.length - first) dropped++
    }),
    { numRuns: Number(process.env.RESETS ?? 150) },
  )
  // Otherwise nothing was reset that had come through before.
  expect(dropped).toBeGreaterThan(10)
}, 120_000)
