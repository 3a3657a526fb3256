/**
 * Any schedule of attempts at a topology of two keyed stages, one behind the other, comes to what a naive fold of the
 * source comes to. Attempts are cut at random, repeat what is done, are killed or put to sleep at any port call, lose
 * answers, and zombies go on when others have done their work.
 */
import * as fc from 'fast-check'
import { z } from 'zod'
import { SourceRecord } from '../../../lib/core/record.ts'
import { mapState, operatorState, TerminalError, Topology, valueState } from '../../../lib/index.ts'
import { type Plan, plan } from '../../../lib/plan/plan.ts'
import type { Ports } from '../../../lib/runtime/ports.ts'
import { createRunner, type Runner } from '../../../lib/runtime/runner.ts'
import type { Sink } from '../../../lib/runtime/sink.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { sourceLineage } from '../../../lib/testing/memory-streams.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'

const { signal } = new AbortController()
/** Frames that have just arrived are not suspected of killing the process. */
const startMs = Date.UTC(2026, 0, 1)
const schema = z.object({ key: z.string(), n: z.number() })
type Value = z.infer<typeof schema>

const isPoison = (n: number) => n % 17 === 7
const isTerminal = (n: number) => n % 19 === 5

/** Some records have headers, one under the same name as another. */
const headersOf = (n: number) =>
  n % 3 === 0 ? [] : ['first', 'second'].map((of) => ({ name: 'trace', value: Buffer.from(`${of} ${n}`) }))

function topology() {
  const app = new Topology('two-app')
  const sums = app.sink<{ key: string; n: number; sum: number; of: number }>('sums')
  const seen = app.sink<number>('seen')
  const summed = app
    .source('values', schema)
    .flatMap((value) => (value.n % 5 === 0 ? [] : [value]))
    .keyBy('by-key', (value) => value.key, { slots: 4 })
    .process('adder', {
      state: {
        sum: valueState<number>(),
        tens: mapState<number>(),
        all: operatorState({ initial: 0, add: (count: number) => count + 1 }),
      },
      prefetch: (value) => ({ tens: value.n % 2 === 0 ? [String(value.n % 10)] : [] }),
      step: (value, { key, state }) => {
        const entry = String(value.n % 10)
        state.tens.set(entry, (state.tens.get(entry) ?? 0) + 1)
        const sum = (state.sum.get() ?? 0) + value.n
        state.sum.set(sum)
        if (isPoison(value.n)) throw new Error('poison')
        if (isTerminal(value.n)) throw new TerminalError('terminal')
        return [{ key, n: value.n, sum, of: state.tens.get(entry) ?? 0 }]
      },
    })
  summed.to(sums)
  summed
    .keyBy('by-digit', ({ n }) => String(n % 3), { slots: 4 })
    .process('totals', {
      state: { count: valueState<number>(), total: valueState<number>() },
      step: ({ n }, { state }) => {
        state.count.set((state.count.get() ?? 0) + 1)
        state.total.set((state.total.get() ?? 0) + n)
        return [n]
      },
    })
    .to(seen)
  return { app, sums, seen }
}

interface Log {
  readonly stage: string
  readonly partition: string
  readonly records: SourceRecord[]
  at: number
}

interface Container {
  readonly stage: string
  readonly runner: Runner
}

/** Until nothing more happens by itself: every port answers at once, or is asleep. */
const quiet = (): Promise<undefined> => new Promise((resolve) => void setImmediate(() => resolve(undefined)))

class Schedule {
  readonly made = topology()
  readonly plan: Plan = plan(this.made.app)
  readonly memory = memoryPorts()
  readonly #random: Random
  readonly #logs: Log[] = []
  readonly #idle: Container[] = []
  readonly #asleep: (() => void)[] = []
  /** What attempts ended with that no fault explains. */
  readonly errors: unknown[] = []
  readonly #contents = new Map<unknown, string>()
  #faults = true

  constructor(seed: number, values: readonly Value[]) {
    this.#random = new Random(seed)
    this.memory.serve?.(this.plan)
    const source = { stage: 'values', partition: 'shard-0', records: [] as SourceRecord[], at: 0 }
    for (const [i, value] of values.entries()) {
      const payload = Buffer.from(JSON.stringify(value))
      source.records.push(
        new SourceRecord({
          source: 'values',
          partition: 'shard-0',
          position: String(i),
          arrivalTimeMs: startMs,
          key: 'k',
          payload,
          headers: headersOf(value.n),
        }),
      )
    }
    this.#logs.push(source)
  }

