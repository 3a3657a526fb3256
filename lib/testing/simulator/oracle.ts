/**
 * What must come out, computed in the most naive way that there is: one record after the other, in plain maps, without
 * batches, frames, positions of keys or caches. It shares no code with the runtime but the decoding of frames and the order of
 * positions.
 *
 * {@link replay} takes the order of records from the internal streams, where the promises leave it open (two upstream
 * partitions); {@link bySource} knows the source alone.
 */
import { decodeFrame } from '../../runtime/frames/frame-format.ts'
import { comparePositions, type Interval, type Position } from '../../runtime/frames/position.ts'
import { BriefOracle, briefNames } from './briefs.ts'
import type { Line } from './lines.ts'
import { contentOf } from './sinks.ts'
import type { StreamState } from './streams.ts'
import { type Entry, isRejected, names, type SourceEntry, type Tally } from './workload.ts'

/** A record in the log of a keyed stage's stream: the first of all that carry its position. */
export interface LoggedRecord<T> {
  readonly stage: string
  readonly shard: string
  readonly slot: number
  readonly number: number
  readonly key: string
  readonly value: T
  /** The upstream partition with its stage. */
  readonly upstream: string
  /** The number at which the upstream sent it, and its place there. */
  readonly sentAt: readonly [number: number, index: number]
  readonly origin: { readonly partition: string; readonly position: string; readonly arrivalTimeMs: number }
  readonly eventTimeMs: number
  /** When its frame came into the log. */
  readonly arrivalMs: number
  /** A later record of its slot and upstream stands before it. */
  readonly isOvertaken: boolean
  /** A frame before its own claims that nothing was sent where it was: whoever reads the log takes it for one that came before. */
  readonly isDenied: boolean
}

export interface InternalLog<T> {
  readonly records: readonly LoggedRecord<T>[]
  /** Contents that differ from those of an earlier record of the same position. */
  readonly contradictions: readonly string[]
  /** Entries that no reader can decode, by shard and number. */
  readonly broken: readonly { readonly shard: string; readonly number: number }[]
}

/** Reads the whole log of a keyed stage's stream, parents before their children. */
export function readInternalLog<T>(stream: StreamState, stage: string): InternalLog<T> {
  const records: LoggedRecord<T>[] = []
  const contradictions: string[] = []
  const broken: { shard: string; number: number }[] = []
  const seen = new Map<string, string>()
  const furthest = new Map<string, readonly [number, number]>()
  const claims = new ClaimsOf()
  const numbers = new Map<string, number>()
  for (const shard of stream.shards.values()) {
    // Numbers go on from the largest of the parents'.
    let number = Math.max(0, ...shard.parents.map((parent) => numbers.get(parent) ?? 0))
    for (const { data, arrivalMs } of shard.records) {
      const frame = decoded(data)
      if (frame?.kind !== 'frame') {
        number += 1
        if (frame === undefined) broken.push({ shard: shard.id, number })
        continue
      }
      const upstream = `${frame.upstream.name}/${frame.upstream.partition}`
      for (const { position, key, value, origin, eventTimeMs } of frame.records) {
        number += 1
        const name = `${upstream}@${position.number}.${position.own}.${position.keyHash}.${position.index}`
        const content = Buffer.from(value).toString()
        const first = seen.get(name)
        if (first !== undefined) {
          if (first !== `${key} ${content}`) contradictions.push(`${name}: ${first} and ${key} ${content}`)
          continue
        }
        seen.set(name, `${key} ${content}`)
        const inSlot = `${frame.slot}/${upstream}`
        const sentAt = [position.number, position.index] as const
        const before = furthest.get(inSlot)
        const isOvertaken = before !== undefined && isBefore(sentAt, before)
        if (!isOvertaken) furthest.set(inSlot, sentAt)
        records.push({
          stage,
          shard: shard.id,
          slot: frame.slot,
          number,
          key,
          value: JSON.parse(content) as T,
          upstream,
          sentAt,
          origin,
          eventTimeMs,
          arrivalMs,
          isOvertaken,
          isDenied: claims.hold(inSlot, position),
        })
      }
      claims.add(`${frame.slot}/${upstream}`, frame.claims)
    }
    numbers.set(shard.id, number)
  }
  return { records, contradictions, broken }
}

/** What the frames so far claim of each slot and upstream: a list, looked through from its beginning. */
class ClaimsOf {
  readonly #claims = new Map<string, Interval[]>()

  add(inSlot: string, claims: readonly Interval[]): void {
    const all = this.#claims.get(inSlot)
    if (all === undefined) this.#claims.set(inSlot, [...claims])
    else all.push(...claims)
  }

  hold(inSlot: string, position: Position): boolean {
    const all = this.#claims.get(inSlot) ?? []
    return all.some(
      ({ previous, last }) => comparePositions(previous, position) < 0 && comparePositions(position, last) <= 0,
    )
  }
}

