/** Per-user aggregate: what each customer ordered so far. Of a batch only the last result of each customer is published. */
import * as z from 'zod'
import { Topology } from '../../../lib/index.ts'

export const Purchase = z.object({ customer: z.string().min(1), cents: z.int().positive() })
export type Purchase = z.infer<typeof Purchase>
export interface CustomerTotals {
  readonly customer: string
  readonly purchases: number
  readonly meanCents: number
  readonly largestCents: number
}

export const userAggregateApp = new Topology('user-aggregate')
export const purchases = userAggregateApp.source('purchases', Purchase)
export const customerTotals = userAggregateApp.sink<CustomerTotals>('customer-totals', { key: (t) => t.customer })

purchases
  .keyBy('by-customer', ({ customer }) => customer)
  .aggregate(
    'totals',
    {
      init: () => ({ purchases: 0, cents: 0, largestCents: 0 }),
      add: (sum, { cents }) => ({
        purchases: sum.purchases + 1,
        cents: sum.cents + cents,
        largestCents: Math.max(sum.largestCents, cents),
      }),
      result: ({ cents, ...sum }) => ({ ...sum, meanCents: cents / sum.purchases }),
    },
    { emit: 'per-batch' },
  )
  .map((totals, { key = '' }) => ({ customer: key, ...totals }))
  .to(customerTotals)
