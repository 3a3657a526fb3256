/** Where the days of a time zone begin, by the zone database that comes with the runtime. */
import type { WindowBounds } from './window.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

export class ZoneDays {
  readonly #format: Intl.DateTimeFormat

  /** Throws a RangeError or a TypeError for a zone that is none. */
  constructor(zone: string) {
    if (typeof zone !== 'string' || zone === '') throw new RangeError('a zone has a name')
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  }

  /** The day that holds the time. */
  dayOf(timeMs: number): WindowBounds {
    let day = Math.floor((timeMs + this.#offsetMs(timeMs)) / dayMs)
    let endMs = this.#startOf(day + 1)
    // A clock that is put back over midnight shows the day before once more: that hour belongs to the day that had begun.
    // And a zone that crosses the date line leaves a day out: it begins and ends at once.
    while (endMs <= timeMs) {
      day += 1
      endMs = this.#startOf(day + 1)
    }
    return { startMs: this.#startOf(day), endMs }
  }

  /** The first moment whose local date is that day, counted from 1970, or a later one. */
  #startOf(day: number): number {
    const localMs = day * dayMs
    const beforeMs = this.#offsetMs(localMs - 26 * hourMs)
    const afterMs = this.#offsetMs(localMs + 26 * hourMs)
    // The offset before a change comes first where midnight is there twice.
    const candidates = [localMs - beforeMs, localMs - afterMs].sort((a, b) => a - b)
    const midnight = candidates.find((timeMs) => timeMs + this.#offsetMs(timeMs) === localMs)
    return midnight ?? this.#changeBetween(localMs - 26 * hourMs, localMs + 26 * hourMs, localMs)
  }

  /** The moment at which the clock is put forward over that local time. */
  #changeBetween(fromMs: number, toMs: number, localMs: number): number {
    let low = fromMs
    let high = toMs
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (middle + this.#offsetMs(middle) >= localMs) high = middle
      else low = middle
    }
    return high
  }

  /** By how much local time is ahead of UTC. */
  #offsetMs(timeMs: number): number {
    const fields: Record<string, string> = {}
    for (const { type, value } of this.#format.formatToParts(timeMs)) fields[type] = value
    const year = fields.era === 'BC' ? 1 - Number(fields.year) : Number(fields.year)
    const local = new Date(0)
    // Date.UTC would take the year 85 for 1985.
    local.setUTCFullYear(year, Number(fields.month) - 1, Number(fields.day))
    local.setUTCHours(Number(fields.hour), Number(fields.minute), Number(fields.second))
    return local.getTime() - Math.floor(timeMs / 1_000) * 1_000
  }
}
