import { dynamoStore } from '../../../bin/sim/dynamo-store.ts'
import { formerRelease } from '../../../bin/sim/former-release.ts'
import type { Canary } from '../../../lib/testing/simulator/canary.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import { Scheduler } from '../../../lib/testing/simulator/scheduler.ts'
import { type Report, simulate } from '../../../lib/testing/simulator/simulate.ts'
import { Trace } from '../../../lib/testing/simulator/trace.ts'

/** One turn of the event loop. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export const play = (
  seed: number,
  options: { canary?: Canary; traces?: boolean; service?: 'kinesis' | 'kafka' } = {},
): Promise<Report> => simulate({ seed, settle, dynamoStore, formerRelease: formerRelease(), ...options })

export const scheduler = (seed = 1): Scheduler =>
  new Scheduler({ random: new Random(seed), trace: new Trace(true), startMs: 0, settle })

/** Steps until nothing happens any more. */
export async function run(of: Scheduler): Promise<void> {
  await settle()
  while (await of.step());
}
