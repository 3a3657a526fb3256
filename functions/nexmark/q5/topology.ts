/**
 * q5, hot items: every two seconds, the auctions with the most bids of the last ten. The first stage counts per auction; the
 * second one finds the largest count of each window, which is all that ends with it.
 */
import { count, hopping, milliseconds, seconds, tumbling } from '../../../lib/index.ts'
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

export const q5 = nexmarkWindows<Result>('q5')

const perAuction = q5.bids
  .map(({ auction }) => auction)
  .keyBy('by-auction', String)
  .window(hopping(size, { every, grace }))
  .aggregate('bids-per-auction', count(), { emit: 'final' })

/** The largest count so far, and the auctions that reach it. */
type Hottest = { readonly num: number; readonly auctions: readonly number[] }

function hotter(a: Hottest, b: Hottest): Hottest {
  if (a.num !== b.num) return a.num > b.num ? a : b
  return { num: a.num, auctions: [...a.auctions, ...b.auctions] }
}

const hottest = perAuction.results
  .map(({ key, value }) => ({ auction: Number(key), num: value }))
  .keyBy('all-auctions', () => 'all', { slots: 1 })
  // One result of an auction's window comes every two seconds, at that window's end.
  .window(tumbling(every, { grace }))
  .aggregate(
    'hottest-auctions',
    {
      init: (): Hottest => ({ num: 0, auctions: [] }),
      add: (before, { auction, num }) => hotter(before, { num, auctions: [auction] }),
      merge: hotter,
      result: ({ num, auctions }) => ({ num, auctions: auctions.toSorted((a, b) => a - b) }),
    },
    { emit: 'final' },
  )

hottest.results
  .flatMap(({ window: { endMs }, value: { num, auctions } }) =>
    auctions.map((auction) => ({ auction, num, starttime: endMs - size.ms, endtime: endMs })),
  )
  .to(q5.results)
perAuction.late.to(q5.late)
hottest.late.to(q5.late)
