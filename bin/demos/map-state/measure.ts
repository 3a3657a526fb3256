/** What one update of a map costs, by the size of the map: in units as DynamoDB reports them. */
import { mapStateApp, movements } from '../../../functions/map-state/topology.ts'
import { createDynamoModel } from '../../../lib/emulator/dynamodb/index.ts'
import { type TableCall, TableWorld } from '../tables/table-world.ts'

/** The cost of one movement of one product, in a store that has so many. */
export interface MapCost {
  readonly entries: number
  /** All that the table holds, as DynamoDB counts. */
  readonly bytes: number
  /** In write units: the key item and the entry, in one transaction. */
  readonly written: number
  /** In read units, by a function that knows nothing yet. */
  readonly readCold: number
  /** In read units, by a function that wrote the key last. */
  readonly readWarm: number
  /** What the same map would cost in write units as one item; undefined where it is larger than an item may be. */
  readonly asOneItem: number | undefined
}

const store = 'store-1'
const batch = 90
const product = (index: number): string => `product-${String(index).padStart(6, '0')}`
const moved = (index: number) => ({ store, product: product(index), pieces: 1 })
/** Nine out of ten products have a long history of movements, so that entries are of a plausible size. */
const piecesOf = (index: number): number => (index % 10 === 0 ? 1 : 1_000_000 + index)

/** Fills a map with entries and changes one in its middle. */
export async function measureMap(entries: number): Promise<MapCost> {
  const cold = await measuredUpdate(entries, 0)
  const warm = await measuredUpdate(entries, 1_000)
  if (cold.written !== warm.written) throw new Error('a warm function writes something else than a cold one')
  return { entries, ...cold, readWarm: warm.readCold, asOneItem: unitsAsOneItem(entries) }
}

async function measuredUpdate(entries: number, warmKeys: number) {
  const world = new TableWorld(mapStateApp, { warmKeys })
  for (let from = 0; from < entries; from += batch) {
    const count = Math.min(batch, entries - from)
    await world.send(
      movements,
      Array.from({ length: count }, (_, i) => ({ ...moved(from + i), pieces: piecesOf(from + i) })),
    )
  }
  const middle = Math.floor(entries / 2)
  // A warm function has had this product before.
  await world.send(movements, [moved(middle)])
  world.calls.length = 0
  await world.send(movements, [moved(middle)])
  const units = (operations: RegExp) => unitsOf(world.calls, operations)
  return { bytes: bytesIn(world), written: units(/Write|Put/), readCold: units(/Get|Query/) }
}

const unitsOf = (calls: readonly TableCall[], operations: RegExp): number =>
  calls.reduce((sum, call) => sum + (call.isOfKeys && operations.test(call.operation) ? call.units : 0), 0)

const bytesIn = (world: TableWorld): number =>
  world.model.call('DescribeTable', { TableName: world.tableOf('by-store') }).Table.TableSizeBytes

/** Puts the whole map into one item of a table of its own, as one would without map states. */
function unitsAsOneItem(entries: number): number | undefined {
  const model = createDynamoModel({ clock: { nowMs: () => 0 } })
  const TableName = 'one-item'
  model.call('CreateTable', {
    TableName,
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
    BillingMode: 'PAY_PER_REQUEST',
  })
  const M = Object.fromEntries(
    Array.from({ length: entries }, (_, i) => [product(i), { N: String(piecesOf(i)) }] as const),
  )
  try {
    const Item = { pk: { S: store }, pieces: { M } }
    return model.call('PutItem', { TableName, Item, ReturnConsumedCapacity: 'TOTAL' }).ConsumedCapacity?.CapacityUnits
  } catch (error) {
    if ((error as Error).name === 'ValidationException') return undefined
    throw error
  }
}
