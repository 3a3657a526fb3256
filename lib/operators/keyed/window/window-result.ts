import type { Key } from '../../../state/key-encoding.ts'
import type { WindowBounds } from '../../../time/windows/window.ts'

/**
 * When the results of windows come. It has no default, as readers see different things:
 *
 *     window [0, 60), grace 15     watermark  0 ... 60 ....... 75
 *     on-close                                      |  a result at the end, then one for each late record of the grace
 *     final                                                    |  the only one
 *     on-update                               | | |   | |         one for each record
 */
export type WindowEmission = 'on-close' | 'final' | 'on-update'

/** What a window of a key amounts to. A later revision of a window replaces the ones before. */
export interface WindowResult<K extends Key, V> {
  readonly key: K
  /** Half-open: `[startMs, endMs)`. Together with the key it tells windows apart. */
  readonly window: WindowBounds
  /** From 0, one more for each result of the window. */
  readonly revision: number
  /**
   * True where no other revision of the window follows: with 'final' always; with 'on-close' where there is no grace in which it
   * could; and where it is retracted.
   */
  readonly isFinal: boolean
  /**
   * True where the window is none any more, so that its results are to be removed: the session it was has merged into
   * another, or has got other bounds. The other one has results of its own.
   */
  readonly isRetracted: boolean
  readonly value: V
}