  async play(): Promise<void> {
    for (let events = 0; events < 4_000; events++) {
      this.#faults = events < 150
      if (this.#asleep.length > 0 && (this.#below(0.2) || !this.#faults)) await this.#wakeOne()
      this.#read()
      const open = this.#logs.filter(({ at, records }) => at < records.length)
      if (open.length === 0 && this.#asleep.length === 0) return
      if (open.length > 0) await this.#attempt(open[Math.floor(this.#random.next() * open.length)] as Log)
    }
    throw new Error('it did not drain')
  }

  #below(share: number): boolean {
    return this.#random.next() < share
  }

  /** Takes what was published into the logs of the keyed stages. */
  #read(): void {
    for (const stage of ['by-key', 'by-digit']) {
      for (const { eventID, kinesis } of this.memory.takeFrames(stage).flatMap(({ Records }) => Records)) {
        const partition = eventID.slice(0, eventID.indexOf(':'))
        let log = this.#logs.find((one) => one.stage === stage && one.partition === partition)
        if (log === undefined) {
          log = { stage, partition, records: [], at: 0 }
          this.#logs.push(log)
        }
        const { sequenceNumber: position, data: payload } = kinesis
        log.records.push(
          new SourceRecord({ source: stage, partition, position, arrivalTimeMs: startMs, key: 'k', payload }),
        )
      }
    }
  }

  async #attempt(log: Log): Promise<void> {
    // Now and then an older checkpoint is delivered again.
    const from = this.#faults && this.#below(0.15) ? Math.floor(this.#random.next() * (log.at + 1)) : log.at
    const to = Math.min(log.records.length, from + 1 + Math.floor(this.#random.next() * 8))
    const container = this.#container(log.stage)
    const records = log.records.slice(from, to)
    const run = async () => {
      try {
        const { failures } = await container.runner.run([{ partition: log.partition, records }], { deadlineMs: 1e15 })
        return failures[0] === undefined ? to : from + failures[0].index
      } catch (error) {
        if (!String(error).includes('throttled')) this.errors.push(error)
        return from
      }
    }
    const done = await Promise.race([run(), quiet()])
    if (done === undefined) return
    this.#idle.push(container)
    log.at = Math.max(log.at, done)
  }

  async #wakeOne(): Promise<void> {
    const [wake] = this.#asleep.splice(Math.floor(this.#random.next() * this.#asleep.length), 1)
    wake?.()
    await quiet()
  }

