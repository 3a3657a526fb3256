/**
 * Each query as one loop over the lines of the file, in one process, without partitions, frames, state that outlives the
 * process, or any other care: the limit of what the same work can reach here. Windows close as event time passes, with
 * the disorder that the topologies allow.
 */
import type { Bid, NexmarkEvent } from '../../functions/nexmark/events.ts'

/** Takes each result as a line of JSON. */
export type Take = (line: string) => void

/** What a query does with the events: `end` comes behind the last one. */
export interface Loop {
  event(event: NexmarkEvent): void
  end(): void
}

const disorderMs = 4_000
const windowMs = 10_000
const slideMs = 2_000
const gapMs = 10_000

/** Runs a loop over the lines of an event file. */
export function runByHand(loop: Loop, lines: readonly Buffer[]): void {
  for (const line of lines) loop.event(JSON.parse(line.toString()))
  loop.end()
}

const each = (step: (bid: Bid) => void): Loop => ({
  event: (event) => {
    if (event.type === 'bid') step(event)
  },
  end: () => undefined,
})

function decimal(price: number): string {
  const digits = String(price * 908).padStart(4, '0')
  return `${digits.slice(0, -3)}.${digits.slice(-3)}`
}

/** Tells when the watermark comes to a further multiple of a length. */
function ticking(everyMs: number, onBid: (bid: Bid) => void, close: (untilMs: number) => void): Loop {
  let largest = Number.NEGATIVE_INFINITY
  let closedMs = Number.NEGATIVE_INFINITY
  return {
    event(event) {
      if (event.type === 'bid') onBid(event)
      if (event.eventTime <= largest) return
      largest = event.eventTime
      const dueMs = Math.floor((largest - disorderMs) / everyMs) * everyMs
      if (dueMs <= closedMs) return
      close(dueMs)
      closedMs = dueMs
    },
    end: () => close(Number.POSITIVE_INFINITY),
  }
}

type Counts = Map<number, number>
const add = (counts: Counts, key: number, count = 1) => void counts.set(key, (counts.get(key) ?? 0) + count)

function q5(take: Take): Loop {
  const slices = new Map<number, Counts>()
  const emit = (starttime: number): void => {
    const counts: Counts = new Map()
    for (let slice = starttime; slice < starttime + windowMs; slice += slideMs) {
      for (const [auction, count] of slices.get(slice) ?? []) add(counts, auction, count)
    }
    let most = 0
    for (const count of counts.values()) most = Math.max(most, count)
    for (const [auction, num] of counts) {
      if (num === most) take(JSON.stringify({ auction, num, starttime, endtime: starttime + windowMs }))
    }
  }
  let next: number | undefined
  const close = (untilMs: number): void => {
    while (next !== undefined && next + windowMs <= untilMs && slices.size > 0) {
      emit(next)
      slices.delete(next)
      next += slideMs
    }
  }
  const onBid = ({ auction, eventTime }: Bid): void => {
    const slice = Math.floor(eventTime / slideMs) * slideMs
    next = Math.min(next ?? Number.POSITIVE_INFINITY, slice - windowMs + slideMs)
    const counts = slices.get(slice) ?? new Map()
    slices.set(slice, counts)
    add(counts, auction)
  }
  return ticking(slideMs, onBid, close)
}

function q7(take: Take): Loop {
  const best = new Map<number, Bid[]>()
  const onBid = (bid: Bid): void => {
    const start = Math.floor(bid.eventTime / windowMs) * windowMs
    const bids = best.get(start)
    const price = bids?.[0]?.price ?? Number.NEGATIVE_INFINITY
    if (bids === undefined || bid.price > price) best.set(start, [bid])
    else if (bid.price === price) bids.push(bid)
  }
  return ticking(windowMs, onBid, (untilMs) => {
    for (const [start, bids] of best) {
      if (start + windowMs > untilMs) continue
      best.delete(start)
      for (const { auction, bidder, price, eventTime, extra } of bids) {
        take(JSON.stringify({ auction, bidder, price, dateTime: eventTime, extra }))
      }
    }
  })
}

