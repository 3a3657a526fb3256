/**
 * The fold of a keyed stage over its log: what each number is, and progress after it. Rules L1 to L8 of docs/progress.md:
 *
 * 1. Every record of a frame takes a number, new or not. A control frame, an empty frame and an entry that cannot be
 *    decoded take one.
 * 2. Of a frame those records are taken that were not read yet, never the frame as a whole. Redriven ones always are.
 * 3. Marks only grow. An upstream is idle only while it never had a mark; closed stays closed.
 * 4. The first frame of an unknown upstream opens it. What a closed one still sends is dropped, unless it fills a gap.
 * 5. A close makes a gap, in each slot that the partition holds, of what was sent and did not come.
 * 6. The watermark is the least mark of the open upstreams. It never falls, and stays where it is until the announcer has
 *    told the upstreams.
 * 7. A control frame is applied as a whole: its upstreams are opened and closed before the watermark is looked at.
 * 8. A closed upstream is forgotten when the log has gone on for the retention of the stream.
 *
 * A frame whose values have a newer schema version than the stage knows is left where it is, as one of a newer format is.
 *
 * What an upstream of an older generation says is dropped (generation.ts), and so is a redriven record that was given up in one; within,
 * upstreams are named by their stage alone.
 * The fold reads nothing but the log, so two attempts at one position make the same of it.
 */
import { isTerminal, RetryableError, TerminalError } from '../../core/errors.ts'
import type { SourceRecord } from '../../core/record.ts'
import type { ShortTexts } from '../frames/byte-reader.ts'
import type { ControlFrame, Frame, IncomingRecord, RedriveFrame, Upstream, UpstreamNews } from '../frames/frame.ts'
import { decodeIncoming } from '../frames/frame-format.ts'
import { type UpstreamMemories, upstreamKey } from '../frames/upstream-memory.ts'
import { upstreamOf } from './generation.ts'
import { FoldedLine, type Line, type LinePlace, type SharedByLines } from './line.ts'
import type { KeyedProgress, UpstreamStatus } from './progress.ts'

export type { Line } from './line.ts'

export interface FoldOptions {
  /** How long a closed upstream is remembered: the retention of the stage's stream, in ms. */
  readonly retentionMs: number
  /** The stage, and the schema version up to which it reads the values that come to it. @default any version */
  readonly reads?: { readonly stage: string; readonly version: number }
  /** The short texts that the stage's frames have had. @default none are remembered */
  readonly shortTexts?: ShortTexts
}

/** What an entry holds, as the stage reads it. */
type Incoming = Frame<IncomingRecord> | ControlFrame | RedriveFrame<IncomingRecord>

/** Throws a RetryableError where a deployment that this one does not know yet wrote the values. */
function refuseNewer(schemaVersion: number, reads: FoldOptions['reads']): void {
  if (reads === undefined || schemaVersion <= reads.version) return
  throw new RetryableError(
    `a frame for stage "${reads.stage}" has values of the schema version ${schemaVersion}, and this deployment reads up to ${reads.version}: deploy the stage with keyBy("${reads.stage}", ..., { version: ${schemaVersion} }), or a later one`,
    { code: 'newer-schema' },
  )
}

/**
 * Decodes an entry; throws what `decodeFrame` throws, a RetryableError for newer values, and a TerminalError for what is no
 * frame of this partition.
 */
function frameIn(entry: SourceRecord, held: ReadonlySet<number>, { reads, shortTexts }: FoldOptions): Incoming {
  const { unreadable, payload } = entry
  if (unreadable) throw new TerminalError(unreadable.message, { code: unreadable.code })
  const frame = decodeIncoming(payload ?? new Uint8Array(), shortTexts)
  if (frame.kind === 'control') return frame
  refuseNewer(frame.schemaVersion, reads)
  if (held.has(frame.slot)) return frame
  throw new TerminalError(
    `a frame of slot ${frame.slot} came in a partition that does not hold that slot: the stream must place records by their slots (on Kinesis, by explicit hash keys), and whoever writes to it must have the stage's number of slots`,
    { code: 'foreign-slot' },
  )
}

/**
 * Folds entries into a copy of progress, one after the other. Whoever needs progress at an earlier entry folds again from
 * the same value.
 *
 * @example
 * const fold = new KeyedFold(progress, { retentionMs: days(7).ms })
 * const lines = entries.flatMap((entry, index) => fold.fold(entry, index))
 * await store.writeProgress(progressName(stage, partition), version, writeKeyedProgress(fold.result()), signal)
 */
