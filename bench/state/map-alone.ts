/**
 * What the look-ups of a batch take in a Map of so many keys and nothing else: what any store in memory costs at the least, whatever is
 * built around it. A million entries lie all over the memory, and a thousand in the caches of the processor.
 */
import { median } from '../figures.ts'
import { batchOf, keyOf, seeded, zipf } from './zipf.ts'

interface Item {
  readonly position: number
  readonly states: { readonly count: number }
}

const itemAt = (position: number): Item => ({ position, states: { count: position } })

function filledMap(keys: number): Map<string, Item> {
  const map = new Map<string, Item>()
  for (let rank = 0; rank < keys; rank++) map.set(keyOf(rank), itemAt(0))
  return map
}

/** About as much memory as a batch goes through between its reads and its commits. */
const otherWork = new Float64Array(1 << 19)

function passThroughOtherWork(): void {
  for (let i = 0; i < otherWork.length; i++) otherWork[i] = (otherWork[i] as number) + i
}

/** Reads every key once, does something else, and reads and writes every key, as a cold batch does. In microseconds. */
function microsOf(map: Map<string, Item>, keys: readonly string[]): number {
  passThroughOtherWork()
  const readMs = performance.now()
  let found = 0
  for (const key of keys) if (map.get(key)?.states.count !== undefined) found++
  const afterMs = performance.now()
  if (found !== keys.length) throw new Error('a key is missing')
  passThroughOtherWork()
  const writeMs = performance.now()
  for (const key of keys) map.set(key, itemAt((map.get(key)?.position ?? 0) + 1))
  return (performance.now() - writeMs + (afterMs - readMs)) * 1_000
}

/** Medians of the rounds for a batch of the keyed stage, in microseconds. */
export interface MapTimes {
  readonly few: number
  readonly many: number
}

export function measureMapAlone(fewKeys: number, manyKeys: number, records: number, rounds: number): MapTimes {
  const [few, many] = [filledMap(fewKeys), filledMap(manyKeys)]
  const draw = zipf(fewKeys, seeded(records))
  const spread = manyKeys / fewKeys
  const times: MapTimes[] = []
  for (let round = 0; round < rounds; round++) {
    // Texts of their own, as those of a frame are.
    const ranks = [...new Set(batchOf(draw, records))].map((key) => Number(key.slice('user-'.length)))
    const ofFew = microsOf(few, ranks.map(keyOf))
    times.push({
      few: ofFew,
      many: microsOf(
        many,
        ranks.map((rank) => keyOf(rank * spread)),
      ),
    })
  }
  return { few: median(times.map((time) => time.few)), many: median(times.map((time) => time.many)) }
}
