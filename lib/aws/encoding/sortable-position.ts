/** Positions of a log as text that sorts as they do, so that a DynamoDB condition can compare them. */
import { TerminalError } from '../../core/errors.ts'

/** Digits that a length of three digits can tell. */
const mostDigits = 999

/**
 * Decimal digits, made to sort as their number does: their length stands before them. Numbers of up to 56 digits, as
 * Kinesis gives them, are beyond what DynamoDB's N holds.
 *
 * @example
 * sortableDigits('15') // '002:15'
 */
export function sortableDigits(digits: string): string {
  const canonical = digits.replace(/^0+(?=\d)/, '')
  return `${String(canonical.length).padStart(3, '0')}:${canonical}`
}

/**
 * A position as text that sorts as positions do: its numbers one after another, the most significant first. Throws a
 * {@link TerminalError} (code `unsupported-position`) for anything but digits with slashes between them.
 *
 * @example
 * sortablePosition('15/3') // '002:15/001:3'
 */
export function sortablePosition(position: string | number | bigint): string {
  const isExact = typeof position !== 'number' || Number.isSafeInteger(position)
  const parts = String(position).split('/')
  if (isExact && parts.every((part) => /^\d+$/.test(part) && part.length <= mostDigits)) {
    return parts.map(sortableDigits).join('/')
  }
  throw new TerminalError(
    `the position ${JSON.stringify(String(position).slice(0, 100))} is not made of digits: give the sequence number or the offset of the record, as it came`,
    { code: 'unsupported-position' },
  )
}

/** True for what {@link sortablePosition} makes. */
export function isSortablePosition(text: string | undefined): boolean {
  return text !== undefined && /^\d{3}:\d+(\/\d{3}:\d+)*$/.test(text)
}
