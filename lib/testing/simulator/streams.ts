/**
 * The streams of a run: the model of a service behind the ports that read and write it, with their faults.
 *
 * What may go wrong (DESIGN, section 5 and the documentation of Kinesis and Kafka):
 * 1. A request is answered in part, or for a record that was taken the answer says refused. (An idempotent producer of Kafka would not
 *    append it again; one that comes after a crash does.)
 * 2. Order is coarse, on Kinesis: a frame may land behind the next one of its slot and upstream, if nobody has read in between.
 *    What is closed is complete: a reshard waits for what is in the air.
 * 3. A stream refuses everything for a while.
 * 4. A read gives fewer records than there are, and takes its time; one shard may be slower than another.
 */
import { RetryableError } from '../../core/errors.ts'
import { type SlotPlace, slotsHeld } from '../../core/slot.ts'
import type { ReadPosition, ShardReader, TopicReader } from '../../emulator/event-source-mapping/index.ts'
import type { EncodedFrame } from '../../runtime/frames/frame.ts'
import { decodeFrame } from '../../runtime/frames/frame-format.ts'
import type { FrameStream } from '../../runtime/frames/publisher.ts'
import type { Answer } from '../../runtime/ordered-delivery.ts'
import type { PartitionLineage } from '../../runtime/progress/lineage.ts'
import type { Faults } from './faults.ts'
import type { Random } from './random.ts'
import { newOwner, type Owner, type Scheduler } from './scheduler.ts'
import type { Change, StreamService } from './stream-service.ts'

/** A record as it stands in a shard's log. */
export interface LogRecord {
  readonly sequenceNumber: string
  readonly partitionKey: string
  readonly data: Uint8Array
  readonly arrivalMs: number
  /** Of Kafka the number of its partition: offsets say nothing without it. */
  readonly partition?: number
}

/** A shard with all that was ever put into it. */
export interface ShardLog {
  readonly id: string
  readonly parents: readonly string[]
  readonly place: SlotPlace
  /** The slots that it holds; none for the stream of a source. */
  readonly slots: ReadonlySet<number>
  isClosed: boolean
  readonly records: LogRecord[]
  /** Until then nobody reads it. */
  blockedUntilMs: number
  /** A frame that was acknowledged and has not landed yet. */
  inTheAir: { readonly frame: EncodedFrame; readonly upstream: string } | undefined
  /** Whoever waits for something to read. */
  readonly waiting: (() => void)[]
}

export interface StreamState {
  readonly name: string
  /** 0 for the stream of a source, which has no slots. */
  readonly slots: number
  /** In the order in which they came to be, parents first. */
  readonly shards: Map<string, ShardLog>
  /** Until then everything is refused. */
  refusesUntilMs: number
}

export interface StreamsOptions {
  readonly service: StreamService
  readonly scheduler: Scheduler
  readonly random: Random
  /** The faults of this moment. */
  readonly faults: () => Faults
  readonly count: (name: string) => void
}

/** What passes by itself, as a client of the service would see it. */
export class Throttled extends Error {
  override readonly name: string = 'ProvisionedThroughputExceededException'
}

const refused = (): Answer => ({ status: 'refused', error: new Throttled('refused by the simulator') })

const upstreamOf = ({ bytes }: EncodedFrame): string => {
  const frame = decodeFrame(bytes)
  return frame.kind === 'frame' ? JSON.stringify([frame.upstream.name, frame.upstream.partition, frame.slot]) : ''
}

export class Streams {
  /** How many frames landed behind their successor. */
  inversions = 0
  readonly #options: StreamsOptions
  readonly #streams = new Map<string, StreamState>()
  readonly #air = newOwner('air')

  constructor(options: StreamsOptions) {
    this.#options = options
  }

  create(name: string, shards: number, slots: number): StreamState {
    this.#options.service.create(name, shards)
    const stream: StreamState = { name, slots, shards: new Map(), refusesUntilMs: 0 }
    this.#streams.set(name, stream)
    this.#refresh(stream)
    return stream
  }

  stream(name: string): StreamState {
    const stream = this.#streams.get(name)
    if (stream === undefined) throw new Error(`the simulation has no stream "${name}"`)
    return stream
  }

  get all(): readonly StreamState[] {
    return [...this.#streams.values()]
  }

  #refresh(stream: StreamState): void {
    for (const { id, parents, place, isClosed } of this.#options.service.list(stream.name)) {
      const known = stream.shards.get(id)
      if (known) {
        known.isClosed = isClosed
        if (isClosed) ring(known)
      } else {
        const slots = new Set(stream.slots === 0 ? [] : slotsHeld(place, stream.slots))
        stream.shards.set(id, {
          id,
          parents,
          place,
          slots,
          isClosed,
          records: [],
          blockedUntilMs: 0,
          inTheAir: undefined,
          waiting: [],
        })
      }
    }
  }

