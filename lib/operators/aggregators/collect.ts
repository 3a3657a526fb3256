import { ConfigurationError } from '../../core/errors.ts'
import type { StateValue } from '../../state/state-store.ts'
import { type Aggregator, frozen, type Given, select } from './aggregator.ts'
import { checkBound, inserted, mergedSorted } from './sorted.ts'
import { compareTimed, decodeTimed, encodeTimed, type Timed } from './timed.ts'

/** What `collect` needs to know. */
export interface CollectOptions<T, R> {
  /** The most values that are kept: of more, those of the latest event times. It has no default, as state is bounded. */
  readonly atMost: number
  /** What is kept of a value; `undefined` leaves it out. @default all of it */
  readonly keep?: (value: T) => R
}

/**
 * The values themselves, in the order of their event times; of one time, in the order of their contents.
 *
 * Throws a {@link ConfigurationError} where `atMost` is no integer above 0; while running, a TerminalError for what the
 * state table could not return unchanged.
 *
 * @example
 * { lastStops: collect({ atMost: 20, keep: (v: Visit) => v.stop }) }
 */
export function collect<T, R = T>({ atMost, keep }: CollectOptions<T, R>): Aggregator<T, NoInfer<readonly Given<R>[]>> {
  checkBound(atMost, (problem) => new ConfigurationError(`collect: atMost is ${problem}, the most values to keep.`))
  const aggregator: Aggregator<T, unknown, readonly Timed[]> = {
    kind: 'collect',
    init: () => [],
    add(kept, value, { eventTimeMs }) {
      const selected: unknown = keep === undefined ? value : select('collect', keep, value)
      const oldest = kept.length < atMost ? undefined : kept[0]
      if (selected === undefined || (oldest !== undefined && eventTimeMs < oldest.timeMs)) return kept
      const timed = { timeMs: eventTimeMs, value: frozen(selected, 'a value that collect keeps') }
      return inserted(kept, timed, compareTimed).slice(-atMost)
    },
    merge: (a, b) => mergedSorted(a, b, compareTimed).slice(-atMost),
    result: (kept) => kept.map(({ value }) => value),
    encode: (kept) => kept.map(encodeTimed),
    // A release before may have kept more.
    decode: (stored) => (stored as readonly StateValue[]).slice(-atMost).map(decodeTimed),
  }
  return aggregator as Aggregator<T, readonly Given<R>[]>
}