function decoded(data: Uint8Array) {
  try {
    return decodeFrame(data)
  } catch {
    return undefined
  }
}

const isBefore = (a: readonly [number, number], b: readonly [number, number]): boolean =>
  a[0] < b[0] || (a[0] === b[0] && a[1] < b[1])

/** What the ledger and its neighbours keep of one user. */
export interface UserState {
  total: number
  readonly items: Map<string, number>
  recent: string[]
  biggest: number
  sum: number
  lines: number
  readonly once: Set<string>
  readonly lately: Lately
  readonly arrivedLately: Lately
}

/** A count that is gone when the largest time of its key is so far ahead of the last write. */
interface Lately {
  count: number
  largestMs: number
  touchedMs: number
}

/** What the third stage keeps of one item. */
export interface ItemState {
  lines: number
  cents: number
  /** The largest arrival time of its records. */
  arrivalTimeMs: number
}

export interface Replay {
  readonly users: ReadonlyMap<string, UserState>
  readonly items: ReadonlyMap<string, ItemState>
  /** What must have been delivered, and nothing else: content by identity. */
  readonly outputs: ReadonlyMap<string, string>
  /** What may have been delivered: results of which each batch publishes the last. */
  readonly interim: ReadonlyMap<string, string>
  /** The last interim result of each key, which must have been delivered. */
  readonly lastInterim: ReadonlyMap<string, string>
  /** The lines whose steps fail: dead letters. */
  readonly dead: readonly LoggedRecord<Line>[]
  /** The lines of which a sink never takes an output: that is a dead letter too. */
  readonly rejected: readonly LoggedRecord<Line>[]
  /** The lines that are applied. */
  readonly applied: readonly LoggedRecord<Line>[]
  /** What the ledger sends to the third stage, in its order. */
  readonly sent: readonly { readonly content: string; readonly from: LoggedRecord<Line> }[]
  /** How often something had lived as long as its TTL. */
  readonly forgotten: number
}

export const newUser = (): UserState => ({
  total: 0,
  items: new Map(),
  recent: [],
  biggest: Number.NEGATIVE_INFINITY,
  sum: 0,
  lines: 0,
  once: new Set(),
  lately: newLately(),
  arrivedLately: newLately(),
})

const newLately = (): Lately => ({ count: 0, largestMs: Number.NEGATIVE_INFINITY, touchedMs: 0 })

function countLately(lately: Lately, timeMs: number): number {
  lately.largestMs = Math.max(lately.largestMs, timeMs)
  if (lately.largestMs >= lately.touchedMs + names.latelyMs) lately.count = 0
  lately.touchedMs = lately.largestMs
  lately.count += 1
  return lately.count
}

/** One step of the ledger. */
function applyLine(user: UserState, record: LoggedRecord<Line>, inSlot: number) {
  const { key, value: line, eventTimeMs, origin } = record
  const before = user.total
  user.total += line.cents
  if (line.does === 'add') user.items.set(line.item, (user.items.get(line.item) ?? 0) + 1)
  if (line.does === 'remove') user.items.delete(line.item)
  user.recent = [...user.recent, line.line].slice(-names.recentLines)
  user.biggest = Math.max(user.biggest, line.cents)
  user.sum += line.cents
  user.lines += 1
  const isFirst = !user.once.has(line.line)
  user.once.add(line.line)
  const holds = [...user.items].sort(([a], [b]) => (a < b ? -1 : 1)).map(([item, count]) => `${item}=${count}`)
  const entry: Entry = {
    user: key,
    line: line.line,
    item: line.item,
    cents: line.cents,
    total: user.total,
    held: line.does === 'audit' ? null : (user.items.get(line.item) ?? null),
    holds: line.does === 'audit' ? holds : null,
    recent: user.recent,
    biggest: user.biggest,
    mean: user.sum / user.lines,
    lately: countLately(user.lately, eventTimeMs),
    arrivedLately: countLately(user.arrivedLately, origin.arrivalTimeMs),
    inSlot,
  }
  const step = names.alertEveryCents
  const alerts = Math.floor(user.total / step) > Math.floor(before / step)
  return { entry, alerts, isFirst }
}

/** How dead letters call a record of a keyed stage. */
export const deadLetterId = ({ stage, slot, number }: LoggedRecord<unknown>): string =>
  `${stage}/slot-${slot}/${number}`

/**
 * Applies every record of the logs once, in the order of the logs, but for those whose ids are in `killed`: they were taken
 * for what ended the process, and are dead letters. What an earlier frame denies is dropped too; whether it may be denied is
 * for the referees to say.
 */
