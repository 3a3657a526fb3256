import { measureMap } from '../../bin/demos/map-state/measure.ts'
import { TableWorld } from '../../bin/demos/tables/table-world.ts'
import { mapStateApp, movements, stockLevels, stockState } from '../../functions/map-state/topology.ts'
import { readState, stateView } from '../../lib/aws/state-table/reader.ts'
import { TestDriver } from '../../lib/testing/index.ts'

const move = (store: string, product: string, pieces: number) => ({ store, product, pieces })

test('S7: a value, a list and a map are kept per store, each entry by itself', async () => {
  const driver = new TestDriver(mapStateApp)
  await driver.send(movements, [move('bern', 'tea', 5), move('bern', 'rice', 2), move('chur', 'tea', 1)])
  await driver.send(movements, [move('bern', 'tea', -3), move('bern', 'rice', -2)])
  expect(await driver.stateOf('by-store', 'bern')).toEqual({
    'stock.last': 'rice',
    'stock.recent': ['tea', 'rice', 'tea', 'rice'],
    'stock.pieces': { tea: 2 },
  })
  expect(driver.received(stockLevels).filter(({ store }) => store === 'chur')).toMatchObject([{ inStock: 1 }])
  expect(driver.deadLetters).toEqual([])
})

test('the list keeps the newest five', async () => {
  const driver = new TestDriver(mapStateApp)
  await driver.send(
    movements,
    ['a', 'b', 'c', 'd', 'e', 'f'].map((product) => move('bern', product, 1)),
  )
  expect(driver.received(stockLevels).at(-1)?.recent).toEqual(['b', 'c', 'd', 'e', 'f'])
})

test('S7: operator state counts all records of a slot, over its keys and over batches', async () => {
  const driver = new TestDriver(mapStateApp)
  const stores = Array.from({ length: 200 }, (_, i) => `store-${i}`)
  await driver.send(
    movements,
    stores.map((store) => move(store, 'tea', 1)),
  )
  const first = driver.received(stockLevels).map(({ movementsInSlot }) => movementsInSlot)
  // 200 keys in 64 slots: some share one, so some counts go beyond 1, and each slot counts from 1 without a gap.
  expect(first.filter((count) => count === 1).length).toBeLessThanOrEqual(64)
  expect(Math.max(...first)).toBeGreaterThan(1)
  await driver.send(movements, [move('store-0', 'tea', 1), move('store-0', 'tea', 1)])
  const [before, after] = driver.received(stockLevels).slice(-2)
  expect((after?.movementsInSlot ?? 0) - (before?.movementsInSlot ?? 0)).toBe(1)
})

test('S7: one entry of a map of 3,000 costs what one of a map of 10 does: the entry and the key item', async () => {
  const [small, large] = [await measureMap(10), await measureMap(3_000)]
  // A transaction costs two write units for each item of up to 1 KB; a read of an item of up to 4 KB costs one unit.
  expect(small).toMatchObject({ written: 4, readCold: 2, readWarm: 0 })
  expect(large).toMatchObject({ written: 4, readCold: 2, readWarm: 0 })
  // What is measured would show a cost that grows: in one item the map costs far more.
  expect(large.asOneItem ?? 0).toBeGreaterThan(40)
}, 60_000)

test('another reader asks for one entry of a large map, and pays for two items', async () => {
  const world = new TableWorld(mapStateApp)
  for (let from = 0; from < 500; from += 50) {
    await world.send(
      movements,
      Array.from({ length: 50 }, (_, i) => move('bern', `p-${from + i}`, from + i + 1)),
    )
  }
  await world.send(movements, [move('bern', 'p-7', -8)])
  const tableName = world.tableOf('by-store')
  const view = stateView(mapStateApp, 'by-store', { stock: stockState })
  const reader = readState({ client: world.client, tableName, view, clock: world.clock })
  const before = world.model.consumedUnits(tableName).read
  const pieces: number | undefined = await reader.entry('bern', 'stock.pieces', 'p-321')
  expect([pieces, world.model.consumedUnits(tableName).read - before]).toEqual([322, 2])
  // What was used up, what never was, and a store that nobody knows.
  expect(await reader.entry('bern', 'stock.pieces', 'p-7')).toBeUndefined()
  expect(await reader.entry('bern', 'stock.pieces', 'p-500')).toBeUndefined()
  expect(await reader.entry('chur', 'stock.pieces', 'p-1')).toBeUndefined()
  // The state of the slot is no state of the store.
  expect(Object.keys((await reader.get('bern'))?.states.stock ?? {})).toEqual(['last', 'recent', 'pieces'])
})
