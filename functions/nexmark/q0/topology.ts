/** q0, pass-through: every bid, without channel and url. */
import type { Duration, Topology } from '../../../lib/index.ts'
import { nexmark } from '../query.ts'

export interface Result {
  readonly auction: number
  readonly bidder: number
  readonly price: number
  readonly dateTime: number
  readonly extra: string
}

export function q0(outOfOrderness: Duration): Topology {
  const { app, bids, results } = nexmark<Result>('q0', outOfOrderness)
  bids
    .map(({ auction, bidder, price, eventTime, extra }) => ({ auction, bidder, price, dateTime: eventTime, extra }))
    .to(results)
  return app
}
