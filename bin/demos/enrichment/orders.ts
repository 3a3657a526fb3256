/** The orders that the demo sends, and what each must become. */
import { countries } from '../../../functions/enrichment/countries.ts'
import type { EnrichedOrder, Order } from '../../../functions/enrichment/topology.ts'
import type { DemoRecord } from '../input.ts'
import { articles, customerOf, priceCents } from './reference-service.ts'

const customers = 2_000
/** `QQ` is no country, so it has no row in the static table. */
const codes = [...countries.keys(), 'QQ']

/** A few customers order most: the cube of an even spread leans to the small numbers. */
const customerNumber = (number: number): number => Math.floor(((number * 0.618_033_988_75) % 1) ** 3 * customers)

export function orderOf(number: number): Order {
  return {
    order: `order-${number}`,
    customer: `customer-${customerNumber(number)}`,
    article: `article-${(number * 7) % articles}`,
    country: codes[number % codes.length] ?? 'QQ',
  }
}

export const recordOf = (number: number): DemoRecord => ({
  partitionKey: `order-${number}`,
  value: orderOf(number),
})

/** Collects what comes out, each order once. */
export class EnrichedOrders {
  readonly #numbers = new Set<number>()
  readonly priceLists = new Set<number>()
  wrong = 0
  /** The oldest row of the lookup's cache that an order was given, in ms. */
  oldestTierMs = 0

  take(records: readonly { readonly data: Uint8Array }[]): void {
    for (const { data } of records) {
      const order = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString()) as EnrichedOrder
      this.#numbers.add(Number(order.order.slice('order-'.length)))
      if (!isRight(order)) this.wrong += 1
      if (order.priceList !== undefined) this.priceLists.add(order.priceList)
      this.oldestTierMs = Math.max(this.oldestTierMs, order.tierAgeMs)
    }
  }

  get count(): number {
    return this.#numbers.size
  }
}

function isRight(enriched: EnrichedOrder): boolean {
  const { country, countryName, vatPercent, article, priceList, priceCents: cents, customer, tier } = enriched
  const known = countries.get(country)
  return (
    countryName === known?.name &&
    vatPercent === known?.vatPercent &&
    priceList !== undefined &&
    cents === priceCents(article, priceList) &&
    tier === customerOf(customer)?.tier
  )
}
