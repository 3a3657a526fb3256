/** What every query begins with: a topology, the events, the bids among them, and sinks for results and late bids. */
import { type Duration, epochMs, type SinkHandle, type SourceStream, type Stream, Topology } from '../../lib/index.ts'
import { type Bid, NexmarkEvent } from './events.ts'

/** Makes the topology of a query over events that trail the newest one by no more than so much. */
export type MakeQuery = (outOfOrderness: Duration) => Topology

export interface Query<Result> {
  readonly app: Topology
  readonly events: SourceStream<NexmarkEvent, NexmarkEvent>
  readonly bids: Stream<Bid>
  readonly results: SinkHandle<Result>
}

/** A query with windows. */
export interface WindowQuery<Result> extends Query<Result> {
  /** What trails the newest event by more than was said: it is in no result. */
  readonly late: SinkHandle<unknown>
}

/** Any time that an event can tell is believed: files are not only of our days. */
const anyTime = { from: '0000-01-01', before: '9999-12-31' }

/** Begins a query. */
export function nexmark<Result>(query: string, outOfOrderness: Duration): Query<Result> {
  const app = new Topology(`nexmark-${query}`)
  const events = app.source('events', NexmarkEvent, {
    eventTime: epochMs(({ eventTime }) => eventTime, anyTime),
    outOfOrderness,
  })
  const bids = events.filter((event): event is Bid => event.type === 'bid')
  return { app, events, bids, results: app.sink<Result>('results') }
}

/** Begins a query with windows. */
export function nexmarkWindows<Result>(query: string, outOfOrderness: Duration): WindowQuery<Result> {
  const begun = nexmark<Result>(query, outOfOrderness)
  return { ...begun, late: begun.app.sink<unknown>('late') }
}
