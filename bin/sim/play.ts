/** Plays one seed with what only this side of the import table knows: the event loop and the production store. */
import type { Canary } from '../../lib/testing/simulator/canary.ts'
import { type Report, simulate } from '../../lib/testing/simulator/simulate.ts'
import { dynamoStore } from './dynamo-store.ts'
import { formerRelease } from './former-release.ts'

/** What keeps the streams of a run. */
export type Service = 'kinesis' | 'kafka'

/** When all promises that can go on have gone on; nothing in a run waits for more than promises. */
export const settle = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve))

export function play(
  seed: number,
  options: { readonly traces?: boolean; readonly canary?: Canary; readonly service?: Service } = {},
): Promise<Report> {
  return simulate({ seed, settle, dynamoStore, formerRelease: formerRelease(), ...options })
}
