/**
 * One shard of a mapping: its records spread over the lanes that deliver them.
 *
 * Invariants:
 * 1. What holds of reading and saving is said in log-source.ts.
 * 2. `run` says `drained` only after the checkpoint that says so is saved.
 */
import { Doorbell } from './doorbell.ts'
import { Lane, type LaneContext, type LaneStatus } from './lane.ts'
import { LogSource, type LogSourceOptions } from './log-source.ts'

/** A shard as a display shows it. */
export interface ShardStatus {
  readonly shardId: string
  /**
   * `retrying`: the function fails; `blocked`: the source cannot be read, the checkpoint cannot be saved or the function cannot be
   * run. Both come with a reason and go on trying.
   */
  readonly state: 'waiting-for-parents' | 'running' | 'retrying' | 'blocked' | 'drained' | 'stopped'
  readonly reason: string | undefined
  /** Everything up to this sequence number is done and saved. */
  readonly position: string | undefined
  /** Records read and not yet done. */
  readonly unfinished: number
  /** How far the last read was behind the tip; `undefined` before the first. */
  readonly millisBehindLatest: number | undefined
  /** Age of the oldest record that was read and is not done; 0 when there is none. */
  readonly oldestUnfinishedAgeMs: number
  readonly lanes: readonly LaneStatus[]
}

export type ShardRunnerOptions = LogSourceOptions & Omit<LaneContext, 'bell' | 'hasEnded' | 'isHeldUp' | 'commit'>

export class ShardRunner {
  readonly #options: ShardRunnerOptions
  readonly #bell = new Doorbell()
  readonly #source: LogSource
  readonly #lanes: readonly Lane[]
  #isDrained = false

  constructor(options: ShardRunnerOptions) {
    this.#options = options
    this.#source = new LogSource(options, {
      bell: this.#bell,
      offer: (record) => this.#laneFor(record.partitionKey).offer(record),
    })
    const context: LaneContext = {
      ...options,
      bell: this.#bell,
      hasEnded: () => this.#source.hasEnded,
      isHeldUp: (lane) => this.#isHeldUp(lane),
      commit: (records) => this.#source.commit(records),
    }
    const { parallelizationFactor } = options.settings
    this.#lanes = Array.from({ length: parallelizationFactor }, (_, index) => new Lane(index, context))
  }

  /** Lets every waiting loop look again: after a stop, a pause or a resumption. */
  ring(): void {
    this.#bell.ring()
  }

  status(): ShardStatus {
    const lanes = this.#lanes.map((lane) => lane.status())
    const failing = lanes.find((lane) => lane.wasNotRun && lane.failures > 0) ?? lanes.find((lane) => lane.failures > 0)
    const { position, unfinished, millisBehindLatest, oldestUnfinishedAgeMs, problem } = this.#source
    return {
      shardId: this.#options.shardId,
      state: this.#state(failing),
      reason: problem ?? failing?.reason,
      ...{ position, unfinished, millisBehindLatest, oldestUnfinishedAgeMs },
      lanes,
    }
  }

  #state(failing: LaneStatus | undefined): ShardStatus['state'] {
    if (this.#isDrained) return 'drained'
    if (this.#source.problem !== undefined) return 'blocked'
    if (failing !== undefined) return failing.wasNotRun ? 'blocked' : 'retrying'
    return this.#options.isStopping() ? 'stopped' : 'running'
  }

  /** Works until the mapping stops or the shard is drained. */
  async run(): Promise<'drained' | 'stopped'> {
    await Promise.all([this.#source.read(), ...this.#lanes.map((lane) => lane.run())])
    if (!(await this.#source.saveDrained())) return 'stopped'
    this.#isDrained = true
    return 'drained'
  }

  #laneFor(partitionKey: string): Lane {
    const { laneOf, parallelizationFactor } = this.#options.settings
    const index = laneOf(partitionKey, parallelizationFactor)
    const lane = this.#lanes[index]
    if (lane !== undefined) return lane
    throw new RangeError(`emulation.laneOf gave ${index}: give an integer from 0 to ${parallelizationFactor - 1}.`)
  }

  #isHeldUp(lane: Lane): boolean {
    if (this.#options.settings.failingLane === 'blocks-lane') return false
    return this.#lanes.some((other) => other !== lane && other.isRetrying)
  }
}
