/** Windows of a number of records. */
import { ConfigurationError } from '../../core/errors.ts'

export interface CountWindows {
  readonly kind: 'count'
  readonly graceMs: 0
  readonly label: string
  readonly count: number
}

/**
 * A window for every `count` records of a key, in the order in which they come: it closes with its last one, for good, and has
 * the bounds `[least event time, largest event time + 1)`. No record is late. A window that is not full waits, however long
 * no record comes. Which records share a window depends on the order of arrival. A record beyond the skew limit of its source
 * counts, but makes no bounds; where all of a window are such, the bounds are those of its last one.
 *
 *     count 3       a b c | d e f | g
 *
 * Throws a {@link ConfigurationError} where the count is no integer above 0.
 *
 * @example
 * keyed.window(countWindow(100))
 */
export function countWindow(count: number): CountWindows {
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new ConfigurationError(`countWindow(${count}): give the number of records of a window, an integer above 0.`)
  }
  return { kind: 'count', graceMs: 0, count, label: `countWindow(${count})` }
}
