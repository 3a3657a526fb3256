/** q12, bids per bidder and ten seconds. The original has windows of the time of arrival; these are of event time. */
import { count, type Duration, milliseconds, seconds, type Topology, tumbling } from '../../../lib/index.ts'
import { nexmarkWindows } from '../query.ts'

export interface Result {
  readonly bidder: number
  readonly bid_count: number
  readonly starttime: number
  readonly endtime: number
}

export function q12(outOfOrderness: Duration): Topology {
  const { app, bids, results, late } = nexmarkWindows<Result>('q12', outOfOrderness)
  const perBidder = bids
    .map(({ bidder }) => bidder)
    .keyBy('by-bidder', String)
    .window(tumbling(seconds(10), { grace: milliseconds(0) }))
    .aggregate('bids-per-bidder', count(), { emit: 'final' })

  perBidder.results
    .map(({ key, window, value }) => ({
      bidder: Number(key),
      bid_count: value,
      starttime: window.startMs,
      endtime: window.endMs,
    }))
    .to(results)
  perBidder.late.to(late)
  return app
}
