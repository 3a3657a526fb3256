/**
 * The one scheduler of a run: it decides, from a seed, which port call goes on next, and it owns the virtual time.
 *
 * 1. Every port call has two points at which it waits here: before its effect and after it. Nothing else makes code run.
 * 2. One step lets one point of one owner go, or rings one timer; then everything settles before the next step.
 * 3. What a dead owner waits for never comes: its promises are never resolved and its timers never ring.
 * 4. Time moves a little with each step, and to the next timer where nothing else can happen. Nobody sleeps.
 */
import { invariant } from '../../core/errors.ts'
import type { RunnerClock } from '../../runtime/ports.ts'
import { sleepBy } from '../../runtime/sleep.ts'
import type { Random } from './random.ts'
import type { Trace } from './trace.ts'

/** Whoever calls ports: an execution environment, a mapping, the world outside. */
export interface Owner {
  readonly name: string
  isDead: boolean
  /** Until then it does not go on, as an environment that is frozen. */
  frozenUntilMs: number
  /** How far its clock is off. */
  clockOffsetMs: number
  /** By its clock, when the invocation at hand must be over. */
  deadlineMs: number
}

export function newOwner(name: string): Owner {
  return { name, isDead: false, frozenUntilMs: 0, clockOffsetMs: 0, deadlineMs: Number.POSITIVE_INFINITY }
}

export type Phase = 'before' | 'after'

interface Point {
  readonly owner: Owner
  readonly label: string
  readonly phase: Phase
  go(): void
}

interface Timer {
  dueMs: number
  readonly order: number
  readonly owner: Owner
  readonly ring: () => void
  isCancelled: boolean
}

export interface SchedulerOptions {
  readonly random: Random
  readonly trace: Trace
  readonly startMs: number
  /** Resolves when all that can go on without the scheduler has done so. */
  readonly settle: () => Promise<void>
}

export class Scheduler {
  /** Asked before a point is let go; where it kills the owner the point is gone with it. */
  interfere: (owner: Owner, phase: Phase, label: string) => void = () => undefined
  /** How many steps were taken. */
  steps = 0
  /** Whose code runs now. */
  current: Owner | undefined
  readonly #options: SchedulerOptions
  readonly #points: Point[] = []
  readonly #timers: Timer[] = []
  #timersMade = 0
  #nowMs: number

  constructor(options: SchedulerOptions) {
    this.#options = options
    this.#nowMs = options.startMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  /** Time since the run began. */
  get elapsedMs(): number {
    return this.#nowMs - this.#options.startMs
  }

  /** A jump of the clock; what falls due meanwhile rings afterwards. */
  jump(ms: number): void {
    this.#nowMs += ms
  }

  /** Makes a port call wait for its turn, then for its answer's turn. */
  call<T>(owner: Owner, label: string, effect: () => T | Promise<T>, detail?: () => string): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const after = (go: () => void) => this.#wait({ owner, label, phase: 'after', go })
      const go = () => {
        this.note(owner.name, () => (detail ? `${label} ${detail()}` : label))
        try {
          const outcome = effect()
          if (outcome instanceof Promise) {
            outcome.then(
              (value) => after(() => resolve(value)),
              (error) => after(() => this.#reject(owner, label, error, reject)),
            )
          } else after(() => resolve(outcome))
        } catch (error) {
          after(() => this.#reject(owner, label, error, reject))
        }
      }
      this.#wait({ owner, label, phase: 'before', go })
    })
  }

