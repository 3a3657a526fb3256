/** What the payments topology reads and writes. Amounts are whole minor units, such as cents: money has no fractions here. */
import * as z from 'zod'

export const Payment = z.object({
  payment: z.string().min(1),
  account: z.string().min(1),
  /** In the currency's minor unit: 1999 is 19.99 USD, or 1,999 JPY. */
  amountMinor: z.int(),
  /** ISO 4217, such as `USD`. */
  currency: z.string().length(3),
})
export type Payment = z.infer<typeof Payment>

export interface ValidatedPayment extends Payment {
  readonly amountEuroCents: number
}

export type RejectionReason = 'amount-not-positive' | 'amount-too-high' | 'unknown-currency'

/** A well-formed payment that cannot be accepted. */
export interface RejectedPayment {
  readonly payment: string
  readonly reason: RejectionReason
  /** The reason in words, with the value. */
  readonly message: string
  readonly original: Payment
}
