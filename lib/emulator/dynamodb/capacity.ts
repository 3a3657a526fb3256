/**
 * Capacity units, as DynamoDB counts them.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
 */
import type { CapacityReport, ConsumedCapacity } from './shapes.ts'

const READ_UNIT_BYTES = 4_096
const WRITE_UNIT_BYTES = 1_024

/** Units of reading so many bytes at once, at least one: strongly consistent 1 per 4 KB, else a half. */
export function readUnits(bytes: number, consistent: boolean): number {
  return Math.max(1, Math.ceil(bytes / READ_UNIT_BYTES)) * (consistent ? 1 : 0.5)
}

/** Units of a write: 1 per KB of the larger of the item before and after it, at least one. A failed condition has no after. */
export function writeUnits(bytesBefore: number, bytesAfter: number): number {
  return Math.max(1, Math.ceil(Math.max(bytesBefore, bytesAfter) / WRITE_UNIT_BYTES))
}

/** What an operation that is part of a transaction costs more. */
export const TRANSACTION_FACTOR = 2

/** Units by table, in the order in which the tables came up. */
export class UnitsByTable {
  readonly #units = new Map<string, number>()

  add(table: string, units: number): void {
    this.#units.set(table, (this.#units.get(table) ?? 0) + units)
  }

  of(table: string): number {
    return this.#units.get(table) ?? 0
  }

  *[Symbol.iterator](): Generator<readonly [table: string, units: number]> {
    yield* this.#units
  }

  /** What an answer says of it; undefined where the request did not ask. */
  report(
    asked: CapacityReport | undefined,
    kind?: 'ReadCapacityUnits' | 'WriteCapacityUnits',
  ): readonly ConsumedCapacity[] | undefined {
    if (asked === undefined || asked === 'NONE') return undefined
    return [...this.#units].map(([TableName, CapacityUnits]) => {
      // Transactions say which kind their units are of; other operations do not.
      const capacity = { CapacityUnits, ...(kind === undefined ? {} : { [kind]: CapacityUnits }) }
      return { TableName, ...capacity, ...(asked === 'INDEXES' ? { Table: capacity } : {}) }
    })
  }
}

/** What an answer of an operation on one table says of its units. */
export function reportUnits(
  asked: CapacityReport | undefined,
  table: string,
  units: number,
): { readonly ConsumedCapacity?: ConsumedCapacity } {
  const all = new UnitsByTable()
  all.add(table, units)
  const [ConsumedCapacity] = all.report(asked) ?? []
  return ConsumedCapacity === undefined ? {} : { ConsumedCapacity }
}