  #container(stage: string): Container {
    const index = this.#below(0.7) ? this.#idle.findIndex((one) => one.stage === stage) : -1
    if (index >= 0) return this.#idle.splice(index, 1)[0] as Container
    const planned = this.plan.stages.find(({ name }) => name === stage) as Plan['stages'][number]
    const options = {
      attempts: 2,
      mostKeysPerCommit: 1 + Math.floor(this.#random.next() * 3),
      maxPendingOutputs: 1 + Math.floor(this.#random.next() * 9),
      warmKeys: this.#below(0.8) ? 3 : 0,
    }
    return { stage, runner: createRunner(this.plan.topology, planned, this.#ports(stage), options) }
  }

  /** Before or after a port call's effect: it goes on, fails, sleeps, or ends with its process. */
  async #gate(): Promise<void> {
    if (!this.#faults) return
    const x = this.#random.next()
    if (x < 0.02) throw new Error('throttled, or the answer was lost')
    if (x < 0.035) await new Promise(() => undefined)
    if (x < 0.06) await new Promise<void>((wake) => void this.#asleep.push(wake))
  }

  #ports(stage: string): Ports {
    const call = async <T>(effect: () => Promise<T>): Promise<T> => {
      await this.#gate()
      const result = await effect()
      await this.#gate()
      return result
    }
    const sink = (inner: Sink): Sink => ({
      prepare: (output) => {
        const item = inner.prepare(output) as { readonly identity: string }
        const id = `${stage} ${item.identity}`
        const content = JSON.stringify(output.value, (name, value) => (name === 'failedAtMs' ? 0 : value))
        const { n } = Object(output.value)
        expect(output.record.headers).toEqual(headersOf(n ?? output.value))
        expect([id, this.#contents.get(id) ?? content]).toEqual([id, content])
        this.#contents.set(id, content)
        return item
      },
      deliver: (items, how) => call(() => inner.deliver(items, how)),
    })
    const watched = (store: StateStore): StateStore =>
      new Proxy(store, {
        get: (target, name) => {
          const method = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>
          return (...args: unknown[]) => call(() => method.apply(target, args))
        },
      })
    const { memory } = this
    return {
      ...memory,
      checksPurity: false,
      sink: (name) => sink(memory.sink(name) as Sink),
      deadLetters: memory.deadLetters,
      state: (name) => watched(memory.state(name) as StateStore),
      lineage: (name) => (name === 'values' ? sourceLineage : memory.lineage?.(name)),
      frames: (name) => ({
        publish: (frames, until) => call(async () => memory.frames?.(name)?.publish(frames, until)),
      }),
    }
  }
}

/** The naive fold of the source. */
function oracle(values: readonly Value[]) {
  const keys = new Map<string, { sum: number; tens: Map<string, number>; outputs: unknown[] }>()
  const digits = new Map<string, { count: number; total: number }>()
  const dead: number[] = []
  const seen: number[] = []
  let all = 0
  for (const { key, n } of values) {
    if (n % 5 === 0) continue
    all++
    if (isPoison(n) || isTerminal(n)) {
      dead.push(n)
      continue
    }
    const state = keys.get(key) ?? { sum: 0, tens: new Map<string, number>(), outputs: [] as unknown[] }
    keys.set(key, state)
    const entry = String(n % 10)
    state.sum += n
    state.tens.set(entry, (state.tens.get(entry) ?? 0) + 1)
    state.outputs.push({ key, n, sum: state.sum, of: state.tens.get(entry) ?? 0 })
    const digit = digits.get(String(n % 3)) ?? { count: 0, total: 0 }
    digits.set(String(n % 3), { count: digit.count + 1, total: digit.total + n })
    seen.push(n)
  }
  return { keys, digits, dead, seen, all }
}

async function counted(store: StateStore): Promise<number> {
  let all = 0
  for (const shard of ['shardId-000000000000', 'shardId-000000000001']) {
    const value = (await store.readProgress(`by-key/${shard}`, signal))?.value as
      | { operatorStates?: Readonly<Record<string, Readonly<Record<string, number>>>> }
      | undefined
    for (const states of Object.values(value?.operatorStates ?? {})) all += states['adder.all'] ?? 0
  }
  return all
}

test('any schedule of attempts comes to what a naive fold comes to', async () => {
  const values = fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd', 'e'), n: fc.nat({ max: 99 }) }), {
    minLength: 1,
    maxLength: 40,
  })
  await fc.assert(
    fc.asyncProperty(fc.integer(), values, async (seed, sent) => {
      const schedule = new Schedule(seed, sent)
      await schedule.play()
      expect(schedule.errors).toEqual([])
      const { memory, made } = schedule
      const expected = oracle(sent)
      const byKey = memory.state('by-key') as StateStore
      for (const [key, { sum, tens, outputs }] of expected.keys) {
        expect((await byKey.readKeys([key], signal)).get(key)?.states).toEqual({ 'adder.sum': sum })
        const entries = await byKey.listEntries(key, 'adder.tens', signal)
        expect(new Map([...entries].map(([name, { value }]) => [name, value]))).toEqual(tens)
        expect(memory.received(made.sums).filter((output) => output.key === key)).toEqual(outputs)
      }
      const byDigit = memory.state('by-digit') as StateStore
      for (const [digit, { count, total }] of expected.digits) {
        const { states } = (await byDigit.readKeys([digit], signal)).get(digit) ?? {}
        expect(states).toEqual({ 'totals.count': count, 'totals.total': total })
      }
      expect(memory.received(made.seen).toSorted()).toEqual(expected.seen.toSorted())
      expect(memory.received(made.sums)).toHaveLength(expected.seen.length)
      const dead = memory.deadLettered.map(({ payload }) => JSON.parse(String(Buffer.from(payload ?? '', 'base64'))).n)
      expect(dead.toSorted()).toEqual(expected.dead.toSorted())
      expect(await counted(byKey)).toBe(expected.all)
    }),
    { numRuns: Number(process.env.SCHEDULES ?? 200) },
  )
}, 240_000)
