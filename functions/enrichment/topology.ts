/** Enriches orders in the three ways that a step without state has: a static table, a refreshed one, a batched and cached lookup. */
import * as z from 'zod'
import { lookup, refreshedTable, seconds, staticTable, Topology } from '../../lib/index.ts'
import { countries } from './countries.ts'
import { type Customer, fetchCustomers, fetchPrices } from './reference-data.ts'

export const Order = z.object({
  order: z.string().min(1),
  customer: z.string().min(1),
  article: z.string().min(1),
  country: z.string().length(2),
})
export type Order = z.infer<typeof Order>

export interface EnrichedOrder extends Order {
  readonly countryName: string | undefined
  readonly vatPercent: number | undefined
  readonly priceCents: number | undefined
  /** Which price list it was, and how old this function's copy of it was. */
  readonly priceList: number | undefined
  readonly priceAgeMs: number
  readonly tier: Customer['tier'] | undefined
  readonly tierAgeMs: number
}

export const enrichmentApp = new Topology('enrichment')

export const orders = enrichmentApp.source('orders', Order)
export const enrichedOrders = enrichmentApp.sink<EnrichedOrder>('orders-enriched', { key: ({ order }) => order })

orders
  .enrich({
    from: staticTable('countries', () => countries),
    key: ({ country }) => country,
    join: (order, country) => ({ ...order, countryName: country?.name, vatPercent: country?.vatPercent }),
  })
  .enrich({
    from: refreshedTable('prices', { load: fetchPrices, every: seconds(1), maxStaleness: seconds(10) }),
    key: ({ article }) => article,
    join: (order, price, { stalenessMs }) => ({
      ...order,
      priceCents: price?.cents,
      priceList: price?.list,
      priceAgeMs: stalenessMs,
    }),
  })
  .enrich({
    from: lookup('customers', { load: fetchCustomers, ttl: seconds(5), maxEntries: 2_000 }),
    key: ({ customer }) => customer,
    join: (order, customer, { stalenessMs }) => ({ ...order, tier: customer?.tier, tierAgeMs: stalenessMs }),
  })
  .to(enrichedOrders)
