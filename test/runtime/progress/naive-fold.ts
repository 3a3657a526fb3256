/**
 * The fold of the protocol's model over plain data: positions are whole numbers, and what was read of an upstream in a slot
 * is the set of all positions that were claimed, so nothing is ever forgotten. It knows nothing of the runtime's code.
 */
export type State = 'open' | 'idle' | 'closed'
export type Span = readonly [previous: number, last: number]
export const never = Number.NEGATIVE_INFINITY

export interface PlainFrame {
  readonly kind: 'frame'
  readonly upstream: string
  readonly slot: number
  readonly mark: number
  readonly records: readonly number[]
  readonly covers: readonly Span[]
}

export interface PlainControl {
  readonly kind: 'control'
  readonly from: 'announcer' | 'stage'
  readonly slot: number
  readonly news: readonly {
    readonly upstream: string
    readonly state: State
    readonly mark: number
    readonly last: readonly (readonly [slot: number, position: number])[]
  }[]
}

export interface PlainRedrive {
  readonly kind: 'redrive'
  readonly slot: number
  readonly records: readonly number[]
}

export interface Garbage {
  readonly kind: 'garbage'
  readonly slot: number
}

export type PlainEntry = PlainFrame | PlainControl | PlainRedrive | Garbage

export interface PlainLine {
  readonly number: number
  readonly watermark: number
  readonly record: number | undefined
  readonly overtaken: boolean
  readonly slot: number
  readonly failed: boolean
}

/** What was read of one upstream in one slot. */
interface Seen {
  readonly claimed: ReadonlySet<number>
  readonly high: number
}

const blank: Seen = { claimed: new Set(), high: 0 }

const isGap = ({ claimed, high }: Seen, position: number) => position <= high && !claimed.has(position)
const gapsIn = (seen: Seen) => Array.from({ length: seen.high }, (_, i) => i + 1).filter((p) => isGap(seen, p))

function claim(seen: Seen, [previous, last]: Span): Seen {
  const positions = Array.from({ length: last - previous }, (_, i) => previous + 1 + i)
  return { claimed: new Set([...seen.claimed, ...positions]), high: Math.max(seen.high, last) }
}

export class NaiveFold {
  readonly slots: readonly number[]
  number = 0
  watermark = never
  known = false
  upstreams = new Map<string, { state: State; mark: number }>()
  seen = new Map<string, Seen>()
  dropped = 0

  constructor(slots: readonly number[]) {
    this.slots = slots
  }

  static merge(parents: readonly NaiveFold[], slots: readonly number[]): NaiveFold {
    const child = new NaiveFold(slots)
    child.number = Math.max(0, ...parents.map(({ number }) => number))
    child.watermark = Math.max(never, ...parents.map(({ watermark }) => watermark))
    child.known = parents.some(({ known }) => known)
    for (const name of new Set(parents.flatMap(({ upstreams }) => [...upstreams.keys()]))) {
      const both = parents.flatMap(({ upstreams }) => upstreams.get(name) ?? [])
      const state = (['closed', 'open', 'idle'] as const).find((s) => both.some((b) => b.state === s)) ?? 'idle'
      child.upstreams.set(name, { state, mark: Math.max(...both.map(({ mark }) => mark)) })
    }
    for (const parent of parents) {
      for (const [name, seen] of parent.seen) {
        if (slots.includes(Number(name.split('/')[0]))) child.seen.set(name, seen)
      }
    }
    return child
  }

  fold(entry: PlainEntry): PlainLine[] {
    const taken = this.#take(entry)
    const marks = [...this.upstreams.values()].filter(({ state }) => state === 'open').map(({ mark }) => mark)
    if (marks.length > 0 && this.known) this.watermark = Math.max(this.watermark, Math.min(...marks))
    const failed = entry.kind === 'garbage'
    const slot = failed ? (this.slots[0] ?? 0) : entry.slot
    const line = (record: number | undefined, overtaken: boolean): PlainLine => {
      this.number++
      return { number: this.number, watermark: this.watermark, record, overtaken, slot, failed }
    }
    if (entry.kind === 'control' || entry.kind === 'garbage' || entry.records.length === 0)
      return [line(undefined, false)]
    return entry.records.map((record) => {
      const isNew = taken.news.includes(record)
      if (!isNew) this.dropped++
      return line(isNew ? record : undefined, isNew && taken.overtaken.includes(record))
    })
  }

  #take(entry: PlainEntry): { news: readonly number[]; overtaken: readonly number[] } {
    if (entry.kind === 'control') this.#control(entry)
    if (entry.kind === 'redrive') return { news: entry.records, overtaken: [] }
    if (entry.kind !== 'frame') return { news: [], overtaken: [] }
    const name = `${entry.slot}/${entry.upstream}`
    const seen = this.seen.get(name) ?? blank
    if (this.upstreams.get(entry.upstream)?.state === 'closed' && gapsIn(seen).length === 0) {
      return { news: [], overtaken: [] }
    }
    this.#note(entry.upstream, 'open', entry.mark)
    const news = entry.records.filter((p) => !seen.claimed.has(p))
    this.seen.set(name, entry.covers.reduce(claim, seen))
    return { news, overtaken: news.filter((p) => p <= seen.high) }
  }

  #control({ from, news }: PlainControl): void {
    for (const { upstream, state, mark, last } of news) {
      this.#note(upstream, state, mark)
      for (const [slot, position] of last) {
        if (!this.slots.includes(slot)) continue
        const name = `${slot}/${upstream}`
        const seen = this.seen.get(name) ?? blank
        this.seen.set(name, { claimed: seen.claimed, high: Math.max(seen.high, position) })
      }
    }
    if (from === 'announcer') this.known = true
  }

  #note(upstream: string, state: State, mark: number): void {
    const old = this.upstreams.get(upstream) ?? { state: 'open' as const, mark: never }
    const stays = old.state === 'closed' || (state === 'idle' && old.mark > never)
    this.upstreams.set(upstream, { state: stays ? old.state : state, mark: Math.max(old.mark, mark) })
  }
}
