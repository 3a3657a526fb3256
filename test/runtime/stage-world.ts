/**
 * The runner of any stage on memory ports that tell what happens at them, in order, and that a test can make fail.
 *
 * A fault stands before or after the effect of a call: it may throw, as a lost answer does, or never come back, as in a
 * process that was killed. What sleeps can be woken later: then it is a zombie.
 */
import { outputIdentity, SourceRecord } from '../../lib/core/record.ts'
import { plan, stageNamed } from '../../lib/plan/plan.ts'
import type { Frame, FrameRecord, IncomingRecord } from '../../lib/runtime/frames/frame.ts'
import { decodeFrame, encodeFrame, encodeRedriveFrame } from '../../lib/runtime/frames/frame-format.ts'
import {
  comparePositions,
  endOf,
  firstPosition,
  type Interval,
  ownPosition,
} from '../../lib/runtime/frames/position.ts'
import { UpstreamMemories } from '../../lib/runtime/frames/upstream-memory.ts'
import type { Ports } from '../../lib/runtime/ports.ts'
import { createRunner, type Runner, type RunnerOptions } from '../../lib/runtime/runner.ts'
import type { Outcome, Sink } from '../../lib/runtime/sink.ts'
import type { StateStore, StateValue } from '../../lib/state/state-store.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { sourceLineage } from '../../lib/testing/memory-streams.ts'
import type { Topology } from '../../lib/topology/topology.ts'
import { BusyClock } from './runner-world.ts'

export const partition = 'shard-0'
const { signal } = new AbortController()

/** One call at a port. */
export interface PortCall {
  /** `commit`, `read-progress`, `write-progress`, `read-keys`, `read-entries`, `list-entries`, `publish`, `sink`, `dead-letters`. */
  readonly name: string
  /** The key and its new position, the keyed stage, or the name of the sink. */
  readonly detail: string
}

type Fault = (call: PortCall) => Promise<void> | undefined

export class StageWorld {
  readonly clock = new BusyClock()
  readonly memory = memoryPorts({ clock: this.clock })
  readonly store: StateStore
  /** The calls that had an effect, as `name detail`. */
  readonly calls: string[] = []
  /** What the reader of the stage's frames applied. */
  readonly applied: IncomingRecord[] = []
  /** The frames that were published to another stage. */
  readonly frames: Frame[] = []
  readonly #reader = new UpstreamMemories()
  readonly #slots = new Map<string, Frame>()
  /** Everything that was ever published at a position. */
  readonly #contents = new Map<string, string>()
  /** The headers of everything that was ever handed to a sink, by its identity. */
  readonly headers = new Map<string, string>()
  readonly log: SourceRecord[] = []
  before: Fault = () => undefined
  after: Fault = () => undefined
  /** What sinks answer instead of taking a value. */
  refuse: (sink: string, value: unknown) => Outcome | undefined = () => undefined
  readonly #topology: Topology
  readonly #stage: string
  readonly #sleepers: (() => void)[] = []
  readonly #values = new WeakMap<object, unknown>()
  #sent = 0

  constructor(topology: Topology, stage: string) {
    this.#topology = topology
    this.#stage = stage
    this.memory.serve?.(plan(topology))
    this.store = this.memory.state(stage) as StateStore
  }

