/** What happened in a run, one line per event, for the eyes of whoever looks for a cause. */

export interface TraceEvent {
  readonly step: number
  /** Virtual time since the run began, in ms. */
  readonly atMs: number
  readonly who: string
  readonly what: string
}

/** Keeps events while it is on; off, it costs nothing, since details are only made when they are kept. */
export class Trace {
  readonly isOn: boolean
  readonly #events: TraceEvent[] = []

  constructor(isOn: boolean) {
    this.isOn = isOn
  }

  add(event: TraceEvent): void {
    if (this.isOn) this.#events.push(event)
  }

  /** The last events, oldest first. */
  last(count: number): readonly TraceEvent[] {
    return this.#events.slice(-count)
  }
}

/** Events in columns: step, minutes:seconds.ms of virtual time, who, what. */
export function formatTrace(events: readonly TraceEvent[]): string {
  const widestStep = Math.max(0, ...events.map(({ step }) => String(step).length))
  const widestName = Math.max(0, ...events.map(({ who }) => who.length))
  return events
    .map(({ step, atMs, who, what }) =>
      [String(step).padStart(widestStep), timeText(atMs), who.padEnd(widestName), what].join('  '),
    )
    .join('\n')
}

/** Virtual time such as `12:04.250`. */
export function timeText(ms: number): string {
  const minutes = Math.floor(ms / 60_000)
  const seconds = ((ms % 60_000) / 1_000).toFixed(3)
  return `${String(minutes).padStart(3)}:${seconds.padStart(6, '0')}`
}
