/**
 * The timers of one key, in both domains: part of the key's item, and of the step at hand.
 *
 * 1. A name has one timer per domain: to set it again replaces it. To set it to the time that it has changes nothing.
 * 2. A step that throws leaves the timers as they were: what each change replaced is noted until the step ends.
 * 3. The least timer is known without a look at the others, but for the call after it was moved or removed.
 * 4. A key has at most {@link mostTimers}: they are in its item, and each is looked at when the least one goes.
 */
import { TerminalError } from '../core/errors.ts'
import type { StoredTimers } from './key-own.ts'
import type { StateValue, TimerDomain } from './state-store.ts'
import type { StepChange } from './step-changes.ts'

/** A timer that is set. */
export interface KeyTimer {
  /** The stored name: that of the operator, or `<operator>.<timer>`. */
  readonly name: string
  /** In whole ms since 1970 UTC. */
  readonly timeMs: number
}

/** The most timers of a key, both domains together. */
export const mostTimers = 1_000

const domains: readonly TimerDomain[] = ['event-time', 'processing-time']

/** The timers of one domain. */
class DomainTimers {
  readonly domain: TimerDomain
  readonly byName: Map<string, number>
  /** Of the item as it was read or committed last. */
  storedNextMs: number | undefined
  #next: KeyTimer | undefined
  #isNextKnown = false

  constructor(domain: TimerDomain, stored: Readonly<Record<string, number>> | undefined) {
    this.domain = domain
    this.byName = new Map(stored && Object.entries(stored))
    this.storedNextMs = this.next()?.timeMs
  }

