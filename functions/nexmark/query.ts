/** What every query begins with: a topology, the events, the bids among them, and sinks for results and late bids. */
import { epochMs, type SinkHandle, type SourceStream, type Stream, seconds, Topology } from '../../lib/index.ts'
import { type Bid, NexmarkEvent } from './events.ts'

export interface Query<Result> {
  readonly app: Topology
  readonly events: SourceStream<NexmarkEvent, NexmarkEvent>
  readonly bids: Stream<Bid>
  readonly results: SinkHandle<Result>
}

/** A query with windows. */
export interface WindowQuery<Result> extends Query<Result> {
  /** What comes later than event times may: it is in no result. */
  readonly late: SinkHandle<unknown>
}

/** Begins a query. Event times may trail the newest one by four seconds, as in the original. */
export function nexmark<Result>(query: string): Query<Result> {
  const app = new Topology(`nexmark-${query}`)
  const events = app.source('events', NexmarkEvent, {
    eventTime: epochMs(({ eventTime }) => eventTime),
    outOfOrderness: seconds(4),
  })
  const bids = events.filter((event): event is Bid => event.type === 'bid')
  return { app, events, bids, results: app.sink<Result>('results') }
}

/** Begins a query with windows. */
export function nexmarkWindows<Result>(query: string): WindowQuery<Result> {
  const begun = nexmark<Result>(query)
  return { ...begun, late: begun.app.sink<unknown>('late') }
}
