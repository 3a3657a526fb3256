/** Join key table: one stream keeps a row per customer, and the orders of another stream read it, in one keyed stage. */
import * as z from 'zod'
import { Topology, valueState } from '../../../lib/index.ts'

export const Customer = z.object({ customer: z.string().min(1), name: z.string(), country: z.string().length(2) })
export type Customer = z.infer<typeof Customer>
export const Order = z.object({ order: z.string().min(1), customer: z.string().min(1), cents: z.int() })
export type Order = z.infer<typeof Order>
export interface NamedOrder extends Order {
  /** Null where no row of the customer has come yet. */
  readonly name: string | null
  readonly country: string | null
}

export const joinTableApp = new Topology('join-table')
export const customers = joinTableApp.source('customers', Customer)
export const orders = joinTableApp.source('orders', Order)
export const namedOrders = joinTableApp.sink<NamedOrder>('named-orders', { key: ({ customer }) => customer })

customers
  .merge(orders)
  .keyBy('by-customer', ({ customer }) => customer)
  .process('join', {
    state: { row: valueState<Customer>() },
    step(value, { state }) {
      if (!('order' in value)) return state.row.set(value)
      const { name = null, country = null } = state.row.get() ?? {}
      return [{ ...value, name, country }]
    },
  })
  .to(namedOrders)