  /** Undefined removes it. */
  put(name: string, timeMs: number | undefined): void {
    if (timeMs === undefined) this.byName.delete(name)
    else this.byName.set(name, timeMs)
    if (!this.#isNextKnown) return
    const isNext = this.byName.size === 1 || (timeMs !== undefined && isBefore(name, timeMs, this.#next))
    if (timeMs !== undefined && isNext) this.#next = { name, timeMs }
    else if (name === this.#next?.name) this.#forgetNext()
  }

  /** The least timer is gone: of many, the next call finds the new one. */
  #forgetNext(): void {
    this.#next = undefined
    this.#isNextKnown = this.byName.size === 0
  }

  next(): KeyTimer | undefined {
    if (!this.#isNextKnown) this.#findNext()
    return this.#next
  }

  #findNext(): void {
    let least: string | undefined
    let leastMs = Number.POSITIVE_INFINITY
    for (const [name, timeMs] of this.byName) {
      if (timeMs < leastMs || (timeMs === leastMs && name < (least as string))) [least, leastMs] = [name, timeMs]
    }
    this.#next = least === undefined ? undefined : { name: least, timeMs: leastMs }
    this.#isNextKnown = true
  }
}

/** Of one time, the lesser name is first: any order would do, as long as it is always the same. */
function isBefore(name: string, timeMs: number, next: KeyTimer | undefined): boolean {
  return next === undefined || timeMs < next.timeMs || (timeMs === next.timeMs && name <= next.name)
}

interface Change {
  timers: DomainTimers
  name: string
  beforeMs: number | undefined
}

export class KeyTimers {
  readonly #owner: { readonly path: string }
  readonly #event: DomainTimers
  readonly #processing: DomainTimers
  /** The first `#stepSize` of these are what the step at hand changed; they are used again. */
  readonly #stepChanges: Change[] = []
  #stepSize = 0

  /** `owner` has the path by which errors name the key: it is made only where one is thrown. */
  constructor(owner: { readonly path: string }, stored: StoredTimers | undefined) {
    this.#owner = owner
    this.#event = new DomainTimers('event-time', stored?.['event-time'])
    this.#processing = new DomainTimers('processing-time', stored?.['processing-time'])
  }

  /** How many are set. */
  get size(): number {
    return this.#event.byName.size + this.#processing.byName.size
  }

  /** Whether the step at hand changed any. */
  get isChanged(): boolean {
    return this.#stepSize > 0
  }

  set(domain: TimerDomain, name: string, timeMs: number): void {
    const timers = this.#of(domain)
    const beforeMs = timers.byName.get(name)
    if (beforeMs === timeMs) return
    if (!Number.isSafeInteger(timeMs)) this.#refuse(name, timeMs)
    if (beforeMs === undefined) this.#checkNew(name)
    this.#note(timers, name, beforeMs)
    timers.put(name, timeMs + 0)
  }

  clear(domain: TimerDomain, name: string): void {
    const timers = this.#of(domain)
    const beforeMs = timers.byName.get(name)
    if (beforeMs === undefined) return
    this.#note(timers, name, beforeMs)
    timers.put(name, undefined)
  }

  timeOf(domain: TimerDomain, name: string): number | undefined {
    return this.#of(domain).byName.get(name)
  }

  next(domain: TimerDomain): KeyTimer | undefined {
    return this.#of(domain).next()
  }

  storedNextMs(domain: TimerDomain): number | undefined {
    return this.#of(domain).storedNextMs
  }

  /** The step is done. */
  accept(): void {
    this.#stepSize = 0
  }

  rollback(): void {
    while (this.#stepSize > 0) {
      this.#stepSize -= 1
      const { timers, name, beforeMs } = this.#stepChanges[this.#stepSize] as Change
      timers.put(name, beforeMs)
    }
  }

  /** What the step at hand changed, timer by timer: what it put back is no change. */
  changes(): readonly StepChange[] {
    const before = new Map<string, Change>()
    for (let i = 0; i < this.#stepSize; i += 1) {
      const change = this.#stepChanges[i] as Change
      const place = `${change.timers.domain} ${change.name}`
      if (!before.has(place)) before.set(place, change)
    }
    const changes: StepChange[] = []
    for (const { timers, name, beforeMs } of before.values()) {
      const value = timers.byName.get(name)
      if (value !== beforeMs) changes.push({ place: { domain: timers.domain, timer: name }, value })
    }
    return changes
  }

  /** What the key's item is to hold. */
  toStored(): StateValue | undefined {
    if (this.size === 0) return undefined
    const stored: { [domain: string]: StateValue } = {}
    for (const { domain, byName } of [this.#event, this.#processing]) {
      if (byName.size > 0) stored[domain] = Object.fromEntries(byName)
    }
    return stored
  }

  /** The item holds what `toStored` gave last. */
  committed(): void {
    for (const domain of domains) this.#of(domain).storedNextMs = this.next(domain)?.timeMs
  }

  #of(domain: TimerDomain): DomainTimers {
    return domain === 'event-time' ? this.#event : this.#processing
  }

  #note(timers: DomainTimers, name: string, beforeMs: number | undefined): void {
    const used = this.#stepChanges[this.#stepSize]
    this.#stepSize += 1
    if (used === undefined) this.#stepChanges.push({ timers, name, beforeMs })
    else {
      used.timers = timers
      used.name = name
      used.beforeMs = beforeMs
    }
  }

  #checkNew(name: string): void {
    if (name === '' || name === '__proto__' || !name.isWellFormed()) {
      throw new TerminalError(
        `${this.#owner.path}: ${JSON.stringify(name)} cannot be the name of a timer: give it another`,
        {
          code: 'unsupported-timer',
        },
      )
    }
    if (this.size < mostTimers) return
    const [operator] = name.split('.', 1)
    throw new TerminalError(
      `${this.#owner.path}: the operator ${operator} sets the timer ${JSON.stringify(name)} where the key has ${mostTimers} already: set fewer, and clear those that are not needed any more`,
      { code: 'too-many-timers' },
    )
  }

  #refuse(name: string, timeMs: number): never {
    throw new TerminalError(
      `${this.#owner.path}: the timer ${JSON.stringify(name)} cannot be set to ${timeMs}: give whole milliseconds since 1970 UTC`,
      { code: 'unsupported-timer' },
    )
  }
}