  /** Puts a record; its partition key, or a slot, says into which shard. */
  put(
    name: string,
    partitionKey: string,
    data: Uint8Array,
    slot?: number,
  ): { readonly shard: string; readonly record: LogRecord } {
    const stream = this.stream(name)
    const place = slot === undefined ? undefined : { slot, of: stream.slots }
    const { shard: id, sequenceNumber } = this.#options.service.put(name, { partitionKey, data, slot: place })
    const shard = stream.shards.get(id) as ShardLog
    const arrivalMs = Math.max(this.#options.scheduler.nowMs(), shard.records.at(-1)?.arrivalMs ?? 0)
    const partition = 'remainder' in shard.place ? { partition: shard.place.remainder } : {}
    const record = { sequenceNumber, partitionKey, data, arrivalMs, ...partition }
    shard.records.push(record)
    ring(shard)
    return { shard: id, record }
  }

  /** The port through which frames come to a stream. */
  frames(owner: Owner, name: string): FrameStream {
    const stream = this.stream(name)
    const { scheduler } = this.#options
    return {
      label: `stream "${name}"`,
      put: (frames) =>
        scheduler.call(
          owner,
          `put frames to ${name}`,
          () => this.#putFrames(stream, frames),
          () => frames.map(frameText).join(' '),
        ),
    }
  }

  #putFrames(stream: StreamState, frames: readonly EncodedFrame[]): readonly Answer[] {
    const { random, faults, scheduler, count } = this.#options
    const { refusedItem, lostAcknowledgement, overtaking, lostRequest } = faults()
    if (stream.refusesUntilMs > scheduler.nowMs()) {
      count('throttled call')
      throw new Throttled(`stream ${stream.name} refuses for a while`)
    }
    const answers: Answer[] = []
    const landing: EncodedFrame[] = []
    for (const frame of frames) {
      const isRefused = random.chance(refusedItem)
      if (!isRefused) landing.push(frame)
      const isLost = !isRefused && random.chance(lostAcknowledgement)
      if (isRefused) count('refused frame')
      if (isLost) count('frame taken without an answer')
      answers.push(isRefused || isLost ? refused() : { status: 'delivered' })
    }
    while (landing.length > 0) {
      const [frame] = landing.splice(random.integer(0, landing.length - 1), 1)
      this.#land(stream, frame as EncodedFrame, random.chance(overtaking))
    }
    if (random.chance(lostRequest)) {
      count('lost answer of a request to a stream')
      throw new Throttled(`the answer of stream ${stream.name} was lost`)
    }
    return answers
  }

