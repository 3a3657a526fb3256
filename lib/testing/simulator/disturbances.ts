/** What may happen to a run at any step: each kind is drawn by itself, and counted where it meets something. */
import type { Environments } from './environments.ts'
import type { Faults } from './faults.ts'
import type { Mapped } from './mapped.ts'
import { isBehind } from './mapped.ts'
import type { Random } from './random.ts'
import type { Scheduler } from './scheduler.ts'
import { type Stages, ttlAfterMs } from './stages.ts'
import type { Streams } from './streams.ts'

export interface DisturbancesOptions {
  readonly random: Random
  readonly scheduler: Scheduler
  readonly streams: Streams
  readonly stages: Stages
  readonly environments: Environments
  readonly mapped: readonly Mapped[]
  readonly count: (name: string) => void
}

export class Disturbances {
  readonly #options: DisturbancesOptions

  constructor(options: DisturbancesOptions) {
    this.#options = options
  }

  /** One step of a run with these faults. */
  disturb(faults: Faults): void {
    const { random } = this.#options
    if (random.chance(faults.zombie)) this.#makeZombie(faults)
    if (random.chance(faults.failOver)) this.#failOver()
    if (random.chance(faults.redelivery)) this.#redeliver()
    if (random.chance(faults.throttle)) this.#throttle()
    if (random.chance(faults.reshard)) this.#reshard()
    if (random.chance(faults.clockJump)) this.#jump()
    if (random.chance(faults.clockSkew)) this.#skew()
    if (random.chance(faults.redeploy)) this.#redeploy()
    if (random.chance(faults.brokenFrame)) this.#breakFrame()
  }

  #note(what: () => string): void {
    this.#options.scheduler.note('world', what)
  }

  #jump(): void {
    const { random, scheduler, count } = this.#options
    count('clock jump')
    const ms = random.integer(1_000, 600_000)
    scheduler.jump(ms)
    this.#note(() => `the clock jumps ${ms} ms`)
  }

  /** So long that TTL may take what is empty. */
  silence(): void {
    const { random, scheduler, count } = this.#options
    count('silence')
    scheduler.jump(ttlAfterMs + random.integer(0, 30 * 60_000))
    this.#note(() => 'a long silence')
  }

  #redeploy(): void {
    const { environments, count } = this.#options
    count('redeploy')
    environments.version += 1
    this.#note(() => 'another version is deployed')
  }

  #makeZombie(faults: Faults): void {
    const { random, environments, count } = this.#options
    const { busy } = environments
    if (busy.length === 0) return
    const sleeps = random.chance(faults.sleeps)
    count(sleeps ? 'zombie that sleeps' : 'zombie')
    environments.makeZombie(random.pick(busy), sleeps ? random.integer(100, 300_000) : 0)
  }

  /** Another poller for a shard: two invocations of one batch, or an older checkpoint once more. */
  #failOver(): void {
    const { random, mapped, count } = this.#options
    const { failOver, stream, stage, checkpoints } = random.pick(mapped)
    const shard = random.pick([...stream.shards.values()])
    const drawn = random.chance(0.5) ? random.pick([undefined, ...shard.records]) : undefined
    const from = drawn && isBehind(checkpoints.get(shard.id), drawn.sequenceNumber) ? drawn : undefined
    count(from ? 'older checkpoint' : 'fail-over')
    this.#note(() => `${stage}/${shard.id} gets another poller${from ? ', at an older checkpoint' : ''}`)
    failOver(shard.id, from?.sequenceNumber)
  }

  /** A batch from before the checkpoint, of any shard, even one whose parents are not drained: nobody hears the answer. */
  #redeliver(): void {
    const { random, mapped, environments, count } = this.#options
    const { stream, stage, checkpoints } = random.pick(mapped)
    const shard = random.pick([...stream.shards.values()])
    const checkpoint = checkpoints.get(shard.id)
    const done = shard.records.findIndex(({ sequenceNumber }) => !isBehind(checkpoint, sequenceNumber))
    const limit = done === -1 ? shard.records.length : done
    const from = random.integer(Math.max(0, limit - 12), limit)
    const records = shard.records.slice(from, from + random.integer(1, 12))
    if (records.length === 0) return
    count('redelivery')
    this.#note(() => `redelivers ${records.length} records of ${stage}/${shard.id} from ${from} on`)
    void environments.invoke(stage, stage, shard.id, records)
  }

  #throttle(): void {
    const { random, scheduler, streams, stages, count } = this.#options
    const untilMs = scheduler.nowMs() + random.integer(500, 120_000)
    const stream = random.pick([undefined, ...streams.all])
    count('throttle')
    this.#note(() => `${stream ? stream.name : 'the tables'} refuse everything for a while`)
    if (stream) stream.refusesUntilMs = untilMs
    else stages.refusesUntilMs = untilMs
  }

  #reshard(): void {
    const { random, streams, count } = this.#options
    const stream = random.pick(streams.all)
    if (stream.shards.size > 12) return
    const change = streams.reshard(stream)
    if (change === undefined) return
    count(change.kind)
    this.#note(() => change.what)
  }

  #skew(): void {
    const { random, environments, count } = this.#options
    const { busy } = environments
    if (busy.length === 0) return
    const { owner } = random.pick(busy)
    owner.clockOffsetMs = random.integer(-5_000, 5_000)
    count('clock skew')
  }

  /** Bytes that are no frame come into an internal stream. */
  #breakFrame(): void {
    const { random, streams, count } = this.#options
    const stream = random.pick(streams.all.filter(({ slots }) => slots > 0))
    count('broken frame')
    streams.putBroken(stream)
    this.#note(() => `bytes that are no frame come into ${stream.name}`)
  }
}
