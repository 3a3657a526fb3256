/** What windows cost in capacity units: from the DynamoDB model, through the production store. */
import type { Units } from '../state/prices.ts'
import { feedingTable, MeteredTables, stateTable } from '../state/tables.ts'
import { Load, type MeasuredKind } from './load.ts'
import { WindowStages } from './stages.ts'

export interface WindowUnits {
  /** Of batches of 1,000 records at which no window ends, both stages together; means. */
  readonly distinctKeys: number
  readonly warm: Units
  readonly cold: Units
  /** How often the item of a key is written in a batch. */
  readonly writesPerKey: number
  /** What a result costs at the end of its window, to an environment that has just begun. */
  readonly perResult: Units
  readonly results: number
}

const records = 1_000

export async function measureUnits(kind: MeasuredKind, keys: number, batches: number): Promise<WindowUnits> {
  const tables = new MeteredTables()
  const stages = new WindowStages(kind, tables.stores())
  const load = await Load.open(kind, stages, keys)
  let distinctKeys = 0
  let written = 0
  const sums = { warm: { read: 0, write: 0 }, cold: { read: 0, write: 0 } }
  for (let i = 0; i < batches; i++) {
    const batch = load.keys(records)
    distinctKeys += new Set(batch).size
    // The first makes its keys, then all of them are in memory, then none is.
    const run = () => stages.send(load.trips(batch))
    await run()
    stages.takeMetric('keys-written')
    add(sums.warm, await tables.unitsOf(run, stateTable, feedingTable))
    written += stages.takeMetric('keys-written')
    stages.restart()
    add(sums.cold, await tables.unitsOf(run, stateTable, feedingTable))
  }
  if (stages.takeOutputs('results') > 0) throw new Error('a window ended in a batch where none was to end')
  stages.restart()
  const closing = await tables.unitsOf(() => load.close(), stateTable, feedingTable)
  const results = stages.takeOutputs('results')
  return {
    distinctKeys: distinctKeys / batches,
    warm: over(sums.warm, batches),
    cold: over(sums.cold, batches),
    writesPerKey: written / distinctKeys,
    perResult: over(closing, results),
    results,
  }
}

function add(sum: { read: number; write: number }, { read, write }: Units): void {
  sum.read += read
  sum.write += write
}

const over = ({ read, write }: Units, count: number): Units => ({ read: read / count, write: write / count })