  #land(stream: StreamState, frame: EncodedFrame, mayBeOvertaken: boolean): void {
    const shard = shardOf(stream, frame.slot)
    const held = shard.inTheAir
    shard.inTheAir = undefined
    if (held === undefined) {
      const upstream = mayBeOvertaken ? upstreamOf(frame) : ''
      if (upstream === '') this.#append(stream, frame)
      else {
        shard.inTheAir = { frame, upstream }
        this.#options.scheduler.timer(this.#air, this.#options.random.integer(0, 5_000), () => ring(shard))
      }
      return
    }
    const overtakes = held.upstream === upstreamOf(frame)
    if (overtakes) this.inversions += 1
    for (const next of overtakes ? [frame, held.frame] : [held.frame, frame]) this.#append(stream, next)
  }

  #append(stream: StreamState, { slot, bytes }: EncodedFrame): void {
    this.put(stream.name, String(slot), bytes, slot)
  }

  /** Puts bytes that are no frame into some slot of an internal stream. */
  putBroken(stream: StreamState): void {
    const slot = this.#options.random.integer(0, stream.slots - 1)
    this.putFrame(stream, { slot, bytes: Buffer.from('no frame') })
  }

  /** Puts a frame into its slot, behind what is in the air. */
  putFrame(stream: StreamState, frame: EncodedFrame): void {
    this.#landHeld(shardOf(stream, frame.slot), stream)
    this.#append(stream, frame)
  }

  /** Lets what is in the air land: of a stream, or of all. */
  land(only?: StreamState): void {
    for (const stream of only ? [only] : this.all) {
      for (const shard of stream.shards.values()) this.#landHeld(shard, stream)
    }
  }

  #landHeld(shard: ShardLog, stream: StreamState): void {
    const held = shard.inTheAir
    shard.inTheAir = undefined
    if (held) this.#append(stream, held.frame)
  }

  reader(owner: Owner, name: string): ShardReader {
    const { scheduler, random, faults, count, service } = this.#options
    const stream = this.stream(name)
    const clock = scheduler.clockOf(owner)
    const slowness = new Map<string, number>()
    const slownessOf = (shardId: string): number => {
      const known = slowness.get(shardId) ?? random.next() ** 2
      slowness.set(shardId, known)
      return known
    }
    /** Where each iterator stands. */
    const places = new Map<string, { readonly shard: ShardLog; readonly index: number }>()
    const shardNamed = (shardId: string): ShardLog => stream.shards.get(shardId) as ShardLog
    return {
      listShards: async () =>
        [...stream.shards.values()].map(({ id, parents }) => ({ shardId: id, parentIds: parents })),
      open: (shardId, position) =>
        scheduler.call(owner, `open ${shardId}`, () => {
          const shard = shardNamed(shardId)
          const iterator = service.open(name, shardId, position)
          places.set(iterator, { shard, index: indexOf(shard, position) })
          return iterator
        }),
      read: async (iterator, limit) => {
        const place = places.get(iterator)
        places.delete(iterator)
        if (place === undefined) throw new Error('an iterator is used twice')
        const { shard, index } = place
        // To read again and again what is not there would take most of a run's time.
        const isAtEnd = index === shard.records.length && !shard.isClosed
        if (isAtEnd && shard.inTheAir !== undefined) await clock.sleep(random.integer(0, 2_000))
        else if (isAtEnd) await new Promise<void>((go) => shard.waiting.push(go))
        const blockedMs = shard.blockedUntilMs - scheduler.nowMs()
        if (blockedMs > 0) await clock.sleep(blockedMs)
        const slowMs = slownessOf(shard.id) * faults().slowReadMs
        if (slowMs > 1_000) count('slow read')
        await clock.sleep(slowMs)
        return scheduler.call(owner, `read ${shard.id}`, () => {
          this.land(stream)
          const most = Math.min(limit, random.chance(0.5) ? random.integer(1, 20) : 1_000)
          const answer = service.read(iterator, most)
          const { nextIterator, records } = answer
          if (nextIterator !== null) places.set(nextIterator, { shard, index: index + records.length })
          return answer
        })
      },
    }
  }

  /** Reads a topic of Kafka. */
  topicReader(owner: Owner, name: string): TopicReader {
    const topicId = this.#options.service.identity?.(name) ?? ''
    return { ...this.reader(owner, name), topicId: async () => topicId, offsetAt: async () => 0 }
  }

  /** Who descends from whom, as the runner asks it. */
  lineage(owner: Owner, name: string): PartitionLineage {
    const { scheduler, service } = this.#options
    const stream = this.stream(name)
    const holdsNothing = (partition: string, after: string | undefined) => {
      const position: ReadPosition =
        after === undefined ? { at: 'trim-horizon' } : { at: 'after', sequenceNumber: after }
      const { records, nextIterator } = service.read(service.open(name, partition, position), 1)
      return { isEmpty: records.length === 0, isClosed: nextIterator === null }
    }
    const described = ({ parents, place }: ShardLog) => ({ parents, ...place })
    return {
      ...(service.identity && {
        identity: () => scheduler.call(owner, `ask who ${name} is`, () => service.identity?.(name) ?? ''),
      }),
      list: () =>
        scheduler.call(owner, `list shards of ${name}`, () =>
          [...stream.shards.values()].map((shard) => ({
            partition: shard.id,
            isClosed: shard.isClosed,
            ...described(shard),
          })),
        ),
      describe: (partition) =>
        scheduler.call(owner, `describe ${partition}`, () => {
          const shard = stream.shards.get(partition)
          return shard && described(shard)
        }),
      isCaughtUp: (partition, after) =>
        scheduler.call(owner, `look behind ${partition}`, () => holdsNothing(partition, after).isEmpty),
      isDrained: (partition, after) =>
        scheduler.call(owner, `look behind ${partition}`, () => {
          const { isEmpty, isClosed } = holdsNothing(partition, after)
          return isEmpty && isClosed
        }),
    }
  }

  /** Changes which shards a stream has, where its service allows that. Says what it did. */
  reshard(stream: StreamState): Change | undefined {
    const { random, service } = this.#options
    this.land(stream)
    const change = service.change(stream.name, stream.slots === 0, random)
    this.#refresh(stream)
    return change
  }
}

function ring({ waiting }: ShardLog): void {
  for (const go of waiting.splice(0)) go()
}

function indexOf({ records }: ShardLog, position: ReadPosition): number {
  if (position.at !== 'after') return 0
  return records.findIndex(({ sequenceNumber }) => sequenceNumber === position.sequenceNumber) + 1
}

/** The open shard that a slot's frames go to. */
function shardOf(stream: StreamState, slot: number): ShardLog {
  for (const shard of stream.shards.values()) {
    if (!shard.isClosed && shard.slots.has(slot)) return shard
  }
  throw new Error(`no open shard of ${stream.name} holds slot ${slot}`)
}

function frameText({ bytes, slot }: EncodedFrame): string {
  const frame = decodeFrame(bytes)
  if (frame.kind === 'control') return `[control slot ${slot}]`
  if (!('upstream' in frame)) return `[${(frame as { kind: string }).kind} slot ${slot}]`
  const numbers = frame.records.map(({ position }) => `${position.number}.${position.index}`).join(' ')
  return `[slot ${slot} of ${frame.upstream.partition}: ${numbers}]`
}

/** How a client of the simulated streams knows what to try again. */
export const passesByItself = (thrown: unknown): boolean => thrown instanceof Throttled

/** A port call came after the deadline. */
export const outOfTime = (what: string): RetryableError =>
  new RetryableError(`${what}: the deadline has come`, { code: 'state-deadline' })
