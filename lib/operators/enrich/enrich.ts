import { TerminalError, thrownBy } from '../../core/errors.ts'
import type { RecordInfo } from '../../core/record.ts'
import { type Operator, refusePromise } from '../operator.ts'
import { type Freshness, notLoaded, type Table, type TableView } from './table.ts'

/** What an `enrich` step is made of. */
export interface Enrichment<I, V, O> {
  readonly from: Table<V>
  /** The key of the row to join; undefined joins none. */
  readonly key: (value: I, record: RecordInfo) => string | undefined
  /** Makes the output from the value and its row; the row is undefined where the table has none. */
  readonly join: (value: I, row: V | undefined, freshness: Freshness) => O
}

const noRow: Freshness = { loadedAtMs: 0, stalenessMs: 0 }

function refuseKey(table: string, key: unknown): never {
  refusePromise('enrich', key)
  throw new TerminalError(
    `the key function of the enrichment from "${table}" gave ${key === null ? 'null' : `a ${typeof key}`}, not a string: rows are found by text, or by undefined for none`,
    { code: 'key-not-text' },
  )
}

/** Joins a row of a table to each value. A value whose row is still to be loaded goes no further in this pass. */
export function enrich<I, V, O>(enrichment: Enrichment<I, V, O>): Operator<I, O> {
  return {
    kind: 'enrich',
    link: (next, context) => {
      const table = context.table(enrichment.from.name) as TableView<V>
      return (value, record) => {
        try {
          const key = enrichment.key(value, record)
          if (key !== undefined && typeof key !== 'string') refuseKey(enrichment.from.name, key)
          const row = key === undefined ? undefined : table.get(key)
          if (row === notLoaded) return
          const result = enrichment.join(value, row, key === undefined ? noRow : table.freshness(key))
          refusePromise('enrich', result)
          next(result, record)
        } catch (error) {
          throw thrownBy(context.step, error)
        }
      }
    },
  }
}
