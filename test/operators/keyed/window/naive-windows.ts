/** Windows by their definitions, over all records at once: slow, and with no thought of slices, timers or the order of arrival. */
import { custom } from '../../../../lib/operators/aggregators/aggregator.ts'

export interface Arrival {
  readonly id: number
  readonly timeMs: number
  /** The larger of the record's own mark and the watermark at its number. */
  readonly limitMs: number
}

/** Texts `start-end` to the ids in the window, ascending. */
export type Contents = ReadonlyMap<string, readonly number[]>

export interface Naive {
  readonly late: readonly number[]
  readonly windows: Contents
}

const ascending = (a: number, b: number) => a - b

/** What a window holds, as an aggregator gathers it: the ids of its values, ascending. */
export const idsBy = <T>(idOf: (value: T) => number) =>
  custom<T, readonly number[], readonly number[]>({
    init: () => [],
    add: (all, value) => [...all, idOf(value)].sort(ascending),
    merge: (a, b) => [...a, ...b].sort(ascending),
    result: (all) => all,
  })

type Bounds = readonly [startMs: number, endMs: number]

/** `boundsOf` gives every window that holds a time. */
export function naiveFixed(
  arrivals: readonly Arrival[],
  graceMs: number,
  boundsOf: (timeMs: number) => readonly Bounds[],
): Naive {
  const windows = new Map<string, number[]>()
  const late: number[] = []
  for (const { id, timeMs, limitMs } of arrivals) {
    const inTime = boundsOf(timeMs).filter(([, endMs]) => endMs + graceMs > limitMs)
    if (inTime.length === 0) late.push(id)
    for (const [startMs, endMs] of inTime) {
      const name = `${startMs}-${endMs}`
      windows.set(
        name,
        [...(windows.get(name) ?? []), id].sort((a, b) => a - b),
      )
    }
  }
  return { late, windows }
}

/** Windows that begin at the multiples of `everyMs` since 1970. */
export function aligned(sizeMs: number, everyMs: number): (timeMs: number) => Bounds[] {
  return (timeMs) => {
    const bounds: Bounds[] = []
    for (let k = Math.floor((timeMs - sizeMs) / everyMs); k * everyMs <= timeMs; k += 1) {
      if (timeMs < k * everyMs + sizeMs) bounds.push([k * everyMs, k * everyMs + sizeMs])
    }
    return bounds
  }
}

/** The local day that holds a time, found by asking the calendar of the zone for the date of each quarter of an hour around it. */
export function localDays(zone: string): (timeMs: number) => Bounds[] {
  const calendar = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' })
  const quarterMs = 900_000
  const dates = new Map<number, string>()
  const dateOf = (quarter: number): string => {
    const date = dates.get(quarter) ?? calendar.format(quarter * quarterMs)
    dates.set(quarter, date)
    return date
  }
  return (timeMs) => {
    const quarter = Math.floor(timeMs / quarterMs)
    const date = dateOf(quarter)
    let [first, last] = [quarter, quarter]
    while (dateOf(first - 1) === date) first -= 1
    while (dateOf(last + 1) === date) last += 1
    return [[first * quarterMs, (last + 1) * quarterMs]]
  }
}

export function naiveSliding(arrivals: readonly Arrival[], graceMs: number, sizeMs: number): Naive {
  const isIn = ({ timeMs, limitMs }: Arrival, endMs: number) =>
    timeMs < endMs && timeMs >= endMs - sizeMs && endMs + graceMs > limitMs
  const accepted = arrivals.filter(({ timeMs, limitMs }) => timeMs + sizeMs + graceMs > limitMs)
  const ends = new Set<number>()
  for (const one of accepted) {
    if (isIn(one, one.timeMs + 1)) ends.add(one.timeMs + 1)
    if (accepted.some((other) => isIn(other, one.timeMs + 1 + sizeMs))) ends.add(one.timeMs + 1 + sizeMs)
  }
  const windows = new Map<string, number[]>()
  for (const endMs of ends) {
    const ids = accepted.filter((one) => isIn(one, endMs)).map(({ id }) => id)
    windows.set(`${endMs - sizeMs}-${endMs}`, ids)
  }
  return { late: arrivals.filter((one) => !accepted.includes(one)).map(({ id }) => id), windows }
}

export function naiveSessions(
  arrivals: readonly Arrival[],
  graceMs: number,
  gapMs: number,
  longestMs = Number.POSITIVE_INFINITY,
): Naive {
  const cut = (timeMs: number) =>
    longestMs === Number.POSITIVE_INFINITY ? longestMs : (Math.floor(timeMs / longestMs) + 1) * longestMs
  const endOf = (timeMs: number) => Math.min(timeMs + gapMs, cut(timeMs))
  const late: number[] = []
  const accepted: Arrival[] = []
  for (const one of arrivals) {
    if (endOf(one.timeMs) + graceMs > one.limitMs) accepted.push(one)
    else late.push(one.id)
  }
  accepted.sort((a, b) => a.timeMs - b.timeMs)
  const windows = new Map<string, number[]>()
  let session: Arrival[] = []
  const close = () => {
    if (session.length === 0) return
    const startMs = (session[0] as Arrival).timeMs
    const endMs = endOf((session.at(-1) as Arrival).timeMs)
    windows.set(
      `${startMs}-${endMs}`,
      session.map(({ id }) => id).sort((a, b) => a - b),
    )
    session = []
  }
  for (const one of accepted) {
    const before = session.at(-1)
    if (before !== undefined && one.timeMs >= endOf(before.timeMs)) close()
    session.push(one)
  }
  close()
  return { late, windows }
}
