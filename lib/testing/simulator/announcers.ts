/**
 * The announcer in a run: rounds that the scheduler begins at drawn moments, several at a time, and that crash like
 * anything else. While there are faults a round may be begun late, twice, not at all, and by a clock that is wrong;
 * afterwards one begins each minute, as the rule on AWS has it.
 *
 * In about half of the runs rounds say nothing of silence before all input was sent, as where input is bounded: there the late
 * set must be what the source says. In the others an idle clock may be wrong, and it is noted where it was.
 */
import { describeError, isRetryable } from '../../core/errors.ts'
import type { AnnouncerPorts } from '../../runtime/announcer/knowledge.ts'
import type { PartitionLineage } from '../../runtime/progress/lineage.ts'
import type { Opened } from './release.ts'
import { newOwner, type Owner, type Scheduler } from './scheduler.ts'
import type { StreamState } from './streams.ts'

const everyMs = 60_000
const timeLimitMs = 60_000
const mostRounds = 3

export interface AnnouncersOptions {
  readonly scheduler: Scheduler
  /** The announcer of the version that is deployed. */
  readonly announce: () => Opened['announce']
  /** The stream of the source: its silence is what idle clocks go by. */
  readonly source: StreamState
  readonly portsOf: (owner: Owner, heedSilence: (lineage: PartitionLineage) => PartitionLineage) => AnnouncerPorts
  /** Whether silence counts before all input was sent. */
  readonly hasEarlyIdle: boolean
  readonly isAllSent: () => boolean
  readonly onSurprise: (message: string) => void
  readonly onCount: (name: string) => void
}

export class Announcers {
  readonly #options: AnnouncersOptions
  readonly #rounds = new Map<Owner, AbortController>()
  /** Of shards that were taken for silent, how many records they had then. */
  readonly #silent: { readonly shard: string; readonly records: number }[] = []
  #made = 0
  /** When the last round began. */
  #begunMs = Number.POSITIVE_INFINITY
  /** Until then no round begins. */
  #silentUntilMs = 0

  constructor(options: AnnouncersOptions) {
    this.#options = options
  }

  get isBusy(): boolean {
    return this.#rounds.size > 0
  }

  /** Begins a round whose clock is so far off. */
  begin(clockOffsetMs = 0): void {
    if (this.#isSilent) this.#options.onCount('missing tick')
    if (this.#rounds.size >= mostRounds || this.#isSilent) return
    this.#countTick()
    const { scheduler, announce, portsOf, hasEarlyIdle, isAllSent, onSurprise, onCount } = this.#options
    const owner = newOwner(`announcer#${this.#made++}`)
    owner.clockOffsetMs = clockOffsetMs
    const abort = new AbortController()
    this.#rounds.set(owner, abort)
    scheduler.timer(owner, timeLimitMs, () => this.kill(owner, 'timed out'))
    onCount('round')
    const silence = hasEarlyIdle || isAllSent() ? {} : { idleMs: undefined }
    const ports = portsOf(owner, (lineage) => this.#heeding(lineage))
    scheduler
      .call(owner, 'announce', () => undefined)
      .then(() => announce()({ ports, signal: abort.signal, ...silence }))
      .then(
        (said) => {
          for (const { stage, partition, news } of said) {
            scheduler.note(owner.name, () => `told ${stage}/${partition} ${newsText(news)}`)
          }
        },
        (error) => {
          scheduler.note(owner.name, () => `fails: ${describeError(error).message}`)
          if (!isRetryable(error)) onSurprise(`${owner.name}: ${describeError(error).message}`)
        },
      )
      .then(() => this.#rounds.delete(owner))
  }

  /** The rule has one each minute: counted is what comes beside another, and what comes late while there are faults. */
  #countTick(): void {
    const nowMs = this.#options.scheduler.nowMs()
    if (this.#rounds.size > 0) this.#options.onCount('doubled tick')
    if (nowMs - this.#begunMs > everyMs && !this.#options.isAllSent()) this.#options.onCount('late tick')
    this.#begunMs = nowMs
  }

  get #isSilent(): boolean {
    return this.#silentUntilMs > this.#options.scheduler.nowMs()
  }

  /** For so long the rule begins no round. */
  fallSilent(ms: number): void {
    this.#silentUntilMs = this.#options.scheduler.nowMs() + ms
  }

  /** From now on one round each minute. */
  beginEachMinute(owner: Owner): void {
    this.#silentUntilMs = 0
    this.begin()
    this.#options.scheduler.timer(owner, everyMs, () => this.beginEachMinute(owner))
  }

  has(owner: Owner): boolean {
    return this.#rounds.has(owner)
  }

  kill(owner: Owner, reason: string): void {
    if (!this.#rounds.delete(owner)) return
    this.#options.scheduler.note(owner.name, () => `dies: ${reason}`)
    owner.isDead = true
  }

  /** Whether a partition that was taken for silent, or one that came of it, had records afterwards. */
  wasIdleClockWrong(): boolean {
    const { shards } = this.#options.source
    const descends = (shard: string, from: string): boolean =>
      shard === from || (shards.get(shard)?.parents ?? []).some((parent) => descends(parent, from))
    return this.#silent.some(({ shard, records }) =>
      [...shards.values()].some(
        (other) => descends(other.id, shard) && other.records.length > (other.id === shard ? records : 0),
      ),
    )
  }

  #heeding(lineage: PartitionLineage): PartitionLineage {
    return {
      list: (signal) => lineage.list(signal),
      describe: (partition, signal) => lineage.describe(partition, signal),
      isDrained: (partition, after, signal) => lineage.isDrained(partition, after, signal),
      isCaughtUp: async (partition, after, signal) => {
        const isCaughtUp = await lineage.isCaughtUp(partition, after, signal)
        if (isCaughtUp) {
          const { records } = this.#options.source.shards.get(partition) as {
            records: readonly { sequenceNumber: string }[]
          }
          // What it was taken for was true at the moment of the answer: nothing behind what is done.
          const done = records.findLastIndex(({ sequenceNumber }) => sequenceNumber === after) + 1
          this.#silent.push({ shard: partition, records: done })
        }
        return isCaughtUp
      },
    }
  }
}

const newsText = (news: readonly { upstream: { partition: string }; state: string; markMs: number }[]): string =>
  news.length === 0
    ? 'a tick'
    : news.map(({ upstream, state, markMs }) => `${upstream.partition} ${state} ${markMs}`).join(', ')