export function replay(
  lines: readonly LoggedRecord<Line>[],
  sold: readonly LoggedRecord<SoldItem>[],
  killed: ReadonlySet<string>,
  hasBriefs: boolean,
): Replay {
  const users = new Map<string, UserState>()
  const outputs = new Map<string, string>()
  const interim = new Map<string, string>()
  const lastInterim = new Map<string, string>()
  const dead: LoggedRecord<Line>[] = []
  const rejected: LoggedRecord<Line>[] = []
  const applied: LoggedRecord<Line>[] = []
  const sent: Replay['sent'][number][] = []
  const briefs = new Map<string, BriefOracle>()
  const inSlots = new Map<number, number>()
  for (const record of lines) {
    if (record.isDenied) continue
    const { key, slot, value: line } = record
    inSlots.set(slot, (inSlots.get(slot) ?? 0) + 1)
    if (line.fails !== 'never' || killed.has(deadLetterId(record))) {
      dead.push(record)
      continue
    }
    applied.push(record)
    const user = users.get(key) ?? newUser()
    users.set(key, user)
    const { entry, alerts, isFirst } = applyLine(user, record, inSlots.get(slot) ?? 0)
    outputs.set(identityOf('entries', record), contentOf(entry))
    if (alerts) outputs.set(identityOf('alerts', record), contentOf({ user: key, total: user.total }))
    if (isFirst && isRejected('firsts', line.cents)) rejected.push(record)
    else if (isFirst) outputs.set(identityOf('firsts', record), contentOf(line))
    const tally: Tally = { user: key, lines: user.lines, cents: user.sum }
    outputs.set(identityOf('updates', record), contentOf(tally))
    interim.set(identityOf('latest', record), contentOf(tally))
    lastInterim.set(key, identityOf('latest', record))
    const { item, cents, total } = entry
    sent.push({ content: contentOf({ item, line: line.line, cents, total } satisfies SoldItem), from: record })
    if (!hasBriefs) continue
    const oracle = briefs.get(key) ?? new BriefOracle()
    briefs.set(key, oracle)
    const { isFirst: isRecent, brief } = oracle.take(line, record.eventTimeMs, record.origin.arrivalTimeMs)
    if (isRecent) outputs.set(identityOf(briefNames.first, record), contentOf(line))
    outputs.set(identityOf(briefNames.brief, record), contentOf(brief))
  }
  const items = new Map<string, ItemState>()
  for (const record of sold) {
    if (record.isDenied || killed.has(deadLetterId(record))) continue
    const { item, line, cents, total } = record.value
    const state = items.get(item) ?? { lines: 0, cents: 0, arrivalTimeMs: Number.NEGATIVE_INFINITY }
    items.set(item, state)
    const arrivalTimeMs = Math.max(state.arrivalTimeMs, record.origin.arrivalTimeMs)
    if (hasBriefs && arrivalTimeMs >= state.arrivalTimeMs + names.latelyMs) Object.assign(state, { lines: 0, cents: 0 })
    state.lines += 1
    state.cents += cents
    state.arrivalTimeMs = arrivalTimeMs
    outputs.set(identityOf('stock', record), contentOf({ item, line, total, lines: state.lines, cents: state.cents }))
  }
  const forgotten = [...briefs.values()].reduce((sum, brief) => sum + brief.forgotten, 0)
  return { users, items, outputs, interim, lastInterim, dead, rejected, applied, sent, forgotten }
}

/** What the ledger sends on. */
export interface SoldItem {
  readonly item: string
  readonly line: string
  readonly cents: number
  readonly total: number
}

/** Outputs of a step are named by the digits of its number, a 1 for the record's own key, and zeros where a firing has a hash. */
export const placeOf = (number: number): string => `${number}1${'0'.repeat(39)}`

export const identityOf = (sink: string, { stage, slot, number }: LoggedRecord<unknown>): string =>
  `${sink}:${stage}/slot-${slot}/${placeOf(number)}/0/0`

/** What follows from the source alone. */
export interface BySource {
  /** Orders that reach the sink of the first stage. */
  readonly orders: ReadonlySet<string>
  /** Every line that is sent to the keyed stage, as `order line`. */
  readonly lines: ReadonlySet<string>
  /** Records that the first stage gives up, as their bytes in base64. */
  readonly dead: ReadonlySet<string>
  /** Of each user: the sum and the number of lines, and the largest. */
  readonly users: ReadonlyMap<string, { lines: number; cents: number; biggest: number }>
}

export function bySource(entries: readonly SourceEntry[]): BySource {
  const orders = new Set<string>()
  const lines = new Set<string>()
  const dead = new Set<string>()
  const users = new Map<string, { lines: number; cents: number; biggest: number }>()
  for (const { order, bytes } of entries) {
    if (order === undefined || order.fails !== 'never') {
      dead.add(Buffer.from(bytes).toString('base64'))
      continue
    }
    orders.add(order.order)
    for (const line of order.lines) {
      lines.add(`${order.order} ${line.line}`)
      if (line.fails !== 'never') continue
      const user = users.get(line.user) ?? { lines: 0, cents: 0, biggest: 0 }
      user.lines += 1
      user.cents += line.cents
      user.biggest = Math.max(user.biggest, line.cents)
      users.set(line.user, user)
    }
  }
  return { orders, lines, dead, users }
}