export class KeyedFold {
  readonly #from: KeyedProgress
  readonly #held: ReadonlySet<number>
  readonly #options: FoldOptions
  readonly #upstreams: Map<string, UpstreamStatus>
  readonly #memories: UpstreamMemories
  #completed: string | undefined
  #number: number
  #watermarkMs: number
  #processingMs: number
  #known: boolean
  #duplicates = 0
  #redrivesDropped = 0
  /** True where the marks may say another watermark than when it was last made of them; so as long as it is not known. */
  #marksMoved = true
  /** No closed upstream is forgotten before the log is past this. */
  #forgetAfterMs: number

  constructor(progress: KeyedProgress, options: FoldOptions) {
    this.#from = progress
    this.#held = new Set(progress.held)
    this.#options = options
    this.#upstreams = new Map(progress.upstreams)
    this.#memories = progress.memories.copy()
    this.#completed = progress.completed
    this.#number = progress.number
    this.#watermarkMs = progress.watermarkMs
    this.#known = progress.known
    this.#processingMs = progress.processingMs
    this.#forgetAfterMs = this.#nextToForgetMs()
  }

  /** How many records were dropped because they had been read before, or came after everything of a closed upstream. */
  get duplicates(): number {
    return this.#duplicates
  }

  /** How many redriven records were dropped because they had been given up in an older generation. */
  get redrivesDropped(): number {
    return this.#redrivesDropped
  }

  /**
   * Folds the next entry: one line per number that it takes, `index` being its place in the batch.
   *
   * Throws a RetryableError `frame-newer` where a newer release wrote the entry, and `newer-schema` where a newer deployment
   * did; the fold is then as it was before it.
   */
  fold(entry: SourceRecord, index: number): readonly Line[] {
    const lines = this.#fold(entry, index)
    this.#completed = entry.position
    return lines
  }

