/**
 * Whether recovery depends on the size of the state.
 *
 * The rule: the medians of two sizes differ by no more than chance moves them, which is the larger of the two sizes' own spread
 * (from the first to the third quartile of their times) and of one polling interval, since a kill falls anywhere within one.
 */
import { type Figure, median } from '../../../bench/figures.ts'

/** How a run with so many keys went. */
export interface SizedRun {
  readonly keys: number
  /** Kills that were asked for. */
  readonly kills: number
  /** By kill, from SIGKILL to the first new result, in ms; of those that came. */
  readonly recoveriesMs: readonly number[]
  /** From SIGKILL to the start of the first invocation that took over. */
  readonly takeOversMs: readonly number[]
  readonly sent: number
  /** What the state table holds in the end. */
  readonly users: number
  /** Infinity where what was sent is not processed in time. */
  readonly counted: number
}

/** The figures, with the goals that the demo states. */
export function figuresOf(small: SizedRun, large: SizedRun, pollIntervalMs: number): readonly Figure[] {
  const noiseMs = Math.max(pollIntervalMs, spreadOf(small.recoveriesMs), spreadOf(large.recoveriesMs))
  const difference = Math.abs(medianOf(large.recoveriesMs) - medianOf(small.recoveriesMs))
  return [
    ...[small, large].flatMap(sizedFigures),
    { name: 'difference of the medians', value: difference, unit: 'ms', goal: noiseMs, better: 'lower' },
  ]
}

function sizedFigures({ keys, kills, recoveriesMs, takeOversMs, sent, users, counted }: SizedRun): readonly Figure[] {
  const size = `${keys.toLocaleString('en')} keys`
  return [
    { name: `${size}: in the state table`, value: users, unit: 'keys', goal: keys, better: 'exactly' },
    { name: `${size}: sent`, value: sent, unit: 'records' },
    { name: `${size}: counted in the state`, value: counted, unit: 'records', goal: sent, better: 'exactly' },
    { name: `${size}: kills with a new result after`, value: recoveriesMs.length, unit: '', goal: kills },
    { name: `${size}: SIGKILL to take-over, median`, value: medianOf(takeOversMs), unit: 'ms' },
    { name: `${size}: SIGKILL to first new result, median`, value: medianOf(recoveriesMs), unit: 'ms' },
    { name: `${size}: the same, from the first to the third quartile`, value: spreadOf(recoveriesMs), unit: 'ms' },
    { name: `${size}: the same, slowest`, value: Math.max(...recoveriesMs, 0), unit: 'ms' },
  ]
}

/** Infinity where nothing was measured. */
const medianOf = (timesMs: readonly number[]): number =>
  timesMs.length === 0 ? Number.POSITIVE_INFINITY : median(timesMs)

function spreadOf(timesMs: readonly number[]): number {
  if (timesMs.length === 0) return 0
  const sorted = timesMs.toSorted((a, b) => a - b)
  const at = (part: number): number => sorted[Math.round((sorted.length - 1) * part)] as number
  return at(0.75) - at(0.25)
}
