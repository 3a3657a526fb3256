/** What every contender of the stateless benchmark does to a record: the same schema, the same map, the same key. */
import { z } from 'zod'
import { Topology } from '../../lib/index.ts'

export const Payment = z.object({
  id: z.string(),
  account: z.string(),
  amount: z.number(),
  currency: z.enum(['EUR', 'USD', 'GBP']),
  at: z.number(),
  note: z.string(),
})
export type Payment = z.infer<typeof Payment>

const rates = { EUR: 1, USD: 0.92, GBP: 1.17 }

/** The step under test: plain arithmetic and a new object. */
export function convert(payment: Payment) {
  return {
    id: payment.id,
    account: payment.account,
    euros: Math.round(payment.amount * rates[payment.currency] * 100) / 100,
    at: payment.at,
    note: payment.note,
  }
}
export type Converted = ReturnType<typeof convert>

export const app = new Topology('bench')
export const payments = app.source('payments', Payment)
export const converted = app.sink<Converted>('converted', { key: (payment) => payment.id })
payments.map(convert).to(converted)

/** Payments whose JSON has about `bytes` bytes, all different. */
export function paymentsOf(count: number, bytes: number): Payment[] {
  const currencies = ['EUR', 'USD', 'GBP'] as const
  return Array.from({ length: count }, (_, i) => {
    const payment: Payment = {
      id: `payment-${String(i).padStart(8, '0')}`,
      account: `account-${i % 997}`,
      amount: Math.round(((i * 7919) % 100_000) + i) / 100,
      currency: currencies[i % 3] as 'EUR',
      at: 1_767_225_600_000 + i,
      note: '',
    }
    const room = bytes - JSON.stringify(payment).length
    return { ...payment, note: 'the quick brown fox '.repeat(Math.ceil(room / 20)).slice(0, Math.max(0, room)) }
  })
}
