/** Keeps account of every payment: what was sent, and what came out where. */
import type { Payment, RejectedPayment, ValidatedPayment } from '../../../functions/payments/schema.ts'
import { deadLetterOutput } from '../../../lib/local/run/application.ts'
import type { DemoRecord } from '../input.ts'

type Kind = 'validated' | 'rejected' | 'dead letter'

export class Books {
  sent = 0
  repeats = 0
  readonly counts: Record<Kind, number> = { validated: 0, rejected: 0, 'dead letter': 0 }
  readonly #came = new Map<number, Kind>()

  /** The next payments to send. */
  next(count: number): readonly DemoRecord[] {
    const records = Array.from({ length: count }, (_, index) => recordOf(this.sent + index))
    this.sent += count
    return records
  }

  /** Takes what an output stream holds. */
  take(output: string, records: readonly { readonly data: Uint8Array }[]): void {
    for (const { data } of records) {
      const value = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString())
      if (output === deadLetterOutput) this.#note('dead letter', numberInPayload(value.payload))
      else this.#note(output === 'payments-rejected' ? 'rejected' : 'validated', numberOf(value))
    }
  }

  /** Takes what the settlement service was given. */
  takeSettled(path: string, values: readonly unknown[]): void {
    for (const value of values) {
      this.#note(path === '/rejected' ? 'rejected' : 'validated', numberOf(value as ValidatedPayment))
    }
  }

  #note(kind: Kind, number: number): void {
    if (this.#came.has(number)) this.repeats += 1
    else this.counts[kind] += 1
    this.#came.set(number, kind)
  }

  get lost(): number {
    return this.sent - this.#came.size
  }

  /** Payments that came out elsewhere than they should. */
  get misplaced(): number {
    return [...this.#came].filter(([number, kind]) => kind !== expectedKind(number)).length
  }
}

const accounts = 50_000
const currencies = ['EUR', 'USD', 'GBP', 'CHF', 'JPY', 'KWD']

/** One in 50 has no amount, one in 100 a currency that nobody knows, one in 1,000 is no payment at all. */
function expectedKind(number: number): Kind {
  if (number % 1_000 === 7) return 'dead letter'
  return number % 50 === 3 || number % 100 === 5 ? 'rejected' : 'validated'
}

function recordOf(number: number): DemoRecord {
  const account = `account-${number % accounts}`
  const payment: Payment = {
    payment: `payment-${number}`,
    account,
    amountMinor: number % 50 === 3 ? 0 : 1 + ((number * 37) % 500_000),
    currency: number % 100 === 5 ? 'XXX' : (currencies[number % currencies.length] ?? 'EUR'),
  }
  const value = expectedKind(number) === 'dead letter' ? { ...payment, amountMinor: 'a lot' } : payment
  return { partitionKey: account, value }
}

const numberOf = ({ payment }: ValidatedPayment | RejectedPayment): number => Number(payment.slice('payment-'.length))

const numberInPayload = (payload: string): number =>
  numberOf(JSON.parse(Buffer.from(payload, 'base64').toString()) as ValidatedPayment)
