/**
 * What windows are made of. Every window is half-open: `[startMs, endMs)`, in ms since 1970 UTC, and may lie before 1970.
 *
 * Windows that share their contents (hopping, sliding) are kept by slices: a value goes into one slice, and a window's result
 * is made of the slices in it. A slice that came when some of its windows were over counts only for those that end at
 * `fromEndMs` or later.
 */
import { type Duration, msOf } from '../../core/duration.ts'

/** The bounds of a window, `[startMs, endMs)`, in ms since 1970 UTC. */
export interface WindowBounds {
  readonly startMs: number
  /** The first ms that is not in the window. */
  readonly endMs: number
}

export interface Slice {
  readonly startMs: number
  /** The least end of a window that the slice counts for. */
  readonly fromEndMs: number
}

/** What every window of event time says. */
export interface GraceOptions {
  /**
   * For how long after its end a window takes records that come late. It has no default: what comes later still goes to the
   * late output, and what is kept until then is state. `milliseconds(0)` is an answer.
   */
  readonly grace: Duration
}

/** Windows whose bounds do not depend on what is in them, or only on its times. */
export interface SlicedWindows {
  readonly kind: 'tumbling' | 'hopping' | 'sliding' | 'calendar-days'
  readonly graceMs: number
  /** Such as `hopping(size 10000 ms, every 2000 ms)`. */
  readonly label: string
  /** Whether a slice may be in several windows. Where it is not, each slice is a window, with the bounds that it began with. */
  readonly sharesSlices: boolean
  /** The start of the slice that holds the time. */
  sliceOf(timeMs: number): number
  /** The ends of the first and the last window that a slice is in. */
  firstEndOf(sliceMs: number): number
  lastEndOf(sliceMs: number): number
  /** The least end, beyond that time, that a window with the slice in it could have. */
  endBeyond(sliceMs: number, timeMs: number): number
  /** The end of the last window that exists because of the slice, be it in it or not. */
  neededUntil(slice: Slice): number
  /** The start of the window of that end, which has something in it of those slices. */
  startOf(endMs: number, slices: readonly Slice[]): number
  /** The ends of the windows with anything in them, from one time through another, ascending. Slices come in their order. */
  endsOf(slices: readonly Slice[], fromMs: number, throughMs: number): readonly number[]
  /** The least end beyond that time of a window with anything in it. */
  nextEnd(slices: readonly Slice[], afterMs: number): number | undefined
}

/** The largest multiple of `unit` that is at most the time. */
export function floorTo(timeMs: number, unit: number): number {
  // Adding 0 makes -0 a 0.
  return Math.floor(timeMs / unit) * unit + 0
}

/** A length in whole ms above 0. Throws a {@link ConfigurationError} otherwise. */
export function lengthOf(window: string, what: string, duration: Duration): number {
  return msOf(`${window}: the ${what} is`, duration, 1, 'give a length of at least one ms, such as minutes(5).')
}

/** The grace in ms. Throws a {@link ConfigurationError} where it is left out or negative. */
export function graceOf(window: string, options: GraceOptions): number {
  const remedy =
    'say for how long after its end a window takes late records, such as { grace: minutes(2) }, or { grace: milliseconds(0) }.'
  return msOf(`${window}: the grace is`, options?.grace, 0, remedy)
}
