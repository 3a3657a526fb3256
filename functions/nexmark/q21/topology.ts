/** q21, channel id: of the four large channels by their name, of the others by their url; bids without either are left out. */
import type { Duration, Topology } from '../../../lib/index.ts'
import { nexmark } from '../query.ts'

export interface Result {
  readonly auction: number
  readonly bidder: number
  readonly price: number
  readonly channel: string
  readonly channel_id: string
}

const idsByName: ReadonlyMap<string, string> = new Map([
  ['apple', '0'],
  ['google', '1'],
  ['facebook', '2'],
  ['baidu', '3'],
])

const idInUrl = /&channel_id=([^&]*)/

const channelIdOf = (channel: string, url: string): string | undefined =>
  idsByName.get(channel.toLowerCase()) ?? idInUrl.exec(url)?.[1]

export function q21(outOfOrderness: Duration): Topology {
  const { app, bids, results } = nexmark<Result>('q21', outOfOrderness)
  bids
    .flatMap(({ auction, bidder, price, channel, url }) => {
      const id = channelIdOf(channel, url)
      return id === undefined ? [] : [{ auction, bidder, price, channel, channel_id: id }]
    })
    .to(results)
  return app
}
