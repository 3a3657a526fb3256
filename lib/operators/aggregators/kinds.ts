/**
 * Which aggregators have gathered what is stored of open windows. An accumulator does not say it itself, and one that another kind
 * reads is misread: a count as a sum without a word, a count as a mean with a step that throws for ever.
 *
 * 1. A kind has the parameters by which what is stored is laid out or ordered, and no others: a quantile's share may be changed.
 * 2. By name, so an aggregator may come and go: what is stored of one that is gone is not read, and a new one begins with nothing.
 * 3. Of `custom` the functions are not known: one that keeps something else needs another name, as nobody sees it.
 */
import type { Aggregator, Aggregators, CustomAggregation } from './aggregator.ts'

/** Of each aggregator by name; of a single one, which is stored without a name, its kind alone. */
export type AggregatorKinds = string | { readonly [name: string]: string }

/** The kinds of what a window gathers by. */
export function kindsOf<T>(
  aggregation: Aggregators<T> | Aggregator<T, unknown> | CustomAggregation<T, unknown, unknown>,
): AggregatorKinds {
  const { init, kind = 'custom' } = aggregation as Partial<Aggregator<T, unknown>>
  if (typeof init === 'function') return kind
  const byName = Object.entries(aggregation as Aggregators<T>)
  return Object.fromEntries(byName.map(([name, aggregator]) => [name, aggregator.kind ?? 'custom']))
}

/** One aggregator whose stored part another one would read, in words. */
export interface MisreadKind {
  readonly what: string
  readonly before: string
  readonly now: string
  /** What is to have another name. */
  readonly renamed: 'aggregator' | 'window'
}

/** What present aggregators would misread of recorded ones; nothing where none were recorded, as releases did that knew none. */
export function misreadKinds(
  before: AggregatorKinds | undefined,
  now: AggregatorKinds | undefined,
): readonly MisreadKind[] {
  if (before === undefined || now === undefined) return []
  if (typeof before === 'string' || typeof now === 'string') {
    if (before === now) return []
    return [{ what: 'the aggregation', before: inWords(before), now: inWords(now), renamed: 'window' }]
  }
  return Object.entries(now).flatMap(([name, kind]) => {
    const recorded = Object.hasOwn(before, name) ? (before[name] as string) : kind
    return recorded === kind
      ? []
      : [{ what: `aggregator ${JSON.stringify(name)}`, before: recorded, now: kind, renamed: 'aggregator' as const }]
  })
}

/** What was recorded with what is declared, which can be read beside it: parts of aggregators that are gone may be there yet. */
export function mergedKinds(before: AggregatorKinds | undefined, now: AggregatorKinds): AggregatorKinds {
  return typeof before === 'object' && typeof now === 'object' ? { ...before, ...now } : now
}

const inWords = (kinds: AggregatorKinds): string =>
  typeof kinds === 'string' ? `a single ${kinds}` : `several by name (${Object.keys(kinds).toSorted().join(', ')})`
