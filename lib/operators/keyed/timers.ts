/** Timers of a `process` operator: named, one of each name per key. */
import { TerminalError } from '../../core/errors.ts'
import type { KeyDraft, TimerDomain } from '../../state/key-draft.ts'

/** What a timer goes by. */
export interface TimerDeclaration {
  readonly kind: 'timer'
  readonly domain: TimerDomain
}

export type TimerDeclarations = { readonly [name: string]: TimerDeclaration }

/** One timer of the key at hand. */
export interface Timer {
  /**
   * Sets when it fires, whatever it was set to before. Where that time has come already, it fires in the same step, behind the
   * record. Throws a {@link TerminalError} for what is no time.
   */
  set(timeMs: number): void
  /** It fires no more, unless it is set again. */
  clear(): void
  /** When it fires; undefined where it is not set. While it fires it is not set. */
  get(): number | undefined
}

/** Name to {@link Timer}. */
export type TimersOf<M> = { readonly [N in keyof M]: Timer }

/**
 * Declares a timer that fires when the stage's watermark reaches its time, in ms since 1970 UTC: at the same record on every attempt. What it
 * puts out has that time, and comes in time for the windows behind it.
 *
 * One exception: a record may set it to a time that is not after the record's own mark, or an idle mark. Where the watermark has come that far, it fires in the
 * same step, and windows that have closed meanwhile take what it puts out as late. Where other partitions hold the watermark back, it waits, and is
 * in time. So how fast those were read decides, as with timers of Flink; `record.eventTimeMs` plus more than the disorder of the source is never so early.
 *
 * @example
 * const idle = carts.keyBy('by-cart', (c) => c.cartId).process('abandoned', {
 *   state: { last: valueState<Cart>() },
 *   timers: { idle: eventTimer() },
 *   step: (cart, { state, timers, record }) => {
 *     state.last.set(cart)
 *     timers.idle.set(record.eventTimeMs + minutes(30).ms)
 *   },
 *   onTimer: { idle: (_timeMs, { state }) => [{ abandoned: state.last.get() }] },
 * })
 */
export function eventTimer(): TimerDeclaration {
  return { kind: 'timer', domain: 'event-time' }
}

/**
 * Declares a timer that fires when the clock on the wall has reached its time, in ms since 1970 UTC: at the next batch of its
 * partition, or the next round of the announcer, each minute. What it does may differ between attempts as far as it depends on
 * what was read by then.
 *
 * @example
 * timers: { poll: processingTimer() }
 */
export function processingTimer(): TimerDeclaration {
  return { kind: 'timer', domain: 'processing-time' }
}

/**
 * The timers of the key at hand, by name. A release before may have declared a timer of that name in the other domain: what it set
 * fires by the time that it was set to, unless it is set or cleared before.
 */
export function linkTimers(
  operator: string,
  declared: TimerDeclarations,
  storedNameOf: (name: string) => string,
  draft: () => KeyDraft,
): TimersOf<TimerDeclarations> {
  const timers = Object.entries(declared).map(([name, { domain }]) => {
    const storedName = storedNameOf(name)
    const former: TimerDomain = domain === 'event-time' ? 'processing-time' : 'event-time'
    const timer: Timer = {
      set(timeMs) {
        const atMs = checkedTime(operator, name, timeMs)
        draft().clearTimer(former, storedName)
        draft().setTimer(domain, storedName, atMs)
      },
      clear() {
        draft().clearTimer(former, storedName)
        draft().clearTimer(domain, storedName)
      },
      get: () => draft().timer(domain, storedName) ?? draft().timer(former, storedName),
    }
    return [name, timer] as const
  })
  return Object.fromEntries(timers)
}

function checkedTime(operator: string, name: string, timeMs: unknown): number {
  // Up to the next whole ms: no timer fires before its time.
  if (typeof timeMs === 'number' && Number.isFinite(timeMs)) return Math.ceil(timeMs) + 0
  throw new TerminalError(
    `${operator} sets its timer "${name}" to ${typeof timeMs === 'number' ? timeMs : `a ${typeof timeMs}`}: give a time in ms since 1970 UTC`,
    { code: 'timer-refused' },
  )
}
