/**
 * Positions: where an output stands among all that one upstream partition ever sends.
 *
 * 1. Outputs are ordered by number; at one number the firings of other keys come before all that the record's own key
 *    does there; those firings by the hash of their key; the outputs of one step by their index.
 * 2. A position follows from the input log alone, so every attempt gives an output the same one.
 * 3. The start of a number is a position too: behind all of the number before, ahead of all of its own. No output has it.
 */
import { hash } from 'node:crypto'

/** A place in the order of an upstream's outputs. Plain data; compare with {@link comparePositions}. */
export interface Position {
  /** The number of the record or control record that the output comes from: a whole number, 0 or more. */
  readonly number: number
  /** True for the outputs of the record's own key; always true in a stage without keyed state. */
  readonly own: boolean
  /** The {@link positionHashOf} of the key that fired; empty where `own` is true, as a record has one key. */
  readonly keyHash: string
  /** Place among the outputs of that step, from 0; -1 just before the first of them. */
  readonly index: number
}

/** The interval (previous, last]: all behind the first position, up to and with the second. */
export interface Interval {
  readonly previous: Position
  readonly last: Position
}

/** The position of an output of the record's own key. */
export function ownPosition(number: number, index: number): Position {
  return { number, own: true, keyHash: '', index }
}

/** The position of an output of a key that fires at another key's number. */
export function firingPosition(number: number, keyHash: string, index: number): Position {
  return { number, own: false, keyHash, index }
}

/** The position ahead of all that happens at a number. */
export function startOf(number: number): Position {
  return { number, own: false, keyHash: '', index: -1 }
}

/** The position behind all that happens at a number. */
export function endOf(number: number): Position {
  return startOf(number + 1)
}

/** More than any step puts out, and still a number that is written in a few bytes. */
const mostOutputs = 2 ** 40

/** The position behind all outputs of a key that fires at another key's number. */
export function endOfFiring(number: number, keyHash: string): Position {
  return firingPosition(number, keyHash, mostOutputs)
}

/** The position ahead of every output. */
export const firstPosition: Position = startOf(0)

/**
 * Orders keys that fire at one number, in 32 hexadecimal digits. Two keys of one hash would share positions and lose an
 * output, and texts of one MD5 are easily made by whoever chooses the keys; so this is SHA-256, cut to 128 bits.
 */
export function positionHashOf(key: string): string {
  return hash('sha256', key, 'hex').slice(0, 32)
}

/** Negative where `a` comes first, positive where `b` does, 0 where they are one position. */
export function comparePositions(a: Position, b: Position): number {
  if (a.number !== b.number) return a.number < b.number ? -1 : 1
  if (a.own !== b.own) return a.own ? 1 : -1
  if (a.keyHash !== b.keyHash) return a.keyHash < b.keyHash ? -1 : 1
  return a.index - b.index
}

/** The later of two positions. */
export function laterOf(a: Position, b: Position): Position {
  return comparePositions(a, b) >= 0 ? a : b
}

/** The position between which and an output's own no other output can stand. */
export function justBefore(position: Position): Position {
  return { ...position, index: position.index - 1 }
}
