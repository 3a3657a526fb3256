/** A topology of one window operator, for the cases about time: what comes of records in the order in which they are sent. */
import { z } from 'zod'
import {
  count,
  type Duration,
  epochMs,
  type SessionWindows,
  type SlicedWindows,
  Topology,
  type WindowResult,
} from '../../lib/index.ts'
import { TestDriver } from '../../lib/testing/index.ts'

export interface Event {
  readonly t: number
  readonly key?: string
}

export interface WindowedOptions {
  readonly emit?: 'on-close' | 'final' | 'on-update'
  readonly outOfOrderness?: Duration
  readonly skewLimit?: Duration
  readonly nowMs?: number
}

export type Result = WindowResult<string, { readonly n: number }>

const event = z.object({ t: z.number(), key: z.string().optional() })

export class Windowed {
  readonly driver: TestDriver
  readonly #source
  readonly #results
  readonly #late

  constructor(windows: SlicedWindows | SessionWindows, options: WindowedOptions = {}) {
    const { emit = 'on-close', outOfOrderness, skewLimit, nowMs } = options
    const app = new Topology('windowed')
    this.#source = app.source('events', event, {
      // The cases count from 0, and before it.
      eventTime: epochMs(({ t }) => t, { from: '1900-01-01' }),
      ...(outOfOrderness && { outOfOrderness }),
      ...(skewLimit && { skewLimit }),
    })
    this.#results = app.sink<Result>('results')
    this.#late = app.sink<Event>('late')
    const { results, late } = this.#source
      .keyBy('by-key', ({ key = 'k' }) => key)
      .window(windows)
      .aggregate('counted', { n: count() }, { emit })
    results.to(this.#results)
    late.to(this.#late)
    this.driver = new TestDriver(app, nowMs === undefined ? {} : { nowMs })
  }

  /** Sends one batch. */
  async send(times: readonly (number | Event)[], partition = 'shard-0'): Promise<void> {
    const events = times.map((time) => (typeof time === 'number' ? { t: time } : time))
    await this.driver.send(this.#source, events, { partition })
  }

  get results(): readonly Result[] {
    return this.driver.received(this.#results)
  }

  /** The times of late records. */
  get late(): readonly number[] {
    return this.driver.received(this.#late).map(({ t }) => t)
  }

  /** The results as `[start, end, count]`, in order. */
  get windows(): readonly (readonly [number, number, number])[] {
    return this.results.map(({ window, value }) => [window.startMs, window.endMs, value.n])
  }

  /** What whoever writes the last result of each window over the one before holds: a retracted one is removed. */
  get kept(): readonly string[] {
    const rows = new Map<string, number>()
    for (const { key, window, isRetracted, value } of this.results) {
      const name = `${key} [${window.startMs}, ${window.endMs})`
      if (isRetracted) rows.delete(name)
      else rows.set(name, value.n)
    }
    return [...rows].map(([name, n]) => `${name}: ${n}`).toSorted()
  }
}
