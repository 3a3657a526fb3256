/** The orders that aggregators go by. They are total, so that ties are broken by content and never by arrival. */
import type { StateValue } from '../../state/state-store.ts'
import { canonicalText } from '../../state/values.ts'

/** What may be compared. Texts go by their UTF-16 code units. */
export type Ordered = number | bigint | string

export const isOrdered = (value: unknown): value is Ordered =>
  typeof value === 'string' || typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value))

/** Below 0 where `a` comes first. A number and a bigint of one value stand by their types' names. */
export function compareOrdered(a: Ordered, b: Ordered): number {
  const isText = typeof a === 'string'
  if (isText === (typeof b === 'string')) {
    if (a < b) return -1
    if (a > b) return 1
    if (typeof a === typeof b) return 0
  }
  return typeof a < typeof b ? -1 : 1
}

/** By content: 0 for equal values only. */
export function compareContent(a: StateValue, b: StateValue): number {
  const textOfA = canonicalText(a)
  const textOfB = canonicalText(b)
  if (textOfA === textOfB) return 0
  return textOfA < textOfB ? -1 : 1
}
