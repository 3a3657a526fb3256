/** Several aggregators as one, whose accumulators stand in the order of the names. */
import { ConfigurationError } from '../../core/errors.ts'
import type { StateValue } from '../../state/state-store.ts'
import type { AggregatedRecord, Aggregator, Aggregators, ResultsOf } from './aggregator.ts'

/** Makes the one. Throws a {@link ConfigurationError}, which calls the operator by `label`, where it names no aggregator. */
export function named<T, F extends Aggregators<T>>(
  label: string,
  aggregators: F,
): Aggregator<T, ResultsOf<F>, readonly unknown[]> {
  const names = Object.keys(aggregators)
  const list = Object.values(aggregators) as readonly Aggregator<T, unknown>[]
  if (names.length === 0) {
    throw new ConfigurationError(`${label} has no aggregator: name at least one, such as { count: count() }.`)
  }
  for (const [i, name] of names.entries()) checkMember(label, name, list[i])
  return {
    init: () => list.map((aggregator) => aggregator.init()),
    add: (accumulators, value, record) => addedTo(list, accumulators, value, record),
    merge: (a, b) => list.map((aggregator, i) => aggregator.merge(a[i], b[i])),
    result: (accumulators) => resultsOf(names, list, accumulators) as ResultsOf<F>,
    // By name, so that a later release may list them in another order, or more of them.
    encode: (accumulators) =>
      Object.fromEntries(list.map((aggregator, i) => [names[i], aggregator.encode(accumulators[i])])),
    decode: (stored) => {
      const byName = stored as { readonly [name: string]: StateValue }
      return list.map((aggregator, i) => {
        const own = Object.hasOwn(byName, names[i] as string) ? byName[names[i] as string] : undefined
        return own === undefined ? aggregator.init() : aggregator.decode(own)
      })
    },
  }
}

/** A plain loop: this happens once per record. */
function addedTo<T>(
  list: readonly Aggregator<T, unknown>[],
  accumulators: readonly unknown[],
  value: T,
  record: AggregatedRecord,
): readonly unknown[] {
  const after = new Array<unknown>(list.length)
  for (let i = 0; i < list.length; i += 1) {
    after[i] = (list[i] as Aggregator<T, unknown>).add(accumulators[i], value, record)
  }
  return after
}

function resultsOf(
  names: readonly string[],
  list: readonly Aggregator<never, unknown>[],
  accumulators: readonly unknown[],
): { readonly [name: string]: unknown } {
  const results: Record<string, unknown> = {}
  for (let i = 0; i < list.length; i += 1) {
    results[names[i] as string] = (list[i] as Aggregator<never, unknown>).result(accumulators[i])
  }
  return results
}

function checkMember(label: string, name: string, aggregator: unknown): void {
  if (name === '' || name === '__proto__') {
    throw new ConfigurationError(`${label} names an aggregator ${JSON.stringify(name)}: give it a name that is a word.`)
  }
  const { add, merge, encode } = (aggregator ?? {}) as Partial<Aggregator<unknown, unknown>>
  if (typeof add === 'function' && typeof merge === 'function' && typeof encode === 'function') return
  throw new ConfigurationError(
    `"${name}" of ${label} is no aggregator: use count(), sum(), mean() and their like, or custom({ init, add, merge, result }).`,
  )
}
