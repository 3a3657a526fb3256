/** q11, sessions: the bids of a bidder belong together while the next one follows in less than ten seconds. */
import { count, type Duration, milliseconds, seconds, session, type Topology } from '../../../lib/index.ts'
import { nexmarkWindows } from '../query.ts'

export interface Result {
  readonly bidder: number
  readonly bid_count: number
  /** Time of the first bid. */
  readonly starttime: number
  /** Ten seconds behind the time of the last bid. */
  readonly endtime: number
}

export function q11(outOfOrderness: Duration): Topology {
  const { app, bids, results, late } = nexmarkWindows<Result>('q11', outOfOrderness)
  const sessions = bids
    .map(({ bidder }) => bidder)
    .keyBy('by-bidder', String)
    .window(session(seconds(10), { grace: milliseconds(0) }))
    .aggregate('bids-per-session', count(), { emit: 'final' })

  sessions.results
    .map(({ key, window, value }) => ({
      bidder: Number(key),
      bid_count: value,
      starttime: window.startMs,
      endtime: window.endMs,
    }))
    .to(results)
  sessions.late.to(late)
  return app
}
