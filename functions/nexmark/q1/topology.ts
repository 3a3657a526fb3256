/** q1, currency: every bid with its price in another currency. */
import { converted } from '../currency.ts'
import { nexmark } from '../query.ts'

export interface Result {
  readonly auction: number
  readonly bidder: number
  /** A decimal with three places. */
  readonly price: string
  readonly dateTime: number
  readonly extra: string
}

export const q1 = nexmark<Result>('q1')

q1.bids
  .map(({ auction, bidder, price, eventTime, extra }) => ({
    ...{ auction, bidder },
    price: converted(price),
    dateTime: eventTime,
    extra,
  }))
  .to(q1.results)
