/**
 * The announcer between stages that are written by hand: partitions with as many records as a test says, the progress that it
 * says of them, and a reader that folds what was announced into the progress of the keyed stage.
 */

import { SourceRecord } from '../../../lib/core/record.ts'
import { firstHashOf, slotsIn } from '../../../lib/core/slot.ts'
import { count, epochMs, milliseconds, Topology, text, tumbling } from '../../../lib/index.ts'
import { plan } from '../../../lib/plan/plan.ts'
import { type AnnouncerOptions, announce } from '../../../lib/runtime/announcer/announcer.ts'
import type { AnnouncerPorts } from '../../../lib/runtime/announcer/knowledge.ts'
import type { ControlFrame, EncodedFrame } from '../../../lib/runtime/frames/frame.ts'
import { decodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import { KeyedFold } from '../../../lib/runtime/progress/fold.ts'
import { writeGeneration } from '../../../lib/runtime/progress/generation.ts'
import { comparePartitionPositions, type PartitionLineage } from '../../../lib/runtime/progress/lineage.ts'
import { progressName } from '../../../lib/runtime/progress/open.ts'
import {
  blankKeyedProgress,
  blankSourceProgress,
  type KeyedProgress,
  type SourceProgress,
} from '../../../lib/runtime/progress/progress.ts'
import {
  readKeyedProgress,
  writeKeyedProgress,
  writeSourceProgress,
} from '../../../lib/runtime/progress/progress-format.ts'
import { MemoryStateStore } from '../../../lib/state/memory-store.ts'
import type { StateValue } from '../../../lib/state/state-store.ts'
import { VirtualClock } from '../../../lib/testing/virtual-clock.ts'

export const slots = 4
export const disorderMs = 10
export const graceMs = 7
/** The clock at the start, so that times in tests are small numbers. */
export const startMs = 1_000

/** Texts: the tests announce, and step no record. */
const atZero = epochMs<string>(() => 0)

/** `trips` feeds `by-driver`. With `below`, its final windows feed `by-city`. */
export function trips({ below = false } = {}): Topology {
  const app = new Topology('trips-app')
  const source = app.source('trips', text(), { eventTime: atZero, outOfOrderness: milliseconds(disorderMs) })
  const windows = tumbling(milliseconds(100), { grace: milliseconds(graceMs) })
  const counts = { n: count<string>() }
  const perDriver = source
    .keyBy('by-driver', (trip) => trip, { slots })
    .window(windows)
    .aggregate('per-driver', counts, { emit: below ? 'final' : 'on-close' })
  const out = app.sink<unknown>('out')
  const late = app.sink<unknown>('late')
  perDriver.late.to(late)
  if (!below) {
    perDriver.results.to(out)
    return app
  }
  const perCity = perDriver.results
    .map(({ value }) => String(value.n))
    .keyBy('by-city', (driver) => driver, { slots })
    .window(windows)
    .aggregate('per-city', counts, { emit: 'on-close' })
  perCity.results.to(out)
  perCity.late.to(late)
  return app
}

interface HandPartition {
  parents: readonly string[]
  range: readonly [number, number]
  isClosed: boolean
  /** Records that lie in it, at the positions 1 to `records`. */
  records: number
}

const lastHash = 2n ** 128n - 1n

/** Partitions of one stream. A range is in slots: `[0, 2]` holds the slots 0 and 1. */
export class HandStream {
  readonly partitions = new Map<string, HandPartition>()
  /** Every question that was asked, as `drained p-0` or `caught-up p-0`. */
  readonly asked: string[] = []
  /** What happens right before the partitions are listed. */
  beforeList: () => void = () => undefined

  add(name: string, change: Partial<HandPartition> = {}): void {
    this.partitions.set(name, { parents: [], range: [0, slots], isClosed: false, records: 0, ...change })
  }

  change(name: string, change: Partial<HandPartition>): void {
    this.partitions.set(name, { ...(this.partitions.get(name) as HandPartition), ...change })
  }

  readonly lineage: PartitionLineage = {
    list: async () => {
      this.beforeList()
      return [...this.partitions].map(([partition, held]) => ({
        partition,
        isClosed: held.isClosed,
        ...described(held),
      }))
    },
    describe: async (partition) => {
      const held = this.partitions.get(partition)
      return held && described(held)
    },
    isDrained: async (partition, after) => {
      this.asked.push(`drained ${partition}`)
      const held = this.partitions.get(partition)
      return held === undefined || (held.isClosed && endsBehind(held, after))
    },
    isCaughtUp: async (partition, after) => {
      this.asked.push(`caught-up ${partition}`)
      return endsBehind(this.partitions.get(partition) as HandPartition, after)
    },
  }
}

const described = ({ parents, range: [from, until] }: HandPartition) => ({
  parents,
  startHash: firstHashOf(from, slots),
  endHash: until === slots ? String(lastHash) : String(BigInt(firstHashOf(until, slots)) - 1n),
})

const endsBehind = ({ records }: HandPartition, after: string | undefined): boolean =>
  records === 0 || (after !== undefined && comparePartitionPositions(after, String(records)) >= 0)

const { signal } = new AbortController()

export class AnnouncerWorld {
  readonly clock = new VirtualClock(startMs)
  readonly planned: ReturnType<typeof plan>
  readonly streams = new Map<string, HandStream>()
  readonly #stores = new Map<string, MemoryStateStore>()
  /** The control frames that were published, by stage. */
  readonly #published: { readonly stage: string; readonly frame: ControlFrame; readonly encoded: EncodedFrame }[] = []
  /** Stages whose streams take nothing. */
  readonly broken = new Set<string>()
  /** What happens when progress is read. */
  beforeRead: (stage: string) => void = () => undefined
  #position = 0

  constructor(topology: Topology) {
    this.planned = plan(topology)
    for (const { name } of this.planned.stages) {
      this.streams.set(name, new HandStream())
      this.#stores.set(name, new MemoryStateStore({ clock: this.clock, stage: name }))
    }
  }

  stream(stage: string): HandStream {
    return this.streams.get(stage) as HandStream
  }

  #store(stage: string): MemoryStateStore {
    return this.#stores.get(stage) as MemoryStateStore
  }

  /** What the stored progress of a source partition is from now on. */
  async source(stage: string, partition: string, change: Partial<SourceProgress>): Promise<void> {
    await this.#write(stage, partition, writeSourceProgress({ ...blankSourceProgress, ...change }))
  }

  /** What the stored progress of a partition of a keyed stage is from now on. */
  async keyed(stage: string, partition: string, change: Partial<KeyedProgress> = {}): Promise<void> {
    const before = (await this.progress(stage, partition)) ?? this.#blank(stage, partition)
    await this.#write(stage, partition, writeKeyedProgress({ ...before, ...change }))
  }

  /** The second generation of a stage begins, or is held. */
  async reset(stage: string, isHeld = false): Promise<void> {
    await writeGeneration(this.#store(stage), stage, { generation: 2, isHeld }, signal)
  }

  #blank(stage: string, partition: string): KeyedProgress {
    const { startHash, endHash } = described(this.stream(stage).partitions.get(partition) as HandPartition)
    return blankKeyedProgress(slots, slotsIn(startHash, endHash, slots))
  }

  async progress(stage: string, partition: string): Promise<KeyedProgress | undefined> {
    const found = await this.#store(stage).readProgress(progressName(stage, partition), signal)
    return found && readKeyedProgress(found.value)
  }

  async #write(stage: string, partition: string, value: StateValue): Promise<void> {
    const name = progressName(stage, partition)
    const version = (await this.#store(stage).readProgress(name, signal))?.version ?? 0
    await this.#store(stage).writeProgress(name, version, value, signal)
  }

  ports(): AnnouncerPorts {
    return {
      clock: this.clock,
      state: (stage) => {
        const store = this.#store(stage)
        return Object.assign(Object.create(store), {
          readProgress: (partition: string, until: AbortSignal) => {
            this.beforeRead(stage)
            return store.readProgress(partition, until)
          },
        })
      },
      lineage: (stage) => this.stream(stage).lineage,
      frames: (stage) => ({
        publish: async (frames) => {
          if (this.broken.has(stage)) throw new Error(`the stream of ${stage} takes nothing`)
          for (const encoded of frames) {
            this.#published.push({ stage, encoded, frame: decodeFrame(encoded.bytes) as ControlFrame })
          }
        },
      }),
    }
  }

  /** One round, as `stage/partition: state upstream mark {slot:number}` per thing that was said; a tick has no news. */
  async round(options: Partial<AnnouncerOptions> = {}): Promise<readonly string[]> {
    const said = await announce({ planned: this.planned, ports: this.ports(), signal, ...options })
    return said.flatMap(({ stage, partition, news }) =>
      news.length === 0
        ? [`${stage}/${partition}: tick`]
        : news.map((one) => `${stage}/${partition}: ${newsText(one)}`),
    )
  }

  /** The partitions of a stage read what was published to them, and store what they make of it. */
  async read(stage: string): Promise<void> {
    for (const [partition, { isClosed }] of this.stream(stage).partitions) {
      if (isClosed) continue
      const before = (await this.progress(stage, partition)) ?? this.#blank(stage, partition)
      const fold = new KeyedFold(before, { retentionMs: 1_000_000 })
      for (const { encoded, frame } of this.#published.filter((one) => one.stage === stage)) {
        if (!before.held.includes(frame.slot)) continue
        const position = String(++this.#position)
        const arrivalTimeMs = this.clock.nowMs()
        fold.fold(
          new SourceRecord({ source: stage, partition, position, arrivalTimeMs, key: 'k', payload: encoded.bytes }),
          0,
        )
      }
      await this.#write(stage, partition, writeKeyedProgress(fold.result()))
    }
    const rest = this.#published.filter((one) => one.stage !== stage)
    this.#published.length = 0
    this.#published.push(...rest)
  }

  /** Loses what was published and not read. */
  lose(): void {
    this.#published.length = 0
  }
}

function newsText({ upstream, state, markMs, lastSent }: ControlFrame['news'][number]): string {
  const last = [...lastSent].map(([slot, { number }]) => `${slot}:${number}`)
  const mark = markMs === Number.NEGATIVE_INFINITY ? 'no mark' : String(markMs)
  return `${state} ${upstream.name}/${upstream.partition} ${mark}${last.length === 0 ? '' : ` {${last.join(' ')}}`}`
}