  /** A new execution environment; `ports` replaces some of its ports. */
  container(options: RunnerOptions = {}, ports: Partial<Ports> = {}): Runner {
    const planned = plan(this.#topology)
    return createRunner(planned.topology, stageNamed(planned, this.#stage), { ...this.ports(), ...ports }, options)
  }

  ports(): Ports {
    const { memory } = this
    return {
      ...memory,
      checksPurity: false,
      sink: (name) => this.#watchedSink('sink', name, memory.sink(name) as Sink),
      deadLetters: this.#watchedSink('dead-letters', '', memory.deadLetters as Sink) as Ports['deadLetters'],
      state: () => this.#watchedStore(),
      lineage: () => sourceLineage,
      frames: (stage) => ({
        publish: (frames, until) =>
          this.#call('publish', stage, async () => {
            await memory.frames?.(stage)?.publish(frames, until)
            for (const { bytes } of frames) {
              const frame = decodeFrame(bytes)
              if (frame.kind === 'frame') this.#read(frame)
            }
          }),
      }),
    }
  }

  /** Never comes back, until `wake` is called. */
  readonly sleep = (): Promise<void> => new Promise((resolve) => void this.#sleepers.push(resolve))

  get sleeping(): number {
    return this.#sleepers.length
  }

  wake(): void {
    for (const resolve of this.#sleepers.splice(0)) resolve()
  }

  /** Appends one frame of slot 0 with these values, each of its own number of one upstream. */
  frame<V extends { readonly key: string }>(
    values: readonly V[],
    options: { readonly arrivalTimeMs?: number } = {},
  ): void {
    const from = this.#sent
    const records = values.map((value) => this.#record(value))
    const claims = [{ previous: from === 0 ? firstPosition : endOf(from), last: endOf(this.#sent) }]
    const upstream = { name: 'values', partition: 'p-0' }
    const head = { kind: 'frame', upstream, slot: 0, schemaVersion: 1, markMs: 0 } as const
    this.append(encodeFrame({ ...head, claims, records }).bytes, options)
  }

  /** Appends dead letters that were sent again. */
  redrive(ids: readonly string[], values: readonly { readonly key: string }[], generation = 1): void {
    const records = values.map((value, i) => ({ ...this.#record(value), redrive: ids[i] as string }))
    this.append(encodeRedriveFrame({ kind: 'redrive', slot: 0, schemaVersion: 1, generation, records }).bytes)
  }

  /** Appends any bytes as an entry of the stage's log. */
  append(
    payload: Uint8Array | string,
    options: { readonly arrivalTimeMs?: number; readonly position?: string } = {},
  ): void {
    const position = options.position ?? String(100 + this.log.length)
    const subPosition = this.log.filter((record) => record.position === position).length
    const arrivalTimeMs = options.arrivalTimeMs ?? this.clock.nowMs()
    const bytes = Buffer.from(payload)
    this.log.push(
      new SourceRecord({
        source: this.#stage,
        partition,
        position,
        subPosition,
        arrivalTimeMs,
        key: 'k',
        payload: bytes,
      }),
    )
  }

  /** Runs a batch of the log; answers the index in the log of the first entry that is not done, its end where all is. */
  async run(runner: Runner, from = 0, to = this.log.length, remainingMs = 60_000): Promise<number> {
    const records = this.log.slice(from, to)
    const { failures } = await runner.run([{ partition, records }], { deadlineMs: this.clock.nowMs() + remainingMs })
    for (const { index, notDone } of failures) expect(notDone).toEqual(records.slice(index))
    this.error = failures[0]?.error
    return failures[0] === undefined ? to : from + failures[0].index
  }

  /** Why the last run ended before its end. */
  error: unknown

  /** Runs until all is done, as Lambda does; every attempt in a container of its own. */
  async drain(options: RunnerOptions = {}): Promise<number> {
    let attempts = 0
    for (let from = 0; from < this.log.length && attempts < 50; attempts++) {
      from = await this.run(this.container(options), from)
    }
    return attempts
  }

  async stateOf(key: string): Promise<Readonly<Record<string, StateValue>> | undefined> {
    return (await this.store.readKeys([key], signal)).get(key)?.states
  }

  async positionOf(key: string): Promise<number | undefined> {
    return (await this.store.readKeys([key], signal)).get(key)?.position
  }

  async progress(): Promise<Readonly<Record<string, StateValue>>> {
    const stored = await this.store.readProgress(`${this.#stage}/${partition}`, signal)
    return (stored?.value ?? {}) as Record<string, StateValue>
  }

  /** What the next stage has made of the frames: its memory of them drops what comes twice. In the order of positions. */
  taken(): readonly unknown[] {
    return this.applied.toSorted((a, b) => comparePositions(a.position, b.position)).map(decoded)
  }

  /** What the next stage still waits for. */
  gaps(): readonly Interval[] {
    return [...this.#slots.values()].flatMap(({ upstream, slot }) => this.#reader.of(upstream, slot)?.gaps ?? [])
  }

  #read(frame: Frame): void {
    for (const record of frame.records) {
      const { number, index } = record.position
      const { name, partition } = frame.upstream
      const id = JSON.stringify([name, partition, number, index])
      const { key, eventTimeMs, ownMarkMs, origin, headers = [] } = record
      const content = JSON.stringify([key, decoded(record), eventTimeMs, ownMarkMs, origin, headers])
      expect([id, this.#contents.get(id) ?? content]).toEqual([id, content])
      this.#contents.set(id, content)
    }
    this.#slots.set(JSON.stringify([frame.upstream, frame.slot]), frame)
    this.frames.push(frame)
    this.applied.push(...this.#reader.accept(frame).news)
  }

  #record(value: { readonly key: string }): FrameRecord {
    this.#sent += 1
    const origin = {
      source: 'values',
      partition: 'p-0',
      position: String(this.#sent),
      subPosition: 0,
      arrivalTimeMs: 0,
    }
    return {
      position: ownPosition(this.#sent, 0),
      side: this.#stage,
      key: value.key,
      ownMarkMs: Number.NEGATIVE_INFINITY,
      eventTimeMs: this.#sent,
      value: Buffer.from(JSON.stringify(value)),
      origin,
      redrive: undefined,
    }
  }

  async #call<T>(name: string, detail: string, effect: () => Promise<T>): Promise<T> {
    const call = { name, detail }
    await this.before(call)
    const result = await effect()
    this.calls.push(detail === '' ? name : `${name} ${detail}`)
    await this.after(call)
    return result
  }

  #watchedSink(port: string, name: string, sink: Sink): Sink {
    return {
      prepare: (output) => {
        const item = sink.prepare(output) as object
        this.#values.set(item, output.value)
        const id = `${name} ${outputIdentity(output.record, output.index)}`
        const headers = JSON.stringify(output.record.headers)
        expect([id, this.headers.get(id) ?? headers]).toEqual([id, headers])
        this.headers.set(id, headers)
        return item
      },
      deliver: (items, call) =>
        this.#call(port, name, async () => {
          const refused = items.map((item) => this.refuse(name, this.#values.get(item as object)))
          const taken = items.filter((_, i) => refused[i] === undefined)
          const outcomes = [...(await sink.deliver(taken, call))]
          return refused.map((refusal) => refusal ?? (outcomes.shift() as Outcome))
        }),
    }
  }

  #watchedStore(): StateStore {
    const { store } = this
    return {
      readProgress: (name, until) => this.#call('read-progress', '', () => store.readProgress(name, until)),
      writeProgress: (name, version, value, until) =>
        this.#call('write-progress', '', () => store.writeProgress(name, version, value, until)),
      readKeys: (keys, until) => this.#call('read-keys', keys.join(), () => store.readKeys(keys, until)),
      readEntries: (names, until) =>
        this.#call('read-entries', names.map(({ key, entry }) => `${key}.${entry}`).join(), () =>
          store.readEntries(names, until),
        ),
      listEntries: (key, state, until) => this.#call('list-entries', key, () => store.listEntries(key, state, until)),
      commit: (write, until) =>
        this.#call('commit', `${write.key}@${write.item.position}`, () => store.commit(write, until)),
      putDue: (entries, until) => this.#call('put-due', '', () => store.putDue(entries, until)),
      readDue: (slot, domain, untilMs, options, until) =>
        this.#call('read-due', String(slot), () => store.readDue(slot, domain, untilMs, options, until)),
      deleteDue: (entries, until) => this.#call('delete-due', '', () => store.deleteDue(entries, until)),
      readManifest: (until) => store.readManifest(until),
      writeManifest: (value, until) => store.writeManifest(value, until),
      replaceManifest: (read, value, until) => store.replaceManifest(read, value, until),
    }
  }
}

const decoded = ({ value }: IncomingRecord): unknown => JSON.parse(Buffer.from(value).toString())

/** Throws at the first call that fits, then lets everything pass. */
export function once(fits: (call: PortCall) => boolean, act: () => Promise<void>): Fault {
  let isOver = false
  return (call) => {
    if (isOver || !fits(call)) return undefined
    isOver = true
    return act()
  }
}

/** Waits for what happens without any time passing. */
export async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 10_000 && !condition(); i++) await new Promise((resolve) => setImmediate(resolve))
  expect(condition()).toBe(true)
}

export const lost = (): Promise<void> => Promise.reject(new Error('the answer was lost'))
