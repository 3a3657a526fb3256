/** What may happen at any step of a run with time, beside what happens in every run. */
import { slotOf } from '../../core/slot.ts'
import type { DeadLetter } from '../../runtime/dead-letter.ts'
import { encodeRedriveFrame } from '../../runtime/frames/frame-format.ts'
import { ownPosition } from '../../runtime/frames/position.ts'
import type { Announcers } from './announcers.ts'
import type { Faults } from './faults.ts'
import type { Random } from './random.ts'
import type { Scheduler } from './scheduler.ts'
import type { Delivery } from './sinks.ts'
import { ttlAfterMs } from './stages.ts'
import type { Streams } from './streams.ts'

/** A dead letter is sent again no later than so long after the first time: a few minutes before TTL could forget it. */
const redriveForMs = 4 * 60_000

/** A stream that has more is not resharded any more. */
const mostShards = 12

/** What is disturbed. */
export interface DisturbedRun {
  readonly deliveries: readonly Delivery[]
  readonly streams: Streams
  readonly scheduler: Scheduler
  /** What feeds a keyed stage: those of which the announcer names the partitions. */
  readonly feeding: readonly string[]
  count(name: string): void
}

export class TimeFaults {
  readonly #run: DisturbedRun
  readonly #random: Random
  readonly #announcers: Announcers
  /** The partitions that nobody was to hear of, with the names of their stages. */
  readonly unheardOf = new Set<string>()
  /** When each dead letter was first sent again. */
  readonly #redrivenMs = new Map<string, number>()

  constructor(run: DisturbedRun, random: Random, announcers: Announcers) {
    this.#run = run
    this.#random = random
    this.#announcers = announcers
  }

  disturb({ round, roundTwice, roundOff, block, unheardOf, redrive, silence }: Faults): void {
    const random = this.#random
    if (random.chance(round)) {
      for (let rounds = random.chance(roundTwice) ? 2 : 1; rounds > 0; rounds--) {
        this.#announcers.begin(random.chance(roundOff) ? random.integer(-120_000, 120_000) : 0)
      }
    }
    if (random.chance(block)) this.#block()
    if (random.chance(unheardOf)) this.#beginUnheardOf()
    if (random.chance(redrive)) this.#redrive()
    if (random.chance(silence)) {
      this.#run.count('silence')
      this.#run.scheduler.jump(ttlAfterMs + random.integer(0, 30 * 60_000))
      this.#run.scheduler.note('world', () => 'a long silence')
    }
  }

  #block(): void {
    const { streams, scheduler } = this.#run
    const stream = this.#random.pick(streams.all)
    const shard = this.#random.pick([...stream.shards.values()])
    shard.blockedUntilMs = scheduler.nowMs() + this.#random.integer(1_000, 30_000)
    this.#run.count('block')
    scheduler.note('world', () => `nobody reads ${stream.name}/${shard.id} for a while`)
  }

  /**
   * Partitions begin while ticks are missing: their records come to the stage below before anybody has named them there. It is counted
   * where they do, once the run is over.
   */
  #beginUnheardOf(): void {
    const { streams, scheduler, feeding } = this.#run
    const stream = streams.stream(this.#random.pick(feeding))
    if (stream.shards.size > mostShards) return
    const before = new Set(stream.shards.keys())
    const change = streams.reshard(stream)
    if (change === undefined) return
    this.#run.count(change.kind)
    for (const id of stream.shards.keys()) if (!before.has(id)) this.unheardOf.add(`${stream.name}/${id}`)
    this.#announcers.fallSilent(this.#random.integer(10_000, 300_000))
    scheduler.note('world', () => `${change.what}, and the announcer has no round for a while`)
  }

  /** Its key remembers what it took for a time: as long as nobody sends it again after that, it is taken once. */
  #mayBeRedriven(id: string): boolean {
    const nowMs = this.#run.scheduler.nowMs()
    return nowMs - (this.#redrivenMs.get(id) ?? nowMs) < redriveForMs
  }

  /** A record that failed in a keyed stage is mended and sent again, now and then twice. */
  #redrive(): void {
    const { deliveries, streams, scheduler } = this.#run
    const letters = deliveries
      .filter(({ sink }) => sink === 'dead-letters')
      .map(({ content }) => JSON.parse(content) as DeadLetter)
      .filter(({ keyed, reason, id }) => keyed !== undefined && reason.phase === 'step' && this.#mayBeRedriven(id))
    if (letters.length === 0) return
    const letter = this.#random.pick(letters)
    const { id, stage } = letter
    const stream = streams.stream(stage)
    const frame = redriveFrameOf(letter, stream.slots)
    if (frame === undefined) return
    if (!this.#redrivenMs.has(id)) this.#redrivenMs.set(id, scheduler.nowMs())
    this.#run.count('redrive')
    scheduler.note('world', () => `redrives ${id}`)
    for (let times = this.#random.chance(0.3) ? 2 : 1; times > 0; times--) streams.putFrame(stream, frame)
  }
}

/** The frame of a dead letter whose value was mended. */
function redriveFrameOf({ id, source, partition, position, subPosition, ...letter }: DeadLetter, slots: number) {
  const { keyed, arrivalTimeMs, payload, key } = letter
  if (keyed === undefined) return undefined
  const value = JSON.parse(Buffer.from(payload ?? '', 'base64').toString())
  const text = Buffer.from(key ?? '', 'base64').toString()
  const slot = slotOf(text, slots)
  const record = {
    position: ownPosition(0, 0),
    side: keyed.side,
    key: text,
    ownMarkMs: keyed.ownMarkMs ?? Number.NEGATIVE_INFINITY,
    eventTimeMs: keyed.eventTimeMs,
    value: Buffer.from(JSON.stringify({ ...value, fails: 'never' })),
    origin: { source, partition, position, subPosition, arrivalTimeMs },
    redrive: id,
  }
  return encodeRedriveFrame({ kind: 'redrive', slot, schemaVersion: 1, records: [record] })
}
