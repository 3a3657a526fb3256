/** What one step did to the state of its key, to compare two runs of it. */
import type { CellPlace } from './state-cell.ts'
import type { StateValue, TimerDomain } from './state-store.ts'
import { canonicalText } from './values.ts'

/** Where a timer stands, by its stored name. */
export interface TimerPlace {
  readonly domain: TimerDomain
  readonly timer: string
}

/** What a step left in one place. Nothing changes a value afterwards. */
export interface StepChange {
  readonly place: CellPlace | TimerPlace
  /** Of a timer its time, in ms since 1970 UTC; undefined where the step removed what was there. */
  readonly value: StateValue | undefined
}

/** One text per change, in the order of their places: equal for changes that are the same. */
export function changeTexts(changes: readonly StepChange[]): string[] {
  return changes
    .map(({ place, value }) => `${nameOf(place)}=${value === undefined ? 'removed' : canonicalText(value)}`)
    .sort()
}

function nameOf(place: CellPlace | TimerPlace): string {
  if ('timer' in place) return `timer ${canonicalText([place.domain, place.timer])}`
  return canonicalText(place.entry === undefined ? [place.state] : [place.state, place.entry])
}
