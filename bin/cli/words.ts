import { grouped } from '../../lib/local/display/run-display.ts'

/** A number and what it counts. */
export const counted = (count: number, thing: string): string => `${grouped(count)} ${thing}${count === 1 ? '' : 's'}`

/** A finite time in ms since 1970 UTC. Steps may set timers to any number of ms, also beyond what a date can be. */
export const timeWords = (ms: number): string =>
  Math.abs(ms) <= latestMs ? new Date(ms).toISOString() : `${ms} ms since 1970`

/** The last time that a Date holds; the first one is as far before 1970. */
const latestMs = 8.64e15
