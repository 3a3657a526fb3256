/** Validates payments, converts them to euro and publishes each to the validated or the rejected ones. */
import { otherwise, staticTable, Topology } from '../../lib/index.ts'
import { euroCents, rates } from './rates.ts'
import { Payment, type RejectedPayment, type RejectionReason, type ValidatedPayment } from './schema.ts'

/** A million euro: what is above it is for a person to look at. */
const highestEuroCents = 100_000_000

export const paymentsApp = new Topology('payments')

export const payments = paymentsApp.source('payments', Payment)
// Kafka would call them payment.validated and payment.rejected; names in a topology are words with dashes.
export const paymentsValidated = paymentsApp.sink<ValidatedPayment>('payments-validated', { key: (p) => p.account })
export const paymentsRejected = paymentsApp.sink<RejectedPayment>('payments-rejected', {
  key: ({ original }) => original.account,
})

const { rejected, validated } = payments
  .enrich({
    from: staticTable('rates', () => rates),
    key: ({ currency }) => currency,
    join: (payment, rate): ValidatedPayment | RejectedPayment => {
      const { amountMinor, currency } = payment
      if (amountMinor <= 0) return reject(payment, 'amount-not-positive', `the amount ${amountMinor} is not above 0`)
      if (!rate) return reject(payment, 'unknown-currency', `there is no rate for ${currency}`)
      const amountEuroCents = euroCents(amountMinor, rate)
      if (amountEuroCents <= highestEuroCents) return { ...payment, amountEuroCents }
      return reject(payment, 'amount-too-high', `${amountEuroCents} euro cents are above ${highestEuroCents}`)
    },
  })
  .branch({ rejected: isRejected, validated: otherwise })

validated.to(paymentsValidated)
rejected.to(paymentsRejected)

function reject(original: Payment, reason: RejectionReason, message: string): RejectedPayment {
  return { payment: original.payment, reason, message, original }
}

function isRejected(result: ValidatedPayment | RejectedPayment): result is RejectedPayment {
  return 'reason' in result
}
