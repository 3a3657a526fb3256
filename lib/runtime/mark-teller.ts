/**
 * Tells the partitions of the stages below how far event time has come in one partition of this one.
 *
 * 1. A mark is told only when every frame that it covers was acknowledged and progress has passed it.
 * 2. It goes to every open partition of each stage that is fed, at most once a second, and only where it has moved.
 * 3. It is a help, no promise: what is not told goes with the next frames, or the announcer says it where something waits for
 *    it. So nothing fails with it, and one stage that cannot be told keeps no other from being told.
 */

import { slotsHeld } from '../core/slot.ts'
import type { Feed } from '../plan/plan.ts'
import { encodeControl } from './frames/frame-format.ts'
import { upstreamKey } from './frames/upstream-memory.ts'
import { errorFields } from './outbox.ts'
import type { Ports } from './ports.ts'
import { upstreamName } from './progress/generation.ts'

/** How long the list of a stream's partitions is taken for true. */
const listForMs = 60_000

export interface MarkTellerOptions {
  readonly stage: string
  readonly feeds: readonly Feed[]
  readonly ports: Ports
  /** The least time between two marks of a partition, in ms. */
  readonly everyMs: number
}

interface MarkedPartition {
  readonly partition: string
  readonly generation: number
}

interface Told {
  readonly markMs: number
  readonly atMs: number
}

export class MarkTeller {
  readonly #options: MarkTellerOptions
  readonly #told = new Map<string, Told>()
  /** By stage that is fed, a slot of each of its open partitions, and when they were listed. */
  readonly #slots = new Map<string, { readonly slots: readonly number[]; readonly atMs: number }>()

  constructor(options: MarkTellerOptions) {
    this.#options = options
  }

  /** Tells the mark of a partition in its generation, if it is news. */
  async tell({ partition, generation }: MarkedPartition, markMs: number, signal: AbortSignal): Promise<void> {
    const { stage, feeds, ports, everyMs } = this.#options
    const nowMs = ports.clock.nowMs()
    const upstream = { name: upstreamName(stage, generation), partition }
    const key = upstreamKey(upstream)
    const told = this.#told.get(key)
    if (markMs === Number.NEGATIVE_INFINITY || (told && (markMs <= told.markMs || nowMs < told.atMs + everyMs))) return
    const news = [{ upstream, state: 'open', markMs, lastSent: new Map() }] as const
    let isTold = true
    for (const feed of feeds) {
      try {
        const slots = await this.#slotsOf(feed, nowMs, signal)
        const frames = slots.map((slot) => encodeControl({ kind: 'control', from: 'stage', slot, news }))
        await ports.frames?.(feed.stage)?.publish(frames, signal)
      } catch (error) {
        isTold = false
        const fields = { partition, fed: feed.stage, ...errorFields(error) }
        ports.logger.warn('a mark could not be told; the next frames carry it, or the announcer', fields)
      }
    }
    if (isTold) this.#told.set(key, { markMs, atMs: nowMs })
  }

  async #slotsOf(feed: Feed, nowMs: number, signal: AbortSignal): Promise<readonly number[]> {
    const known = this.#slots.get(feed.stage)
    if (known && nowMs < known.atMs + listForMs) return known.slots
    const listed = (await this.#options.ports.lineage?.(feed.stage)?.list(signal)) ?? []
    const slots = listed.flatMap((one) => (one.isClosed ? [] : slotsHeld(one, feed.slots).slice(0, 1)))
    this.#slots.set(feed.stage, { slots, atMs: nowMs })
    return slots
  }
}
