/** What is known of a key beside its values: where it is, what was applied, and what is to come. */
import { GetItemCommand } from '@aws-sdk/client-dynamodb'
import { keyAttributes } from '../../lib/aws/state-table/items.ts'
import { slotOf, slotsHeld } from '../../lib/core/slot.ts'
import type { ListedPartition } from '../../lib/runtime/progress/lineage.ts'
import { progressName } from '../../lib/runtime/progress/open.ts'
import type { KeyedProgress } from '../../lib/runtime/progress/progress.ts'
import { readKeyedProgress } from '../../lib/runtime/progress/progress-format.ts'
import { dueKey } from '../../lib/state/key-encoding.ts'
import { type KeyOwn, readKeyOwn } from '../../lib/state/key-own.ts'
import type { DueEntry, KeyItem, TimerDomain } from '../../lib/state/state-store.ts'
import type { StatePlace } from './state-place.ts'

/** A partition of the stage's log that holds, or held, the key's slot. */
export interface HoldingPartition {
  readonly partition: string
  readonly isClosed: boolean
  /** Undefined where the stage has not begun it: then its parents' counts. */
  readonly progress: KeyedProgress | undefined
}

/** A timer of the key. */
export interface ShownTimer {
  readonly domain: TimerDomain
  readonly name: string
  readonly timeMs: number
  /** Whether the time that it goes by has come; undefined where that is not known. */
  readonly isDue: boolean | undefined
  /** Of the first timer of its domain: whether there is a due entry, by which the stage finds the key. */
  readonly hasDueEntry: boolean | undefined
}

export interface Explanation {
  readonly key: string
  readonly item: KeyItem
  readonly slot: number
  /** Undefined where the stream is not known; none where it is a topic of which nothing is done yet. */
  readonly partitions: readonly HoldingPartition[] | undefined
  /** Where the slot is now: the newest partition of the chain that was begun. */
  readonly current: HoldingPartition | undefined
  readonly own: KeyOwn
  readonly timers: readonly ShownTimer[]
}

const answerMs = 60_000
const domains: readonly TimerDomain[] = ['event-time', 'processing-time']

/**
 * Reads what there is to know; undefined where there is no such key. Partitions are told only where the stage's log is known.
 * Their progress is read before the key: so a key that is behind it was not changed since, also while the stage runs.
 */
export async function explain(place: StatePlace, key: string, nowMs: number): Promise<Explanation | undefined> {
  const signal = AbortSignal.timeout(answerMs)
  const slot = slotOf(key, place.slots)
  const partitions = await partitionsOf(place, slot, signal)
  const current = partitions?.findLast(({ progress }) => progress !== undefined)
  const item = (await place.store.readKeys([key], signal)).get(key)
  if (item === undefined) return undefined
  const own = readKeyOwn(item.own)
  const untilMs = { 'event-time': current?.progress?.watermarkMs, 'processing-time': nowMs }
  const timers: ShownTimer[] = []
  for (const domain of domains) {
    const set = Object.entries(own.timers?.[domain] ?? {}).toSorted(([, a], [, b]) => a - b)
    for (const [at, [name, timeMs]] of set.entries()) {
      const until = untilMs[domain]
      timers.push({
        ...{ domain, name, timeMs },
        isDue: until === undefined ? undefined : timeMs <= until,
        hasDueEntry: at === 0 ? await hasDueEntry(place, { slot, domain, timeMs, key }) : undefined,
      })
    }
  }
  return { key, item, slot, partitions, current, own, timers }
}

async function partitionsOf(place: StatePlace, slot: number, signal: AbortSignal) {
  if (place.log === undefined) return undefined
  if (place.log.kind === 'topic') return await inTopic(place, slot, signal)
  return await inStream(place, await place.log.lineage.list(signal), slot, signal)
}

/** The chain of shards that held the slot, parents first. */
async function inStream(
  place: StatePlace,
  listed: readonly ListedPartition[],
  slot: number,
  signal: AbortSignal,
): Promise<readonly HoldingPartition[]> {
  const chain = listed.filter((one) => slotsHeld(one, place.slots).includes(slot))
  const found: HoldingPartition[] = []
  for (const { partition, isClosed } of chain) {
    found.push({ partition, isClosed, progress: await progressIn(place, partition, signal) })
  }
  return found
}

/**
 * The one partition of a topic that ever holds the slot: its number modulo their count, which is a power of two and at most the slots.
 * Which count that is, progress says, as it names the slots that it is of.
 */
async function inTopic(place: StatePlace, slot: number, signal: AbortSignal): Promise<readonly HoldingPartition[]> {
  const candidates = new Set<string>()
  for (let count = place.slots; count >= 1; count /= 2) candidates.add(String(slot % count))
  for (const partition of candidates) {
    const progress = await progressIn(place, partition, signal)
    if (progress?.held.includes(slot)) return [{ partition, isClosed: false, progress }]
  }
  return []
}

async function progressIn({ store, stage }: StatePlace, partition: string, signal: AbortSignal) {
  const stored = await store.readProgress(progressName(stage, partition), signal)
  return stored && readKeyedProgress(stored.value, `the progress of stage "${stage}" in partition ${partition}`)
}

/** Whether the table says to a stage that has no record of the key at hand that the key waits for that time. */
async function hasDueEntry({ client, tableName }: StatePlace, entry: DueEntry): Promise<boolean> {
  const Key = keyAttributes(dueKey(entry))
  const { Item } = await client.send(new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true }))
  return Item !== undefined
}
