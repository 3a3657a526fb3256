/**
 * q5, hot items: every two seconds, the auctions with the most bids of the last ten. The first stage counts per auction; the
 * second one finds the largest count of each window, which is all that ends with it.
 */
import {
  type CustomAggregation,
  count,
  type Duration,
  hopping,
  milliseconds,
  seconds,
  type Topology,
  tumbling,
} from '../../../lib/index.ts'
import { nexmarkWindows } from '../query.ts'

export interface Result {
  readonly auction: number
  readonly num: number
  readonly starttime: number
  readonly endtime: number
}

const size = seconds(10)
const every = seconds(2)
const grace = milliseconds(0)

/** The largest count so far, and the auctions that reach it. */
type Hottest = { readonly num: number; readonly auctions: readonly number[] }

function hotter(a: Hottest, b: Hottest): Hottest {
  if (a.num !== b.num) return a.num > b.num ? a : b
  return { num: a.num, auctions: [...a.auctions, ...b.auctions] }
}

interface Count {
  readonly auction: number
  readonly num: number
}

const hottest: CustomAggregation<Count, Hottest, Hottest> = {
  init: () => ({ num: 0, auctions: [] }),
  add: (before, { auction, num }) => hotter(before, { num, auctions: [auction] }),
  merge: hotter,
  result: ({ num, auctions }) => ({ num, auctions: [...auctions].sort((a, b) => a - b) }),
}

export function q5(outOfOrderness: Duration): Topology {
  const { app, bids, results, late } = nexmarkWindows<Result>('q5', outOfOrderness)
  const perAuction = bids
    .map(({ auction }) => auction)
    .keyBy('by-auction', String)
    .window(hopping(size, { every, grace }))
    .aggregate('bids-per-auction', count(), { emit: 'final' })
  const perWindow = perAuction.results
    .map(({ key, window, value }) => ({ auction: Number(key), num: value, endtime: window.endMs }))
    // A key for each window: however many are open at a time, none has more to keep.
    .keyBy('by-window', ({ endtime }) => String(endtime), { slots: 1 })
    // One result of an auction's window comes every two seconds, at that window's end.
    .window(tumbling(every, { grace }))
    .aggregate('hottest-auctions', hottest, { emit: 'final' })
  perWindow.results
    .flatMap(({ window: { endMs }, value: { num, auctions } }) =>
      auctions.map((auction) => ({ auction, num, starttime: endMs - size.ms, endtime: endMs })),
    )
    .to(results)
  perAuction.late.to(late)
  perWindow.late.to(late)
  return app
}
