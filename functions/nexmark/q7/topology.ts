/**
 * q7, highest bid: of every ten seconds, the bids with the largest price. The first stage finds the largest of each of a few
 * parts of the bids, so that the one key of the second stage sees few of them.
 */
import {
  type CustomAggregation,
  type Duration,
  milliseconds,
  seconds,
  type Topology,
  tumbling,
} from '../../../lib/index.ts'
import type { Bid } from '../events.ts'
import { nexmarkWindows } from '../query.ts'

export interface Result {
  readonly auction: number
  readonly bidder: number
  readonly price: number
  readonly dateTime: number
  readonly extra: string
}

/** In as many parts the first stage runs: a part is all bids on some auctions. */
const parts = 16

const windows = tumbling(seconds(10), { grace: milliseconds(0) })

/** The bids of the largest price so far: plain data. */
type Row = { readonly [field in keyof Result]: Result[field] }
type Highest = { readonly price: number; readonly bids: readonly Row[] }

const none: Highest = { price: Number.MIN_SAFE_INTEGER, bids: [] }

function higher(a: Highest, b: Highest): Highest {
  if (a.price !== b.price) return a.price > b.price ? a : b
  return { price: a.price, bids: [...a.bids, ...b.bids] }
}

const rowOf = ({ auction, bidder, price, eventTime, extra }: Bid): Row => ({
  auction,
  bidder,
  price,
  dateTime: eventTime,
  extra,
})

/** Bids of one price are in the order of what they say, so that it does not depend on which came first. */
function inOrder(bids: readonly Row[]): readonly Row[] {
  return [...bids].sort(
    (a, b) => a.dateTime - b.dateTime || a.auction - b.auction || a.bidder - b.bidder || (a.extra < b.extra ? -1 : 1),
  )
}

const highestBids: CustomAggregation<Row, Highest, Highest> = {
  init: () => none,
  // Most bids are lower: they must cost nothing.
  add: (before, bid) => (bid.price < before.price ? before : higher(before, { price: bid.price, bids: [bid] })),
  merge: higher,
  result: (highest) => highest,
}

/** The highest bids of one part in the window of that end. */
interface PartHighest {
  readonly endtime: number
  readonly highest: Highest
}

const highestOfParts: CustomAggregation<PartHighest, Highest, readonly Row[]> = {
  init: () => none,
  add: (before, { highest }) => higher(before, highest),
  merge: higher,
  result: ({ bids }) => inOrder(bids),
}

export function q7(outOfOrderness: Duration): Topology {
  const { app, bids, results, late } = nexmarkWindows<Result>('q7', outOfOrderness)
  const perPart = bids
    .map(rowOf)
    .keyBy('by-part', ({ auction }) => String(Math.abs(auction % parts)), { slots: parts })
    .window(windows)
    .aggregate('highest-of-part', highestBids, { emit: 'final' })
  const perWindow = perPart.results
    .map(({ window, value }) => ({ endtime: window.endMs, highest: value }))
    // A key for each window: however many are open at a time, none has more to keep.
    .keyBy('by-window', ({ endtime }) => String(endtime), { slots: 1 })
    .window(windows)
    .aggregate('highest-of-all', highestOfParts, { emit: 'final' })
  perWindow.results
    .flatMap(({ value }) =>
      // A state's fields come back in the order of their names.
      value.map(({ auction, bidder, price, dateTime, extra }) => ({ auction, bidder, price, dateTime, extra })),
    )
    .to(results)
  perPart.late.to(late)
  perWindow.late.to(late)
  return app
}
