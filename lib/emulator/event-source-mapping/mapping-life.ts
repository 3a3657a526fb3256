/**
 * The life of an event source mapping, whatever it reads from: it starts, looks at its source again and again, is paused, and stops.
 *
 * Invariants:
 * 1. `stop` resolves after all that was run has ended.
 * 2. A look that fails blocks the mapping and comes again; anything else that fails is a bug in Millrace, and ends everything.
 */
import type { Clock } from '../../core/clock.ts'
import { describeError } from '../../core/errors.ts'
import { Doorbell } from './doorbell.ts'
import { backoffMs } from './retry.ts'
import type { ResolvedSettings } from './settings.ts'

/** A mapping's life as a display shows it. */
export interface LifeStatus {
  readonly state: 'stopped' | 'starting' | 'running' | 'paused' | 'stopping' | 'blocked'
  /** Why the source cannot be looked at, while `blocked`. */
  readonly reason: string | undefined
}

/** What the life of a mapping is filled with. */
export interface MappingWork {
  /** Comes before the first look. What it throws `start` throws, and nothing has begun. @default nothing */
  prepare?(): Promise<void>
  /** Looks at the source, and runs what is to be read of it. */
  look(): Promise<void>
  /** Whether something came up that the look may not have seen. */
  isLookDue(): boolean
  /** What it means that a look fails: the reason begins with it. */
  readonly problem: string
  /** Lets every loop that is run look again at what the life has come to. */
  ring(): void
}

export class MappingLife {
  /** Rung for the next look to come at once. */
  readonly bell = new Doorbell()
  readonly #clock: Clock
  readonly #settings: ResolvedSettings
  readonly #work: MappingWork
  #loops: Promise<void>[] = []
  #state: 'stopped' | 'starting' | 'running' | 'stopping' = 'stopped'
  #isPaused = false
  #problem: string | undefined
  #bug: { readonly thrown: unknown } | undefined

  constructor(clock: Clock, settings: ResolvedSettings, work: MappingWork) {
    this.#clock = clock
    this.#settings = settings
    this.#work = work
  }

  /** No look has succeeded since the start. */
  get isStarting(): boolean {
    return this.#state === 'starting'
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Nothing new may begin. */
  get isStopping(): boolean {
    return this.#state === 'stopping' || this.#state === 'stopped' || this.#bug !== undefined
  }

  async start(): Promise<void> {
    if (this.#state !== 'stopped') return
    this.#state = 'starting'
    try {
      // Where there is nothing to await nothing is awaited: a turn more would have every kept seed of the simulator play another run.
      if (this.#work.prepare !== undefined) await this.#work.prepare()
    } catch (thrown) {
      this.#state = 'stopped'
      throw thrown
    }
    this.#loops = [this.#guard(this.#watch())]
  }

  /** Throws only for a bug in Millrace. */
  async stop(): Promise<void> {
    if (this.#state === 'stopped') return
    this.#state = 'stopping'
    this.#ringAll()
    // Loops are only ever added by the first of them, so one look at the list after it has ended sees all.
    await this.#loops[0]
    await Promise.all(this.#loops)
    this.#state = 'stopped'
    if (this.#bug !== undefined) throw this.#bug.thrown
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#ringAll()
  }

  /** Makes a loop part of the life. */
  run(loop: Promise<void>): void {
    this.#loops.push(this.#guard(loop))
  }

  status(): LifeStatus {
    const reason = this.#bug === undefined ? this.#problem : describeError(this.#bug.thrown).message
    return { state: this.#shownState(), reason }
  }

  #shownState(): LifeStatus['state'] {
    if (this.#bug !== undefined) return 'blocked'
    if (this.#state === 'stopped' || this.#state === 'stopping') return this.#state
    if (this.#problem !== undefined) return 'blocked'
    return this.#isPaused ? 'paused' : this.#state
  }

  /** Looks again and again: after a while, or at once when the bell rings or a look is due. */
  async #watch(): Promise<void> {
    await this.#sleep(this.#settings.startDelayMs)
    let failures = 0
    while (!this.isStopping) {
      try {
        await this.#work.look()
        failures = 0
        this.#problem = undefined
        if (this.#state === 'starting') this.#state = 'running'
        // What came up during the look rang before anybody waited.
        if (this.isStopping || this.#work.isLookDue()) continue
        await this.bell.wait(this.#clock, this.#settings.shardSyncIntervalMs)
      } catch (thrown) {
        failures += 1
        this.#problem = `${this.#work.problem}: ${describeError(thrown).message}`
        await this.#sleep(backoffMs(failures, this.#settings))
      }
    }
  }

  /** A loop only ends with an error when Millrace itself is wrong: everything stops, and the status and `stop` say it. */
  async #guard(loop: Promise<void>): Promise<void> {
    try {
      await loop
    } catch (thrown) {
      this.#bug ??= { thrown }
      this.#ringAll()
    }
  }

  #ringAll(): void {
    this.bell.ring()
    this.#work.ring()
  }

  #sleep(ms: number): Promise<void> {
    return this.bell.waitOut(this.#clock, ms, () => this.isStopping)
  }
}
