/** q14, calculation: bids of a middling converted price, with the part of the day and how often their text has a "c". */
import type { Duration, Topology } from '../../../lib/index.ts'
import { converted, convertedThousandths } from '../currency.ts'
import { nexmark } from '../query.ts'

export interface Result {
  readonly auction: number
  readonly bidder: number
  /** A decimal with three places. */
  readonly price: string
  readonly bidTimeType: 'dayTime' | 'nightTime' | 'otherTime'
  readonly dateTime: number
  readonly extra: string
  readonly c_counts: number
}

/** Both bounds are left out. */
const bounds = { aboveThousandths: 1_000_000_000, belowThousandths: 50_000_000_000 }

function isMiddling(price: number): boolean {
  const thousandths = convertedThousandths(price)
  return thousandths > bounds.aboveThousandths && thousandths < bounds.belowThousandths
}

const hourMs = 3_600_000
const hoursPerDay = 24

function timeType(atMs: number): Result['bidTimeType'] {
  const hour = (((Math.floor(atMs / hourMs) % hoursPerDay) + hoursPerDay) % hoursPerDay) as number
  if (hour >= 8 && hour <= 18) return 'dayTime'
  return hour >= 20 || hour <= 6 ? 'nightTime' : 'otherTime'
}

function countOfC(text: string): number {
  let count = 0
  for (let at = text.indexOf('c'); at !== -1; at = text.indexOf('c', at + 1)) count++
  return count
}

export function q14(outOfOrderness: Duration): Topology {
  const { app, bids, results } = nexmark<Result>('q14', outOfOrderness)
  bids
    .filter(({ price }) => isMiddling(price))
    .map(({ auction, bidder, price, eventTime, extra }) => ({
      ...{ auction, bidder },
      price: converted(price),
      bidTimeType: timeType(eventTime),
      dateTime: eventTime,
      extra,
      c_counts: countOfC(extra),
    }))
    .to(results)
  return app
}
