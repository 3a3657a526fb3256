/** What stores have in stock: a value, a list and a map of any size per store, and one state per slot. */
import * as z from 'zod'
import { listState, mapState, operatorState, Topology, valueState } from '../../lib/index.ts'

export const Movement = z.object({
  store: z.string().min(1),
  product: z.string().min(1),
  /** Pieces that came in, or went out where it is below 0. */
  pieces: z.int(),
})
export type Movement = z.infer<typeof Movement>

/** What is in stock after a movement. */
export interface StockLevel {
  readonly store: string
  readonly product: string
  readonly inStock: number
  /** The products that moved last, the newest last. */
  readonly recent: readonly string[]
  /** How many movements the slot of this store has seen, whatever their store. */
  readonly movementsInSlot: number
}

/** What is kept of each store, and of each slot; readers of the table know it by this name. */
export const stockState = {
  last: valueState<string>(),
  recent: listState<string>({ atMost: 5 }),
  pieces: mapState<number>(),
  movements: operatorState({ initial: 0, add: (count: number, _movement: Movement) => count + 1 }),
}

export const mapStateApp = new Topology('map-state')

export const movements = mapStateApp.source('movements', Movement)
export const stockLevels = mapStateApp.sink<StockLevel>('stock-levels', { key: ({ store }) => store })

movements
  .keyBy('by-store', ({ store }) => store)
  .process('stock', {
    state: stockState,
    // Loaded together with the store's item. Without it the step would run twice: once to find out what it needs.
    prefetch: ({ product }) => ({ pieces: [product] }),
    step({ store, product, pieces }, { state }) {
      const inStock = (state.pieces.get(product) ?? 0) + pieces
      // What is used up leaves the map.
      if (inStock === 0) state.pieces.delete(product)
      else state.pieces.set(product, inStock)
      state.last.set(product)
      state.recent.add(product)
      return [{ store, product, inStock, recent: state.recent.get(), movementsInSlot: state.movements.get() }]
    },
  })
  .to(stockLevels)
