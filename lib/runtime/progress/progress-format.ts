/**
 * Progress as a stored value. docs/progress.md has its fields and bytes, and these rules as E1 to E4:
 *
 * 1. What is read equals what was written, and equal progress is written as equal bytes.
 * 2. Beside the states of operators it takes at most 2 KB plus eight bytes per slot and upstream.
 * 3. A newer format than ours is a RetryableError: a release that reads it is being deployed. Format 2 is ours, and 1 is read.
 * 4. Progress that cannot be read is a RetryableError too. The records stay where they are until somebody has looked.
 */
import { describeError, RetryableError } from '../../core/errors.ts'
import type { StateValue } from '../../state/state-store.ts'
import { ByteReader } from '../frames/byte-reader.ts'
import { ByteWriter } from '../frames/byte-writer.ts'
import { readPositions, writePositions } from '../frames/frame-format.ts'
import {
  byKey,
  noUpstream,
  readUpstreamAfter,
  UpstreamMemories,
  upstreamKey,
  writeUpstreamAfter,
} from '../frames/upstream-memory.ts'
import type {
  Failing,
  FiringCut,
  KeyedProgress,
  ProgressOfAny,
  SentPositions,
  SlotStates,
  SourceProgress,
  Suspect,
  UpstreamStatus,
} from './progress.ts'

/** The format that is written, and the newest that is read. */
const progressFormat = 2

const states = ['open', 'idle', 'closed'] as const

type Fields = { readonly [name: string]: StateValue }

/** Bytes as the store returns them: an array of its own, no view of a larger one. */
function bytesOf(write: (writer: ByteWriter) => void): Uint8Array {
  const writer = new ByteWriter()
  write(writer)
  return new Uint8Array(writer.view())
}

function readBytes<T>(bytes: Uint8Array, read: (reader: ByteReader) => T): T {
  const reader = new ByteReader(bytes)
  const value = read(reader)
  reader.end()
  return value
}

/** No store holds an infinite number, so those are texts. */
const timeValue = (timeMs: number): StateValue => (Number.isFinite(timeMs) ? timeMs : String(timeMs))

function writeSent(writer: ByteWriter, sent: SentPositions): void {
  writer.count(sent.size)
  for (const [feed, positions] of [...sent].sort(byKey)) {
    writer.text(feed)
    writePositions(writer, positions)
  }
}

function readSent(reader: ByteReader): SentPositions {
  const sent = new Map<string, ReturnType<typeof readPositions>>()
  for (let left = reader.size(); left > 0; left--) {
    const feed = reader.text()
    sent.set(feed, readPositions(reader))
  }
  return sent
}

/** Ascending numbers as runs: how many are left out before each run, and how many are in it. */
function writeHeld(writer: ByteWriter, held: readonly number[]): void {
  const runs: { from: number; until: number }[] = []
  for (const slot of held) {
    const run = runs.at(-1)
    if (run?.until === slot) run.until++
    else runs.push({ from: slot, until: slot + 1 })
  }
  writer.count(runs.length)
  let end = 0
  for (const { from, until } of runs) {
    writer.count(from - end)
    writer.count(until - from)
    end = until
  }
}

/** More slots than any stage has: a corrupt number reserves no memory to speak of. */
const mostHeld = 4_096

function readHeld(reader: ByteReader): number[] {
  const held: number[] = []
  let slot = 0
  for (let left = reader.size(); left > 0; left--) {
    slot += reader.count()
    const length = reader.count()
    if (length > mostHeld) reader.refuse(`${length} slots are more than there are`)
    for (const end = slot + length; slot < end; slot++) held.push(slot)
  }
  return held
}

function writeUpstreams(writer: ByteWriter, upstreams: KeyedProgress['upstreams']): void {
  writer.count(upstreams.size)
  let before = { upstream: noUpstream, markMs: 0, closedAtMs: 0 }
  for (const [, status] of [...upstreams].sort(byKey)) {
    const { upstream, state, markMs, closedAtMs } = status
    writeUpstreamAfter(writer, before.upstream, upstream)
    writer.byte(states.indexOf(state))
    writer.time(before.markMs, markMs)
    if (state === 'closed') writer.time(before.closedAtMs, closedAtMs)
    before = timesAfter(before, status)
  }
}

function readUpstreams(reader: ByteReader): Map<string, UpstreamStatus> {
  const upstreams = new Map<string, UpstreamStatus>()
  let before = { upstream: noUpstream, markMs: 0, closedAtMs: 0 }
  for (let left = reader.size(); left > 0; left--) {
    const upstream = readUpstreamAfter(reader, before.upstream)
    const state = states[reader.byte()] ?? reader.refuse('a state is unknown')
    const markMs = reader.time(before.markMs)
    const closedAtMs = state === 'closed' ? reader.time(before.closedAtMs) : 0
    const status = { upstream, state, markMs, closedAtMs }
    upstreams.set(upstreamKey(upstream), status)
    before = timesAfter(before, status)
  }
  return upstreams
}

