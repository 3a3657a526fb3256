/** q22, url directories: the three directories behind the host. */
import type { Duration, Topology } from '../../../lib/index.ts'
import { nexmark } from '../query.ts'

export interface Result {
  readonly auction: number
  readonly bidder: number
  readonly price: number
  readonly channel: string
  /** Null where the url has no such directory. */
  readonly dir1: string | null
  readonly dir2: string | null
  readonly dir3: string | null
}

export function q22(outOfOrderness: Duration): Topology {
  const { app, bids, results } = nexmark<Result>('q22', outOfOrderness)
  bids
    .map(({ auction, bidder, price, channel, url }) => {
      const [, , , dir1 = null, dir2 = null, dir3 = null] = url.split('/', 6)
      return { auction, bidder, price, channel, dir1, dir2, dir3 }
    })
    .to(results)
  return app
}
