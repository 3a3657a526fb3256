import { grouped } from '../../lib/local/run-display.ts'

/** A number and what it counts. */
export const counted = (count: number, thing: string): string => `${grouped(count)} ${thing}${count === 1 ? '' : 's'}`