  /**
   * Progress after the last entry that was folded; folding on leaves it as it is. What was sent, what fails and the states
   * of operators are as they were: they are the batch's own.
   */
  result(): KeyedProgress {
    return {
      ...this.#from,
      completed: this.#completed,
      number: this.#number,
      doneThrough: Math.max(this.#number, this.#from.doneThrough),
      watermarkMs: this.#watermarkMs,
      openingMarkMs: this.#number === this.#from.number ? this.#from.openingMarkMs : undefined,
      known: this.#known,
      processingMs: this.#processingMs,
      upstreams: new Map(this.#upstreams),
      memories: this.#memories.copy(),
    }
  }

  #fold(entry: SourceRecord, index: number): readonly Line[] {
    const arrivedAtMs = entry.arrivalTimeMs
    let frame: Incoming
    try {
      frame = frameIn(entry, this.#held, this.#options)
    } catch (failure) {
      if (!isTerminal(failure)) throw failure
      this.#moveWatermark()
      return [this.#line({ slot: this.#from.held[0] ?? 0, entry: index, arrivedAtMs, failure })]
    }
    const upstream = frame.kind === 'frame' ? this.#ownUpstream(frame.upstream) : undefined
    const news = frame.kind === 'control' ? this.#ownNews(frame) : []
    const isOfNow = frame.kind === 'redrive' && this.#isOfNow(frame.generation ?? 1, 'dead letters')
    this.#forgetClosed(arrivedAtMs)
    let read = nothing
    if (frame.kind === 'frame') read = upstream === undefined ? nothing : this.#read({ ...frame, upstream })
    else if (frame.kind === 'redrive') read = isOfNow ? { news: frame.records, overtaken: 0 } : nothing
    else this.#apply(frame.from, news, arrivedAtMs)
    this.#moveWatermark()
    if (frame.kind === 'control') return [this.#line({ slot: frame.slot, entry: index, arrivedAtMs })]
    return this.#lines(frame, read, index, arrivedAtMs)
  }

  /** One line per record. What is new comes in the order of the frame, and what was overtaken comes first in it. */
  #lines(frame: Exclude<Incoming, ControlFrame>, read: Read, index: number, arrivedAtMs: number): readonly Line[] {
    const { records, slot, schemaVersion } = frame
    if (records.length === 0) return [this.#line({ slot, entry: index, arrivedAtMs })]
    const lines: Line[] = []
    const shared = this.#shared({ slot, entry: index, arrivedAtMs, schemaVersion })
    let taken = 0
    for (const record of records) {
      this.#number++
      const isNew = record === read.news[taken]
      const overtaken = isNew && taken < read.overtaken
      lines.push(new FoldedLine(this.#number, isNew ? record : undefined, overtaken, shared))
      if (isNew) taken++
    }
    if (frame.kind === 'redrive') this.#redrivesDropped += records.length - taken
    else this.#duplicates += records.length - taken
    return lines
  }

  /** A line without a record. */
  #line(of: LinePlace): Line {
    this.#number++
    return new FoldedLine(this.#number, undefined, false, this.#shared(of))
  }

  /** What the lines of an entry share, where nothing moves the times between them. */
  #shared({ slot, entry, arrivedAtMs, schemaVersion = 1, failure }: LinePlace): SharedByLines {
    if (arrivedAtMs > this.#processingMs) this.#processingMs = arrivedAtMs
    const times = { watermarkMs: this.#watermarkMs, processingMs: this.#processingMs }
    return { slot, entry, arrivedAtMs, schemaVersion, failure, ...times }
  }

  /** An upstream by its stage alone where it is of our generation; undefined where it is of an older one. */
  #ownUpstream({ name, partition }: Upstream): Upstream | undefined {
    const { stage, generation } = upstreamOf(name)
    return this.#isOfNow(generation, `stage "${stage}"`) ? { name: stage, partition } : undefined
  }

  /** Whether what `of` sent is of our generation; throws where it is of a later one. */
  #isOfNow(generation: number, of: string): boolean {
    if (generation <= this.#from.generation) return generation === this.#from.generation
    throw new RetryableError(
      `a frame of ${of} is of the generation ${generation}, and the partition is of ${this.#from.generation}: a reset was cut off: run \`millrace reset\` again`,
      { code: 'newer-generation' },
    )
  }

  #ownNews({ news }: ControlFrame): readonly UpstreamNews[] {
    return news.flatMap((one) => {
      const upstream = this.#ownUpstream(one.upstream)
      return upstream === undefined ? [] : [{ ...one, upstream }]
    })
  }

  #read(frame: Frame<IncomingRecord>): Read {
    const { upstream, slot } = frame
    const key = upstreamKey(upstream)
    const isClosed = this.#upstreams.get(key)?.state === 'closed'
    if (isClosed && !this.#memories.of(upstream, slot)?.gaps.length) return nothing
    this.#note(key, upstream, 'open', frame.markMs, 0)
    const { news, overtaken } = this.#memories.accept(frame)
    return { news, overtaken: overtaken.length }
  }

  #apply(from: ControlFrame['from'], news: readonly UpstreamNews[], arrivedAtMs: number): void {
    for (const { upstream, state, markMs, lastSent } of news) {
      this.#note(upstreamKey(upstream), upstream, state, markMs, arrivedAtMs)
      for (const [slot, position] of lastSent) {
        if (this.#held.has(slot)) this.#memories.close(upstream, slot, position)
      }
    }
    // After a reset: without news it is a tick, and may be of an older generation.
    if (from === 'announcer' && (news.length > 0 || this.#from.generation === 1)) this.#known = true
  }

  #note(key: string, upstream: Upstream, told: UpstreamNews['state'], markMs: number, arrivedAtMs: number): void {
    const old = this.#upstreams.get(key)
    const hadMark = old !== undefined && old.markMs > Number.NEGATIVE_INFINITY
    const state = old && (old.state === 'closed' || (told === 'idle' && hadMark)) ? old.state : told
    if (old && state === old.state && markMs <= old.markMs) return
    const isNewlyClosed = state === 'closed' && old?.state !== 'closed'
    const closedAtMs = isNewlyClosed ? arrivedAtMs : (old?.closedAtMs ?? 0)
    this.#upstreams.set(key, { upstream, state, markMs: Math.max(markMs, old?.markMs ?? markMs), closedAtMs })
    this.#marksMoved = true
    if (isNewlyClosed) this.#forgetAfterMs = Math.min(this.#forgetAfterMs, closedAtMs + this.#options.retentionMs)
  }

  #moveWatermark(): void {
    if (!this.#marksMoved || !this.#known) return
    this.#marksMoved = false
    let leastMs = Number.POSITIVE_INFINITY
    let isAnyOpen = false
    for (const { state, markMs } of this.#upstreams.values()) {
      if (state !== 'open') continue
      isAnyOpen = true
      if (markMs < leastMs) leastMs = markMs
    }
    if (isAnyOpen && leastMs > this.#watermarkMs) this.#watermarkMs = leastMs
  }

  #forgetClosed(nowMs: number): void {
    if (nowMs <= this.#forgetAfterMs) return
    for (const [key, { upstream, state, closedAtMs }] of this.#upstreams) {
      if (state !== 'closed' || nowMs <= closedAtMs + this.#options.retentionMs) continue
      this.#upstreams.delete(key)
      this.#memories.forget(upstream)
    }
    this.#forgetAfterMs = this.#nextToForgetMs()
  }

  #nextToForgetMs(): number {
    let leastMs = Number.POSITIVE_INFINITY
    for (const { state, closedAtMs } of this.#upstreams.values()) {
      if (state === 'closed') leastMs = Math.min(leastMs, closedAtMs + this.#options.retentionMs)
    }
    return leastMs
  }
}

/** What is new in a frame, and how many of it, from the first on, were overtaken. */
interface Read {
  readonly news: readonly IncomingRecord[]
  readonly overtaken: number
}

const nothing: Read = { news: [], overtaken: 0 }
