/** Takes what the streams `hourly-delays` and `late-flights` hold: the last revision of each hour, and the flights that came too late. */
import type { Departure, HourlyDelays } from '../../functions/flights/schema.ts'
import { hourKey } from './batch-airports.ts'

export class HourOutputs {
  /** The last revision of each hour, by airport and hour. */
  readonly hours = new Map<string, HourlyDelays>()
  /** Flights that came too late for their hour, by flight. */
  readonly late = new Map<string, Departure>()
  /** Outputs that came again with other content, which must not happen. */
  readonly contradictions: string[] = []
  /** How many revisions have replaced an earlier one. */
  revised = 0
  /** The hour that closed last. */
  newest: HourlyDelays | undefined
  /** All revisions of the hour that was revised most. */
  #mostRevised: readonly HourlyDelays[] = []
  readonly #revisions = new Map<string, HourlyDelays[]>()

  takeLate(value: Departure): void {
    const known = this.late.get(value.flight)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(value)) {
      this.contradictions.push(`late flight ${value.flight} came twice with different content`)
    }
    this.late.set(value.flight, value)
  }

  /** One hour with all its revisions, as an example: the one that was revised most. */
  get example(): readonly HourlyDelays[] {
    return this.#mostRevised
  }

  takeHour(value: HourlyDelays): void {
    const key = hourKey(value.airport, value.hour)
    const revisions = this.#revisions.get(key) ?? []
    const known = revisions[value.revision]
    if (known !== undefined) {
      if (JSON.stringify(known) !== JSON.stringify(value)) {
        this.contradictions.push(`revision ${value.revision} of ${key} came twice with different content`)
      }
      return
    }
    revisions[value.revision] = value
    this.#revisions.set(key, revisions)
    if (value.revision > 0) this.revised += 1
    else this.newest = value
    if (value.revision >= (this.hours.get(key)?.revision ?? 0)) this.hours.set(key, value)
    if (revisions.length > this.#mostRevised.length) this.#mostRevised = revisions
  }
}
