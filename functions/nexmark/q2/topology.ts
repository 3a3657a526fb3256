/** q2, selection: the bids on auctions whose id is divisible by 123. */
import type { Duration, Topology } from '../../../lib/index.ts'
import { nexmark } from '../query.ts'

export interface Result {
  readonly auction: number
  readonly price: number
}

export function q2(outOfOrderness: Duration): Topology {
  const { app, bids, results } = nexmark<Result>('q2', outOfOrderness)
  bids
    .filter(({ auction }) => auction % 123 === 0)
    .map(({ auction, price }) => ({ auction, price }))
    .to(results)
  return app
}
