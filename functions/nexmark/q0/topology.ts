/** q0, pass-through: every bid, without channel and url. */
import { nexmark } from '../query.ts'

export interface Result {
  readonly auction: number
  readonly bidder: number
  readonly price: number
  readonly dateTime: number
  readonly extra: string
}

export const q0 = nexmark<Result>('q0')

q0.bids
  .map(({ auction, bidder, price, eventTime, extra }) => ({ auction, bidder, price, dateTime: eventTime, extra }))
  .to(q0.results)
