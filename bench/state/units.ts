/** What a batch costs in capacity units: from the DynamoDB model, through the production store. */
import { CountingStages } from './counting.ts'
import { addPerRecord, type Peer, powertoolsIdempotency } from './peers.ts'
import type { Units } from './prices.ts'
import { countTable, feedingTable, idempotencyTable, MeteredTables, stateTable } from './tables.ts'
import { batchOf, seeded, zipf } from './zipf.ts'

/** Means per batch. */
export interface BatchUnits {
  /** What no way can go below that keeps one item per key and writes each batch's results. */
  readonly distinctKeys: number
  /** Units of the keyed stage and of the stage that feeds it, progress and manifest included. */
  readonly warm: Units
  readonly cold: Units
  /** Read units of key items alone, in the cold batches, for each distinct key. */
  readonly coldReadsPerKey: number
  /** Results that went out, for each distinct key: more than one where a batch is committed in parts. */
  readonly resultsPerKey: number
  readonly addPerRecord: Units
  readonly powertools: Units
}

interface BatchRun {
  readonly users: readonly string[]
  readonly stages: CountingStages
  readonly tables: MeteredTables
  readonly add: Peer
  readonly powertools: Peer
}

/** Each batch runs three times: the first makes its keys, then all of them are in memory, then none is. */
export async function measureUnits(keys: number, records: number, batches: number): Promise<BatchUnits> {
  const tables = new MeteredTables()
  const stages = new CountingStages(tables.stores())
  const peers = { add: addPerRecord(tables.client), powertools: powertoolsIdempotency(tables.client) }
  const draw = zipf(keys, seeded(keys + records))
  const runs: BatchUnits[] = []
  for (let i = 0; i < batches; i++) {
    runs.push(await unitsOf({ users: batchOf(draw, records), stages, tables, ...peers }))
  }
  const mean = (of: (run: BatchUnits) => number) => runs.reduce((sum, run) => sum + of(run), 0) / batches
  const meanUnits = (of: (run: BatchUnits) => Units) => ({
    read: mean((run) => of(run).read),
    write: mean((run) => of(run).write),
  })
  return {
    distinctKeys: mean((run) => run.distinctKeys),
    warm: meanUnits((run) => run.warm),
    cold: meanUnits((run) => run.cold),
    coldReadsPerKey: mean((run) => run.coldReadsPerKey),
    resultsPerKey: mean((run) => run.resultsPerKey),
    addPerRecord: meanUnits((run) => run.addPerRecord),
    powertools: meanUnits((run) => run.powertools),
  }
}

async function unitsOf({ users, stages, tables, add, powertools }: BatchRun): Promise<BatchUnits> {
  const distinctKeys = new Set(users).size
  const run = async () => stages.count(await stages.feed(stages.clicks(users)))
  await run()
  stages.takeOutputs()
  const warm = await tables.unitsOf(run, stateTable, feedingTable)
  const resultsPerKey = stages.takeOutputs() / distinctKeys
  stages.restart()
  tables.takeKeyReads()
  const cold = await tables.unitsOf(run, stateTable, feedingTable)
  return {
    distinctKeys,
    warm,
    cold,
    coldReadsPerKey: tables.takeKeyReads() / distinctKeys,
    resultsPerKey,
    addPerRecord: await tables.unitsOf(() => add(users), countTable),
    powertools: await tables.unitsOf(() => powertools(users), countTable, idempotencyTable),
  }
}

export const allUnits = (units: Units): number => units.read + units.write
