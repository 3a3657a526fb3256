/**
 * Finds the record that kills the process. Lambda bisects a batch that kills until one entry of the log is left; inside it
 * we bisect ourselves, by noting in progress which numbers an attempt is about to step.
 *
 * 1. An entry is suspected only where it comes alone and arrived a while ago: what is delivered the first time costs nothing.
 * 2. An attempt that finds its numbers noted `attempts` times, and not done, halves them; a single number left is the one.
 * 3. The killer becomes a dead letter without being stepped again.
 * 4. Numbers that were stepped and did not kill are cleared for good before anything of them is published: what a crash hits
 *    later, between publishing and progress, is no killer, and its outputs are out already.
 */
import { TerminalError } from '../core/errors.ts'
import type { Failing, Suspect } from './progress/progress.ts'

/** How long a lone entry may have waited before it is suspected. */
const suspectAfterMs = 60_000

/** True where an entry that comes alone has waited for so long that it may be one that kills. */
export function mayKill(arrivedAtMs: number, nowMs: number): boolean {
  return nowMs - arrivedAtMs > suspectAfterMs
}

interface Numbers {
  readonly from: number
  readonly to: number
}

/** What an attempt at the numbers from `from` to `to` is to note before it steps any; undefined where all were cleared. */
export function nextSuspect(
  known: Suspect | undefined,
  numbers: Numbers,
  mostAttempts: number,
): { readonly suspect: Suspect } | { readonly killer: number } | undefined {
  if (known === undefined || known.from < numbers.from || known.to > numbers.to) {
    return { suspect: { ...numbers, attempts: 1 } }
  }
  if (known.from > numbers.to) return undefined
  if (known.attempts < mostAttempts) return { suspect: { ...known, attempts: known.attempts + 1 } }
  if (known.from === known.to) return { killer: known.from }
  const to = known.from + Math.floor((known.to - known.from - 1) / 2)
  return { suspect: { from: known.from, to, attempts: 1 } }
}

/** What is noted when the numbers up to `through` were stepped and did not kill: only those beyond may. */
export const clearedThrough = (through: number, to: number): Suspect => ({
  from: through + 1,
  to: Math.max(to, through),
  attempts: 0,
})

/** What an attempt does with a record that has failed before. */
export type Verdict = 'step' | 'give-up' | 'give-up-unseen'

/** `give-up-unseen` is for a killer: it must not even be stepped to learn its error. */
export function verdictOf(failing: Failing | undefined, number: number, mostAttempts: number): Verdict {
  if (failing?.number !== number) return 'step'
  if (failing.skipped) return 'give-up'
  if (failing.attempts < mostAttempts) return 'step'
  return failing.attempts > mostAttempts ? 'give-up-unseen' : 'give-up'
}

/** The failing record that stands for a killer. */
export const killerAt = (number: number, mostAttempts: number): Failing => ({ number, attempts: mostAttempts + 1 })

/** Why a record is given up although it did not throw this time. */
export const skipped = () =>
  new TerminalError('the record was given up: it had failed as often as is allowed, or was skipped', {
    code: 'given-up',
  })

/** Why a killer is given up. */
export const killed = () =>
  new TerminalError('the process ended each time that it stepped this record: out of memory or time, or a crash', {
    code: 'killed-process',
  })