const wholeAfter = (before: number, timeMs: number): number => (Number.isSafeInteger(timeMs) ? timeMs : before)

/** Slots ascending as distances, times as steps from the last whole one. */
function writeDue(writer: ByteWriter, due: ReadonlyMap<number, number>): void {
  writer.count(due.size)
  let [slotBefore, timeBefore] = [0, 0]
  for (const [slot, timeMs] of [...due].sort(([a], [b]) => a - b)) {
    writer.count(slot - slotBefore)
    writer.time(timeBefore, timeMs)
    slotBefore = slot
    timeBefore = wholeAfter(timeBefore, timeMs)
  }
}

function readDue(reader: ByteReader): Map<number, number> {
  const due = new Map<number, number>()
  let [slot, timeBefore] = [0, 0]
  for (let left = reader.size(); left > 0; left--) {
    slot += reader.count()
    const timeMs = reader.time(timeBefore)
    timeBefore = wholeAfter(timeBefore, timeMs)
    due.set(slot, timeMs)
  }
  return due
}

type StatusBefore = Pick<UpstreamStatus, 'upstream' | 'markMs' | 'closedAtMs'>

/** Times are steps from the last whole one of their kind. */
const timesAfter = (before: StatusBefore, { upstream, markMs, closedAtMs }: UpstreamStatus): StatusBefore => ({
  upstream,
  markMs: wholeAfter(before.markMs, markMs),
  closedAtMs: closedAtMs === 0 || !Number.isSafeInteger(closedAtMs) ? before.closedAtMs : closedAtMs,
})

type Shared = ProgressOfAny

const failingValue = ({ number, attempts, skipped }: Failing): StateValue =>
  skipped ? { number, attempts, skipped } : { number, attempts }

function writeShared({ completed, number, doneThrough, sent, failing, suspect, generation, log }: Shared): Fields {
  return {
    format: progressFormat,
    number,
    sent: bytesOf((writer) => writeSent(writer, sent)),
    ...(completed === undefined ? {} : { completed }),
    ...(doneThrough === number ? {} : { doneThrough }),
    ...(failing === undefined ? {} : { failing: failingValue(failing) }),
    ...(suspect === undefined ? {} : { suspect: { from: suspect.from, to: suspect.to, attempts: suspect.attempts } }),
    ...(generation === 1 ? {} : { generation }),
    ...(log === undefined ? {} : { log }),
  }
}

/** Reads fields by name, and refuses what is not of the kind that was written. */
class FieldReader {
  readonly #fields: Fields
  readonly #label: string

  constructor(value: StateValue, label: string) {
    this.#label = label
    if (typeof value !== 'object' || value === null || Array.isArray(value) || ArrayBuffer.isView(value)) {
      this.refuse('it is no map')
    }
    this.#fields = value as Fields
    const format = this.number('format')
    if (format <= progressFormat) return
    throw new RetryableError(
      `${label} has format ${format}, and this release of Millrace reads up to ${progressFormat}: deploy the stage with the release that wrote it, or a later one`,
      { code: 'newer-format' },
    )
  }

  refuse(what: string): never {
    throw new RetryableError(
      `${this.#label} cannot be read: ${what}. Only Millrace may write it; restore the item as it was, or the table by its point-in-time recovery`,
      { code: 'progress-unreadable' },
    )
  }

  number(name: string): number {
    const value = this.#fields[name]
    return typeof value === 'number' ? value : this.refuse(`"${name}" is no number`)
  }

  time(name: string): number {
    const value = this.#fields[name]
    if (typeof value === 'number') return value
    return typeof value === 'string' ? Number(value) : this.refuse(`"${name}" is no time`)
  }

  bytes<T>(name: string, read: (reader: ByteReader) => T): T {
    const value = this.#fields[name]
    if (!ArrayBuffer.isView(value)) this.refuse(`"${name}" are no bytes`)
    try {
      return readBytes(value as Uint8Array, read)
    } catch (error) {
      return this.refuse(`"${name}": ${describeError(error).message}`)
    }
  }

  /** Undefined where the field was left out. */
  optional<T>(name: string, read: (value: StateValue) => T): T | undefined {
    const value = this.#fields[name]
    return value === undefined ? undefined : read(value)
  }

