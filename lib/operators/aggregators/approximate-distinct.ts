import { ConfigurationError } from '../../core/errors.ts'
import type { StateValue } from '../../state/state-store.ts'
import { type Aggregator, select } from './aggregator.ts'
import { type Distinguishable, distinguishable } from './distinct.ts'
import { GrowingSet } from './growing-set.ts'
import { estimate, type Registers, unitedRegisters, withValue } from './registers.ts'

/** What `approximateDistinct` may say. */
export interface ApproximateDistinctOptions {
  /**
   * The log2 of the number of registers, from 4 to 14. A sketch takes at most 2^precision bytes, and its estimate is off by
   * about 1.04 / sqrt(2^precision) (one standard deviation): 1.6 percent at 12, 0.8 at 14.
   * @default 12
   */
  readonly precision?: number
}

/**
 * About how many different values there are, in bounded space whatever their number: a HyperLogLog sketch. The estimate
 * depends on the set of values alone.
 *
 * A record whose value is `undefined` is left out. Throws a {@link ConfigurationError} for a precision out of range; while
 * running, a TerminalError for what is no finite number, bigint, text or boolean.
 *
 * @example
 * { visitors: approximateDistinct((v: Visit) => v.userId) }
 */
export function approximateDistinct<T>(
  by: (value: T) => Distinguishable | undefined,
  { precision = 12 }: ApproximateDistinctOptions = {},
): Aggregator<T, number> {
  if (!Number.isInteger(precision) || precision < 4 || precision > 14) {
    throw new ConfigurationError(`approximateDistinct: the precision ${precision} is no integer from 4 to 14.`)
  }
  const aggregator: Aggregator<T, number, Registers> = {
    kind: `approximateDistinct(precision: ${precision})`,
    init: () => GrowingSet.empty(),
    add(registers, value) {
      const one = distinguishable('approximateDistinct', select('approximateDistinct', by, value))
      return one === undefined ? registers : withValue(registers, `${typeof one} ${one}`, precision)
    },
    merge: (a, b) => unitedRegisters(a, b, precision),
    result: (registers) => estimate(registers, precision),
    encode: (registers): StateValue => (registers instanceof GrowingSet ? registers.sorted() : registers),
    decode: (stored) => (Array.isArray(stored) ? GrowingSet.of(stored as number[]) : (stored as Uint8Array)),
  }
  return aggregator
}
