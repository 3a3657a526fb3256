/** The demo of recovery: the same kills over a small and over a large state, by turns, so that a slow moment hits both alike. */
import type { Figure } from '../../../bench/figures.ts'
import { figuresOf } from './assessment.ts'
import { pollIntervalMs, SizedApplication } from './sized-application.ts'

export interface RecoverySettings {
  readonly smallKeys: number
  readonly largeKeys: number
  /** Of each size. */
  readonly kills: number
  /** Records a second, for each size. */
  readonly rate: number
}

/** Runs the demo and resolves with its figures. */
export async function runRecovery(settings: RecoverySettings, stop: AbortController): Promise<readonly Figure[]> {
  const { smallKeys, largeKeys, kills, rate } = settings
  const sizes = [smallKeys, largeKeys].map((keys) => keys.toLocaleString('en'))
  console.log(
    `A running count per user, over a state of ${sizes.join(' and of ')} keys, ${rate} records a second each.`,
  )
  console.log(
    `A worker of the keyed stage is killed ${kills} times over each state, by turns; another takes its shard over. All keys are put into the tables first, past the stage.`,
  )
  const started: SizedApplication[] = []
  try {
    const small = await SizedApplication.start(smallKeys)
    started.push(small)
    const large = await SizedApplication.start(largeKeys)
    started.push(large)
    const fed = new AbortController()
    const feeding = Promise.all(started.map((app) => app.feed(rate, fed.signal)))
    // A feed that fails ends the run; it is awaited below.
    feeding.catch(() => stop.abort())
    for (let kill = 1; kill <= kills && !stop.signal.aborted; kill++) {
      for (const app of started) {
        const recoveryMs = await app.killOnce(stop.signal)
        const time = recoveryMs === undefined ? 'never' : `after ${recoveryMs} ms`
        console.log(`kill ${kill} over ${app.keys.toLocaleString('en')} keys: first new result ${time}`)
      }
    }
    fed.abort()
    await feeding
    return figuresOf(await small.settled(), await large.settled(), pollIntervalMs)
  } finally {
    for (const app of started) await app.stop()
  }
}