interface Session {
  starttime: number
  endtime: number
  count: number
}

function q11(take: Take): Loop {
  const open = new Map<number, Session[]>()
  const onBid = ({ bidder, eventTime }: Bid): void => {
    const sessions = open.get(bidder) ?? []
    const joined: Session = { starttime: eventTime, endtime: eventTime + gapMs, count: 1 }
    const others = sessions.filter((session) => {
      if (session.endtime <= joined.starttime || joined.endtime <= session.starttime) return true
      joined.starttime = Math.min(joined.starttime, session.starttime)
      joined.endtime = Math.max(joined.endtime, session.endtime)
      joined.count += session.count
      return false
    })
    open.set(bidder, [...others, joined])
  }
  return ticking(slideMs, onBid, (untilMs) => {
    for (const [bidder, sessions] of open) {
      const later = sessions.filter(({ endtime }) => endtime > untilMs)
      if (later.length === sessions.length) continue
      for (const { starttime, endtime, count } of sessions) {
        if (endtime <= untilMs) take(JSON.stringify({ bidder, bid_count: count, starttime, endtime }))
      }
      if (later.length === 0) open.delete(bidder)
      else open.set(bidder, later)
    }
  })
}

function q12(take: Take): Loop {
  const windows = new Map<number, Counts>()
  const onBid = ({ bidder, eventTime }: Bid): void => {
    const start = Math.floor(eventTime / windowMs) * windowMs
    const counts = windows.get(start) ?? new Map()
    windows.set(start, counts)
    add(counts, bidder)
  }
  return ticking(windowMs, onBid, (untilMs) => {
    for (const [starttime, counts] of windows) {
      if (starttime + windowMs > untilMs) continue
      windows.delete(starttime)
      for (const [bidder, count] of counts) {
        take(JSON.stringify({ bidder, bid_count: count, starttime, endtime: starttime + windowMs }))
      }
    }
  })
}

function timeType(atMs: number): string {
  const hour = new Date(atMs).getUTCHours()
  if (hour >= 8 && hour <= 18) return 'dayTime'
  return hour >= 20 || hour <= 6 ? 'nightTime' : 'otherTime'
}

function q14(take: Take): Loop {
  return each(({ auction, bidder, price, eventTime, extra }) => {
    if (price * 908 <= 1e9 || price * 908 >= 5e10) return
    const [bidTimeType, c_counts] = [timeType(eventTime), extra.split('c').length - 1]
    take(JSON.stringify({ auction, bidder, price: decimal(price), bidTimeType, dateTime: eventTime, extra, c_counts }))
  })
}

const channelIds: Readonly<Record<string, string>> = { apple: '0', google: '1', facebook: '2', baidu: '3' }

function q21(take: Take): Loop {
  return each(({ auction, bidder, price, channel, url }) => {
    const channel_id = channelIds[channel.toLowerCase()] ?? /&channel_id=([^&]*)/.exec(url)?.[1]
    if (channel_id !== undefined) take(JSON.stringify({ auction, bidder, price, channel, channel_id }))
  })
}

/** Makes the loop of each query. */
export const byHand: Readonly<Record<string, (take: Take) => Loop>> = {
  q0: (take) =>
    each(({ auction, bidder, price, eventTime, extra }) =>
      take(JSON.stringify({ auction, bidder, price, dateTime: eventTime, extra })),
    ),
  q1: (take) =>
    each(({ auction, bidder, price, eventTime, extra }) =>
      take(JSON.stringify({ auction, bidder, price: decimal(price), dateTime: eventTime, extra })),
    ),
  q2: (take) =>
    each(({ auction, price }) => {
      if (auction % 123 === 0) take(JSON.stringify({ auction, price }))
    }),
  q5,
  q7,
  q11,
  q12,
  q14,
  q21,
  q22: (take) =>
    each(({ auction, bidder, price, channel, url }) => {
      const [, , , dir1 = null, dir2 = null, dir3 = null] = url.split('/')
      take(JSON.stringify({ auction, bidder, price, channel, dir1, dir2, dir3 }))
    }),
}
