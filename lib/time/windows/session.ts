/** Windows of activity: they last as long as no gap between two records is as long as the gap. */
import type { Duration } from '../../core/duration.ts'
import { ConfigurationError } from '../../core/errors.ts'
import { floorTo, type GraceOptions, graceOf, lengthOf } from './window.ts'

/** What `session` may say. */
export interface SessionOptions extends GraceOptions {
  /**
   * The longest that a session may get, at least the gap: sessions are cut at multiples of it since 1970 UTC, so that no order
   * of arrival makes a difference to where. @default as long as records come
   */
  readonly longest?: Duration
}

export interface SessionWindows {
  readonly kind: 'session'
  readonly graceMs: number
  readonly gapMs: number
  readonly label: string
  /** The end of a session whose last record has that time. */
  endOf(lastMs: number): number
  /**
   * From which watermark on no record can come that is in time and belongs to the session of that end. A record is in time
   * by a window of its own, which ends the gap after it: so one that is within the session may still come a gap after its end.
   */
  settledAt(lastMs: number): number
}

/**
 * Sessions of a key: records belong together while each follows within less than the gap. A session with records from
 * `first` to `last` is the window
 *
 *     [first, last + gap)
 *
 *     gap 10        0         10        20        30
 *     records       a  b   c             d
 *                   |----------------)               [0, 17)   a@0 b@3 c@7
 *                                        |---------) [21, 31)  d@21
 *
 * A record exactly the gap behind the last one begins a session of its own. A record that lies between two sessions makes
 * them one. The sessions depend on the records that were in time alone, in whatever order they came.
 *
 * A record `t` is late where `t + gap + grace` is at most the larger of its own mark and the watermark. A session is final once
 * no record can come that is not late and belongs to it: at `end + gap + grace - 1 ms`.
 *
 * Throws a {@link ConfigurationError} where a length is not above 0, the longest session is shorter than the gap, or the grace
 * is left out.
 *
 * @example
 * keyed.window(session(minutes(30), { grace: minutes(5), longest: hours(24) }))
 */
export function session(gap: Duration, options: SessionOptions): SessionWindows {
  const gapMs = lengthOf('session', 'gap', gap)
  const graceMs = graceOf('session', options)
  const longestMs = options.longest === undefined ? undefined : lengthOf('session', 'longest', options.longest)
  if (longestMs !== undefined && longestMs < gapMs) {
    throw new ConfigurationError(
      `session: the longest session is ${longestMs} ms and its gap ${gapMs} ms: let it be at least the gap.`,
    )
  }
  const cutAfter = (timeMs: number): number =>
    longestMs === undefined ? Number.POSITIVE_INFINITY : floorTo(timeMs, longestMs) + longestMs
  const endOf = (lastMs: number): number => Math.min(lastMs + gapMs, cutAfter(lastMs))
  return {
    kind: 'session',
    graceMs,
    gapMs,
    label: `session(gap ${gapMs} ms${longestMs === undefined ? '' : `, at most ${longestMs} ms`})`,
    endOf,
    settledAt: (lastMs) => Math.min(endOf(lastMs) - 1 + gapMs, cutAfter(lastMs)) + graceMs,
  }
}
