/** q1, currency: every bid with its price in another currency. */
import type { Duration, Topology } from '../../../lib/index.ts'
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

export function q1(outOfOrderness: Duration): Topology {
  const { app, bids, results } = nexmark<Result>('q1', outOfOrderness)
  bids
    .map(({ auction, bidder, price, eventTime, extra }) => ({
      ...{ auction, bidder },
      price: converted(price),
      dateTime: eventTime,
      extra,
    }))
    .to(results)
  return app
}