  shared(): Shared {
    const number = this.number('number')
    return {
      completed: this.optional('completed', (value) => String(value)),
      number,
      doneThrough: this.optional('doneThrough', () => this.number('doneThrough')) ?? number,
      sent: this.bytes('sent', readSent),
      failing: this.optional('failing', (value) => value as unknown as Failing),
      suspect: this.optional('suspect', (value) => value as unknown as Suspect),
      generation: this.optional('generation', () => this.number('generation')) ?? 1,
      log: this.optional('log', (value) => String(value)),
    }
  }
}

/** Progress of a stage that feeds keyed stages, as its table holds it. */
export function writeSourceProgress(progress: SourceProgress): StateValue {
  return {
    ...writeShared(progress),
    largestEventTimeMs: timeValue(progress.largestEventTimeMs),
    largestArrivedAtMs: progress.largestArrivedAtMs,
    ...(progress.startsAtMs === undefined ? {} : { startsAtMs: progress.startsAtMs }),
  }
}

/**
 * Reads what {@link writeSourceProgress} wrote; `label` says in errors what is read. Throws a {@link RetryableError}
 * `newer-format` or `progress-unreadable`.
 */
export function readSourceProgress(value: StateValue, label = 'progress'): SourceProgress {
  const fields = new FieldReader(value, label)
  return {
    ...fields.shared(),
    largestEventTimeMs: fields.time('largestEventTimeMs'),
    largestArrivedAtMs: fields.number('largestArrivedAtMs'),
    startsAtMs: fields.optional('startsAtMs', () => fields.number('startsAtMs')),
  }
}

/**
 * Progress of a keyed stage, as its table holds it.
 *
 * @example
 * await store.writeProgress(progressName(stage, partition), version, writeKeyedProgress(fold.result()), signal)
 */
export function writeKeyedProgress(progress: KeyedProgress): StateValue {
  const { slots, known, watermarkMs, held, upstreams, memories, operatorStates } = progress
  const { openingMarkMs, processingMs, earliest, firing } = progress
  const bySlot = [...operatorStates].map(([slot, value]) => [String(slot), value] as const)
  return {
    ...writeShared(progress),
    slots,
    known,
    watermarkMs: timeValue(watermarkMs),
    ...(openingMarkMs === undefined ? {} : { openingMarkMs: timeValue(openingMarkMs) }),
    held: bytesOf((writer) => writeHeld(writer, held)),
    upstreams: bytesOf((writer) => writeUpstreams(writer, upstreams)),
    memories: bytesOf((writer) => memories.write(writer)),
    ...(bySlot.length === 0 ? {} : { operatorStates: Object.fromEntries(bySlot) }),
    processingMs,
    ...(earliest.event.size === 0 ? {} : { eventDue: bytesOf((writer) => writeDue(writer, earliest.event)) }),
    ...(earliest.processing.size === 0
      ? {}
      : { processingDue: bytesOf((writer) => writeDue(writer, earliest.processing)) }),
    ...(firing === undefined ? {} : { firing: { number: firing.number, keyHash: firing.keyHash } }),
  }
}

/**
 * Reads what {@link writeKeyedProgress} wrote; `label` says in errors what is read. Throws a {@link RetryableError}
 * `newer-format` or `progress-unreadable`.
 */
export function readKeyedProgress(value: StateValue, label = 'progress'): KeyedProgress {
  const fields = new FieldReader(value, label)
  const bySlot = fields.optional('operatorStates', (found) => found as { readonly [slot: string]: SlotStates }) ?? {}
  return {
    ...fields.shared(),
    slots: fields.number('slots'),
    held: fields.bytes('held', readHeld),
    watermarkMs: fields.time('watermarkMs'),
    openingMarkMs: fields.optional('openingMarkMs', () => fields.time('openingMarkMs')),
    known: fields.optional('known', (found) => found === true) ?? false,
    upstreams: fields.bytes('upstreams', readUpstreams),
    memories: fields.bytes('memories', (reader) => UpstreamMemories.read(reader)),
    operatorStates: new Map(Object.entries(bySlot).map(([slot, states]) => [Number(slot), states])),
    processingMs: fields.number('processingMs'),
    earliest: {
      event: fields.optional('eventDue', () => fields.bytes('eventDue', readDue)) ?? new Map(),
      processing: fields.optional('processingDue', () => fields.bytes('processingDue', readDue)) ?? new Map(),
    },
    firing: fields.optional('firing', (value) => value as unknown as FiringCut),
  }
}

export const sourceFormat = {
  write: writeSourceProgress,
  read: (value: StateValue): SourceProgress => readSourceProgress(value),
}

export const keyedFormat = {
  write: writeKeyedProgress,
  read: (value: StateValue): KeyedProgress => readKeyedProgress(value),
}
