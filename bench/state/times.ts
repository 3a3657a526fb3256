/**
 * How long a batch takes and what a record costs in CPU: on the store in memory, which answers at once, so that all of it is
 * the runner's own. The contenders take turns, so that a slow moment hits all alike.
 */
import { systemClock } from '../../lib/aws/system-clock.ts'
import { MemoryStateStore } from '../../lib/state/memory-store.ts'
import { median } from '../figures.ts'
import { CountingStages, countState } from './counting.ts'
import { addPerRecord, type Peer, powertoolsIdempotency } from './peers.ts'
import { microsSince, StoreMeter } from './store-meter.ts'
import { boundless, feedingTable, stateTable } from './tables.ts'
import { batchOf, keyOf, seeded, zipf } from './zipf.ts'

/** Medians over the rounds. */
export interface Time {
  readonly batchMs: number
  /** All threads together, the garbage collector's included. */
  readonly cpuMicrosPerRecord: number
}

export type Contender = 'feeding' | 'warm' | 'cold' | 'ADD' | 'Powertools'

/** Stages that have counted each of so many keys before. */
export interface FilledStages {
  readonly keys: number
  readonly stages: CountingStages
  readonly meter: StoreMeter
}

/** Stages on a store in memory that holds a count of every key. */
export async function filledStages(keys: number): Promise<FilledStages> {
  const store = new MemoryStateStore({ stage: stateTable, clock: systemClock })
  const { signal } = new AbortController()
  const item = { position: 0, states: { [countState]: 0 }, expiresAtSeconds: undefined }
  for (let rank = 0; rank < keys; rank++) {
    await store.commit({ key: keyOf(rank), readPosition: undefined, item, entries: [] }, signal)
  }
  const meter = new StoreMeter()
  const feedingStore = meter.meter(new MemoryStateStore({ stage: feedingTable, clock: systemClock }))
  return { keys, stages: new CountingStages({ store: meter.meter(store), feedingStore }), meter }
}

interface Sample {
  readonly ms: number
  readonly cpuMicros: number
}

async function sampleOf(work: () => Promise<unknown>): Promise<Sample> {
  const cpu = process.cpuUsage()
  const startMs = performance.now()
  await work()
  const ms = performance.now() - startMs
  const { user, system } = process.cpuUsage(cpu)
  return { ms, cpuMicros: user + system }
}

const timeOf = (samples: readonly Sample[], records: number): Time => ({
  batchMs: median(samples.map(({ ms }) => ms)),
  cpuMicrosPerRecord: median(samples.map(({ cpuMicros }) => cpuMicros / records)),
})

/** Rounds that only warm the code up. */
const warmUpRounds = 5

/** One round of a stage: its batch with all keys in memory, and with none. */
async function roundOf(stages: CountingStages, users: readonly string[]) {
  const clicks = stages.clicks(users)
  let frames = await stages.feed(clicks)
  await stages.count(frames)
  const again = stages.clicks(users)
  const feeding = await sampleOf(async () => {
    frames = await stages.feed(again)
  })
  const warm = await sampleOf(() => stages.count(frames))
  stages.restart()
  frames = await stages.feed(stages.clicks(users))
  const cold = await sampleOf(() => stages.count(frames))
  return { feeding, warm, cold }
}

/** Times of all contenders at batches of so many records. */
export async function measureTimes(
  { keys, stages }: FilledStages,
  records: number,
  rounds: number,
): Promise<ReadonlyMap<Contender, Time>> {
  const add = addPerRecord(boundless)
  const powertools = powertoolsIdempotency(boundless)
  const draw = zipf(keys, seeded(keys + records))
  const samples = new Map<Contender, Sample[]>()
  for (let round = -warmUpRounds; round < rounds; round++) {
    const users = batchOf(draw, records)
    const ofPeer = (peer: Peer) => sampleOf(() => peer(users))
    const own = await roundOf(stages, users)
    const all = { ...own, ADD: await ofPeer(add), Powertools: await ofPeer(powertools) }
    if (round < 0) continue
    for (const [name, sample] of Object.entries(all)) {
      const known = samples.get(name as Contender) ?? []
      samples.set(name as Contender, [...known, sample])
    }
  }
  return new Map([...samples].map(([name, list]) => [name, timeOf(list, records)]))
}

/** CPU of a batch of the keyed stage, in microseconds of this thread: all of it, and what is left without the store. */
interface Spent {
  readonly whole: number
  readonly runner: number
}

/** How often that of few keys is in that of many, the median of the blocks. */
export type Growth = { readonly [way in 'warm' | 'cold']: Spent }

/** Rounds that are compared as one: some clocks of threads move in steps of milliseconds, which is as much as a batch takes. */
const roundsOfBlock = 5

async function spentOn({ stages, meter }: FilledStages, users: readonly string[]): Promise<Spent> {
  const frames = await stages.feed(stages.clicks(users))
  meter.isOn = true
  const before = process.threadCpuUsage()
  await stages.count(frames)
  const whole = microsSince(before)
  meter.isOn = false
  return { whole, runner: whole - meter.takeMicros() }
}

async function growthRound(filled: FilledStages, users: readonly string[]): Promise<Growth> {
  const { stages } = filled
  await stages.count(await stages.feed(stages.clicks(users)))
  const warm = await spentOn(filled, users)
  stages.restart()
  return { warm, cold: await spentOn(filled, users) }
}

/** Compares batches over few keys with the same batches spread over many, by turns. */
export async function measureGrowth(
  few: FilledStages,
  many: FilledStages,
  records: number,
  rounds: number,
): Promise<Growth> {
  const draw = zipf(few.keys, seeded(records))
  const spread = many.keys / few.keys
  const blocks: { few: Growth; many: Growth }[] = []
  for (let round = -warmUpRounds; round < rounds; round++) {
    const ranks = Array.from({ length: records }, draw)
    const overFew = () => growthRound(few, ranks.map(keyOf))
    const overMany = () =>
      growthRound(
        many,
        ranks.map((rank) => keyOf(rank * spread)),
      )
    // Whoever goes second finds the caches of the processor warm, so they change places.
    const isFewFirst = round % 2 === 0
    const [first, second] = isFewFirst ? [await overFew(), await overMany()] : [await overMany(), await overFew()]
    const [ofFew, ofMany] = isFewFirst ? [first, second] : [second, first]
    if (round < 0) continue
    const block = Math.floor(round / roundsOfBlock)
    const before = blocks[block] ?? { few: nothing, many: nothing }
    blocks[block] = { few: sum(before.few, ofFew), many: sum(before.many, ofMany) }
  }
  const middle = (way: keyof Growth, what: keyof Spent): number =>
    median(blocks.map((block) => block.many[way][what] / block.few[way][what]))
  const of = (way: keyof Growth): Spent => ({ whole: middle(way, 'whole'), runner: middle(way, 'runner') })
  return { warm: of('warm'), cold: of('cold') }
}

const none: Spent = { whole: 0, runner: 0 }
const nothing: Growth = { warm: none, cold: none }
const plus = (a: Spent, b: Spent): Spent => ({ whole: a.whole + b.whole, runner: a.runner + b.runner })
const sum = (a: Growth, b: Growth): Growth => ({ warm: plus(a.warm, b.warm), cold: plus(a.cold, b.cold) })
