/**
 * Finds the record that kills the process. Lambda bisects a batch that kills until one entry of the log is left; inside it
 * we bisect ourselves, by noting in progress which numbers an attempt is about to step.
 *
 * 1. An entry is suspected only where it comes alone and arrived a while ago: what is delivered the first time costs nothing. Kafka
 *    without provisioned pollers bisects nothing: there a batch is suspected as one.
 * 2. Numbers from which `attempts` attempts did not come back hold a killer. From then on an attempt steps the first half of
 *    them: one that does not come back leaves that half, one that does leaves the other. A single number that is left
 *    is the killer when `attempts` attempts at it alone did not come back.
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

/**
 * What an attempt at the numbers from `from` to `to` is to note before it steps any, {@link lastToStep} of which it then steps;
 * undefined where all were cleared. More attempts than `mostAttempts` say that the numbers are known to hold a killer, and
 * that an attempt began at their first half.
 */
export function nextSuspect(
  known: Suspect | undefined,
  numbers: Numbers,
  mostAttempts: number,
): { readonly suspect: Suspect } | { readonly killer: number } | undefined {
  if (known === undefined || known.from < numbers.from || known.to > numbers.to) {
    return { suspect: { ...numbers, attempts: 1 } }
  }
  const { from, to, attempts } = known
  if (from > numbers.to) return undefined
  if (from === to && attempts >= mostAttempts) return { killer: from }
  if (attempts <= mostAttempts) return { suspect: { from, to, attempts: attempts + 1 } }
  const half = lastToStep(known, mostAttempts)
  // A single number has died once alone; of several it is known as it was of twice as many.
  return nextSuspect({ from, to: half, attempts: half === from ? 1 : mostAttempts }, numbers, mostAttempts)
}

/** The last number that an attempt steps which noted `suspect`. */
export function lastToStep({ from, to, attempts }: Suspect, mostAttempts: number): number {
  return attempts > mostAttempts && from < to ? from + Math.floor((to - from - 1) / 2) : to
}

/**
 * What stays of a note when the numbers up to `through` were stepped and did not kill. `last` is the last number of the entry. The
 * rest of numbers that are known to hold a killer hold it, but of a single one its own attempts are counted anew.
 */
export function clearedThrough(noted: Suspect, through: number, last: number, mostAttempts: number): Suspect {
  const from = through + 1
  if (noted.attempts <= mostAttempts || from > noted.to) return { from, to: Math.max(last, through), attempts: 0 }
  return { from, to: noted.to, attempts: from === noted.to ? 0 : mostAttempts }
}

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
