/** q2, selection: the bids on auctions whose id is divisible by 123. */
import { nexmark } from '../query.ts'

export interface Result {
  readonly auction: number
  readonly price: number
}

export const q2 = nexmark<Result>('q2')

q2.bids
  .filter(({ auction }) => auction % 123 === 0)
  .map(({ auction, price }) => ({ auction, price }))
  .to(q2.results)
