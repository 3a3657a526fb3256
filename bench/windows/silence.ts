/** What happens while nobody sends anything: minutes of a virtual clock, with every call of the store counted. */
import { MemoryStateStore } from '../../lib/state/memory-store.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import { VirtualClock } from '../../lib/testing/index.ts'
import { WindowStages } from './stages.ts'

/** Of a stretch of silence. */
export interface Stretch {
  readonly minutes: number
  /** Each would wake the keyed stage. */
  readonly frames: number
  /** By the method of the store, how often it was called. */
  readonly calls: ReadonlyMap<string, number>
  readonly results: number
}

export interface Silence {
  /** While windows are open and none ends. */
  readonly waiting: Stretch
  /** The minute in which all of them end. */
  readonly closing: Stretch
  /** A day behind it. */
  readonly idle: Stretch
}

const minuteMs = 60_000
const startMs = Date.UTC(2026, 0, 1, 10)

export async function measureSilence(keys: number): Promise<Silence> {
  const clock = new VirtualClock(startMs)
  const calls = new Map<string, number>()
  const store = counted(new MemoryStateStore({ stage: 'by-key', clock }), calls)
  const feedingStore = counted(new MemoryStateStore({ stage: 'trips', clock }), calls)
  const stages = new WindowStages('hourly', { store, feedingStore, clock })
  await stages.run(await stages.announce())
  for (let from = 0; from < keys; from += 1_000) {
    await stages.send(
      Array.from({ length: Math.min(1_000, keys - from) }, (_, i) => {
        return { key: `key-${from + i}`, atMs: startMs, cents: 1 }
      }),
    )
  }
  const silent = async (minutes: number): Promise<Stretch> => {
    calls.clear()
    let frames = 0
    for (let minute = 0; minute < minutes; minute++) {
      clock.advance(minuteMs)
      const batch = await stages.announce()
      frames += batch.records.length
      await stages.run(batch)
    }
    return { minutes, frames, calls: new Map(calls), results: stages.takeOutputs('results') }
  }
  return { waiting: await silent(59), closing: await silent(1), idle: await silent(24 * 60) }
}

/** The store, with a count of its calls. */
function counted(store: StateStore, calls: Map<string, number>): StateStore {
  return new Proxy(store, {
    get: (target, name: string) => {
      const method = Reflect.get(target, name) as (...args: unknown[]) => unknown
      return (...args: unknown[]) => {
        calls.set(name, (calls.get(name) ?? 0) + 1)
        return method.apply(target, args)
      }
    },
  })
}
