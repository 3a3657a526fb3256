import { systemClock } from '../../../lib/aws/system-clock.ts'

const betweenLooksMs = 25
const defaultMs = 180_000

/** Waits for a condition, and rejects with what `describe` says where it does not come true in time. */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  describe: () => unknown,
  withinMs = defaultMs,
): Promise<void> {
  const endMs = systemClock.nowMs() + withinMs
  while (!(await isTrue())) {
    if (systemClock.nowMs() > endMs) throw new Error(`not within ${withinMs} ms: ${JSON.stringify(describe())}`)
    await systemClock.sleep(betweenLooksMs)
  }
}
