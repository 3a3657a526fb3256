/** How long windows take: on the store in memory, which answers at once, so that all of it is the runner's own. */
import { systemClock } from '../../lib/aws/system-clock.ts'
import { MemoryStateStore } from '../../lib/state/memory-store.ts'
import { median } from '../figures.ts'
import { keyOf } from '../state/zipf.ts'
import { Load, type MeasuredKind } from './load.ts'
import { WindowStages } from './stages.ts'

/** Medians of batches of 1,000 records at which no window ends. CPU counts all threads, the garbage collector's included. */
export interface Time {
  readonly batchMs: number
  readonly cpuMicrosPerRecord: number
}

export interface WindowTimes {
  readonly feeding: Time
  readonly warm: Time
  readonly cold: Time
  /** CPU of a window's end, for each result. */
  readonly cpuMicrosPerResult: number
}

interface Sample {
  readonly ms: number
  readonly cpuMicros: number
}

const records = 1_000
/** Rounds that only warm the code up. */
const warmUpRounds = 3

/** Every key has a window open. */
export async function measureTimes(kind: MeasuredKind, keys: number, rounds: number): Promise<WindowTimes> {
  const store = new MemoryStateStore({ stage: 'by-key', clock: systemClock })
  const stages = new WindowStages(kind, { store })
  const load = await Load.open(
    ...([kind, stages, keys] as const),
    Array.from({ length: keys }, (_, rank) => keyOf(rank)),
  )
  const samples = { feeding: [] as Sample[], warm: [] as Sample[], cold: [] as Sample[] }
  for (let round = -warmUpRounds; round < rounds; round++) {
    const batch = load.keys(records)
    await stages.send(load.trips(batch))
    let frames = await stages.feed(stages.trips(load.trips(batch)))
    const warm = await sampleOf(() => stages.run(frames))
    stages.restart()
    const trips = stages.trips(load.trips(batch))
    const feeding = await sampleOf(async () => {
      frames = await stages.feed(trips)
    })
    const cold = await sampleOf(() => stages.run(frames))
    if (round < 0) continue
    samples.feeding.push(feeding)
    samples.warm.push(warm)
    samples.cold.push(cold)
  }
  if (stages.takeOutputs('results') > 0) throw new Error('a window ended in a batch where none was to end')
  stages.restart()
  const { cpuMicros } = await sampleOf(() => load.close())
  return {
    feeding: timeOf(samples.feeding),
    warm: timeOf(samples.warm),
    cold: timeOf(samples.cold),
    cpuMicrosPerResult: cpuMicros / stages.takeOutputs('results'),
  }
}

async function sampleOf(work: () => Promise<unknown>): Promise<Sample> {
  const cpu = process.cpuUsage()
  const startMs = performance.now()
  await work()
  const ms = performance.now() - startMs
  const { user, system } = process.cpuUsage(cpu)
  return { ms, cpuMicros: user + system }
}

const timeOf = (samples: readonly Sample[]): Time => ({
  batchMs: median(samples.map(({ ms }) => ms)),
  cpuMicrosPerRecord: median(samples.map(({ cpuMicros }) => cpuMicros / records)),
})
