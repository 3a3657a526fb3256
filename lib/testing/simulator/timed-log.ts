/**
 * The log of a keyed stage as whoever reads it from beginning to end sees it: which number has which record, which watermark
 * and which processing time. It shares no code with the runtime but the decoding of frames and the order of positions:
 * it knows no claims and no memories, and finds duplicates by remembering every position that it has ever seen.
 */
import type { Frame, FrameRecord, UpstreamNews } from '../../runtime/frames/frame.ts'
import { decodeFrame } from '../../runtime/frames/frame-format.ts'
import { comparePositions, type Position } from '../../runtime/frames/position.ts'
import type { ShardLog, StreamState } from './streams.ts'

/** A record that is new to its reader. */
export interface TimedRecord<T> {
  readonly key: string
  readonly value: T
  readonly ownMarkMs: number
  readonly eventTimeMs: number
  readonly origin: { readonly partition: string; readonly position: string; readonly arrivalTimeMs: number }
  readonly redrive: string | undefined
  /** A later record of its slot and upstream stands before it. */
  readonly isOvertaken: boolean
}

export interface TimedLine<T> {
  readonly shard: ShardLog
  readonly slot: number
  readonly number: number
  readonly watermarkMs: number
  /** The watermark before this number. */
  readonly beforeMs: number
  readonly processingMs: number
  readonly record: TimedRecord<T> | undefined
}

export interface TimedLog<T> {
  /** Parents before their children. */
  readonly lines: readonly TimedLine<T>[]
  /** Contents that differ from those of an earlier record of the same position. */
  readonly contradictions: readonly string[]
  /** Entries that no reader can decode, by shard and sequence number. */
  readonly broken: readonly string[]
  /** By shard, the watermark at its end. */
  readonly watermarks: ReadonlyMap<string, number>
  /** Upstreams whose records came to a shard that knew others by name, and not them. */
  readonly unnamed: ReadonlySet<string>
}

export const emptyLog: TimedLog<never> = {
  lines: [],
  contradictions: [],
  broken: [],
  watermarks: new Map(),
  unnamed: new Set(),
}

interface Status {
  state: 'idle' | 'open' | 'closed'
  markMs: number
}

/** What the reader of one shard knows. */
interface Reading {
  number: number
  watermarkMs: number
  processingMs: number
  isKnown: boolean
  readonly upstreams: Map<string, Status>
}

const certainty = ['idle', 'open', 'closed'] as const

/** What a child knows at its beginning: the most of what its parents knew. */
function inherited(parents: readonly Reading[]): Reading {
  const reading: Reading = {
    number: Math.max(0, ...parents.map(({ number }) => number)),
    watermarkMs: Math.max(Number.NEGATIVE_INFINITY, ...parents.map(({ watermarkMs }) => watermarkMs)),
    processingMs: Math.max(0, ...parents.map(({ processingMs }) => processingMs)),
    isKnown: parents.some(({ isKnown }) => isKnown),
    upstreams: new Map(),
  }
  for (const { upstreams } of parents) {
    for (const [name, { state, markMs }] of upstreams) {
      const known = reading.upstreams.get(name) ?? { state, markMs }
      const most = certainty[Math.max(certainty.indexOf(known.state), certainty.indexOf(state))] ?? state
      reading.upstreams.set(name, { state: most, markMs: Math.max(known.markMs, markMs) })
    }
  }
  return reading
}

/** Closed stays closed and marks only grow; idle is for one that never had a mark. */
function note({ upstreams }: Reading, name: string, told: Status['state'], markMs: number): void {
  const known = upstreams.get(name)
  if (known === undefined) {
    upstreams.set(name, { state: told, markMs })
    return
  }
  const isRefused = known.state === 'closed' || (told === 'idle' && known.markMs > Number.NEGATIVE_INFINITY)
  if (!isRefused) known.state = told
  known.markMs = Math.max(known.markMs, markMs)
}

function moveWatermark(reading: Reading): void {
  const open = [...reading.upstreams.values()].filter(({ state }) => state === 'open')
  if (!reading.isKnown || open.length === 0) return
  reading.watermarkMs = Math.max(reading.watermarkMs, Math.min(...open.map(({ markMs }) => markMs)))
}