  #reject(owner: Owner, label: string, error: unknown, reject: (error: unknown) => void): void {
    this.note(owner.name, () => `${label} fails: ${(error as Error).message}`)
    reject(error)
  }

  #wait(point: Point): void {
    if (!point.owner.isDead) this.#points.push(point)
  }

  /** A clock as one owner sees it. */
  clockOf(owner: Owner): RunnerClock {
    const timer = (ms: number, ring: () => void) => this.timer(owner, ms, ring)
    return {
      nowMs: () => this.#nowMs + owner.clockOffsetMs,
      timer,
      sleep: (ms, signal) => sleepBy(timer, ms, signal),
    }
  }

  timer(owner: Owner, ms: number, ring: () => void): () => void {
    const timer: Timer = {
      dueMs: this.#nowMs + Math.max(0, ms),
      order: this.#timersMade++,
      owner,
      ring,
      isCancelled: false,
    }
    pushTimer(this.#timers, timer)
    return () => {
      timer.isCancelled = true
    }
  }

  /** The owner stands still, its timers with it; its clock shows afterwards how late it has become. */
  freeze(owner: Owner, ms: number): void {
    owner.frozenUntilMs = Math.max(owner.frozenUntilMs, this.#nowMs) + ms
    const timers = this.#timers.splice(0)
    for (const timer of timers) {
      if (timer.owner === owner) timer.dueMs += ms
      pushTimer(this.#timers, timer)
    }
  }

  note(who: string, what: () => string): void {
    const { trace } = this.#options
    if (trace.isOn) trace.add({ step: this.steps, atMs: this.elapsedMs, who, what: what() })
  }

  /** Takes one step. False where nothing waits and no timer runs: nothing will ever happen again. */
  async step(): Promise<boolean> {
    this.steps += 1
    const { random, settle } = this.#options
    this.#nowMs += random.integer(0, 12)
    if (!this.#ring(false) && !this.#letGo() && !this.#ring(true)) return false
    await settle()
    return true
  }

  /** Rings the next timer if it is due, or moves time on to it where `waits`. */
  #ring(waits: boolean): boolean {
    for (;;) {
      const timer = this.#timers[0]
      if (timer === undefined) return false
      if (!timer.isCancelled && !timer.owner.isDead && timer.dueMs > this.#nowMs && !waits) return false
      popTimer(this.#timers)
      if (timer.isCancelled || timer.owner.isDead) continue
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs)
      this.current = timer.owner
      timer.ring()
      return true
    }
  }

  /** Lets one of the waiting points go. */
  #letGo(): boolean {
    const points = this.#points
    for (let tries = 0; points.length > 0; tries++) {
      const at = this.#options.random.integer(0, points.length - 1)
      const point = points[at] as Point
      if (!point.owner.isDead && point.owner.frozenUntilMs > this.#nowMs) {
        if (tries < 8) continue
        const awake = points.findIndex(({ owner }) => owner.isDead || owner.frozenUntilMs <= this.#nowMs)
        if (awake === -1) return this.#thaw()
        tries = 0
        continue
      }
      points[at] = points.at(-1) as Point
      points.pop()
      if (point.owner.isDead) continue
      this.interfere(point.owner, point.phase, point.label)
      if (point.owner.isDead) return true
      this.current = point.owner
      point.go()
      return true
    }
    return false
  }

  /** Everybody who could go on is frozen: time moves to the first timer or to whoever wakes first. */
  #thaw(): boolean {
    const wakesMs = Math.min(...this.#points.map(({ owner }) => owner.frozenUntilMs))
    invariant(Number.isFinite(wakesMs), 'nobody waits')
    const next = this.#timers[0]
    if (next !== undefined && next.dueMs < wakesMs) return this.#ring(true)
    this.#nowMs = Math.max(this.#nowMs, wakesMs)
    return true
  }
}

const isBefore = (a: Timer, b: Timer): boolean => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order)

/** A heap: the timer that is due first comes first. */
function pushTimer(timers: Timer[], timer: Timer): void {
  let at = timers.length
  timers.push(timer)
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (!isBefore(timer, timers[parent] as Timer)) break
    timers[at] = timers[parent] as Timer
    at = parent
  }
  timers[at] = timer
}

function popTimer(timers: Timer[]): void {
  const last = timers.pop()
  if (last === undefined || timers.length === 0) return
  let at = 0
  for (;;) {
    let child = at * 2 + 1
    if (child >= timers.length) break
    if (child + 1 < timers.length && isBefore(timers[child + 1] as Timer, timers[child] as Timer)) child += 1
    if (!isBefore(timers[child] as Timer, last)) break
    timers[at] = timers[child] as Timer
    at = child
  }
  timers[at] = last
}