const upstreamName = ({ name, partition }: UpstreamNews['upstream']): string => `${name}/${partition}`

/** Which positions came, and how far each upstream is in each slot. */
class Seen {
  readonly contradictions: string[] = []
  readonly #contents = new Map<string, string>()
  readonly #furthest = new Map<string, Position>()

  /** Undefined for a record that came before; otherwise whether it was overtaken. */
  look(
    { upstream, slot }: Frame,
    { position, key, value }: FrameRecord,
  ): { readonly isOvertaken: boolean } | undefined {
    const from = upstreamName(upstream)
    const name = `${from}@${position.number}.${position.own}.${position.keyHash}.${position.index}`
    const content = `${key} ${Buffer.from(value)}`
    const first = this.#contents.get(name)
    if (first !== undefined) {
      if (first !== content) this.contradictions.push(`${name}: ${first} and ${content}`)
      return undefined
    }
    this.#contents.set(name, content)
    const before = this.#furthest.get(`${slot}/${from}`)
    const isOvertaken = before !== undefined && comparePositions(position, before) < 0
    if (!isOvertaken) this.#furthest.set(`${slot}/${from}`, position)
    return { isOvertaken }
  }
}

/** Reads the whole log of a keyed stage's stream. */
export function readTimedLog<T>(stream: StreamState): TimedLog<T> {
  const seen = new Seen()
  const lines: TimedLine<T>[] = []
  const broken: string[] = []
  const unnamed = new Set<string>()
  const readings = new Map<string, Reading>()
  for (const shard of stream.shards.values()) {
    const reading = inherited(shard.parents.map((parent) => readings.get(parent) as Reading))
    readings.set(shard.id, reading)
    for (const { data, arrivalMs, sequenceNumber } of shard.records) {
      const beforeMs = reading.watermarkMs
      const frame = decoded(data)
      if (frame === undefined) broken.push(`${stream.name}/${shard.id}/${sequenceNumber}/0`)
      if (frame?.kind === 'control') {
        for (const { upstream, state, markMs } of frame.news) note(reading, upstreamName(upstream), state, markMs)
        if (frame.from === 'announcer') reading.isKnown = true
      }
      if (frame?.kind === 'frame') {
        const name = upstreamName(frame.upstream)
        if (reading.isKnown && !reading.upstreams.has(name)) unnamed.add(name)
        note(reading, name, 'open', frame.markMs)
      }
      moveWatermark(reading)
      reading.processingMs = Math.max(reading.processingMs, arrivalMs)
      const slot = frame?.slot ?? Math.min(...shard.slots)
      const records = frame === undefined || frame.kind === 'control' ? [] : frame.records
      for (const record of records.length === 0 ? [undefined] : records) {
        reading.number += 1
        const { number, watermarkMs, processingMs } = reading
        const taken = record && lookAt(seen, frame as Frame, record)
        lines.push({
          shard,
          slot,
          number,
          watermarkMs,
          processingMs,
          beforeMs: record === records[0] || record === undefined ? beforeMs : watermarkMs,
          record: record && taken && recordOf<T>(record, taken.isOvertaken),
        })
      }
    }
  }
  const watermarks = new Map([...readings].map(([shard, { watermarkMs }]) => [shard, watermarkMs]))
  return { lines, contradictions: seen.contradictions, broken, watermarks, unnamed }
}

/** Redriven records always are new to the log: their key knows which it took. */
const lookAt = (seen: Seen, frame: Frame, record: FrameRecord) =>
  frame.kind === 'frame' ? seen.look(frame, record) : { isOvertaken: false }

function recordOf<T>(record: FrameRecord, isOvertaken: boolean): TimedRecord<T> {
  const { key, value, ownMarkMs, eventTimeMs, origin, redrive } = record
  return {
    key,
    value: JSON.parse(Buffer.from(value).toString()) as T,
    ownMarkMs,
    eventTimeMs,
    origin,
    redrive,
    isOvertaken,
  }
}

function decoded(data: Uint8Array) {
  try {
    return decodeFrame(data)
  } catch {
    return undefined
  }
}
