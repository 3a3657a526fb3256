/** `--break NAME`: breaks a part on purpose and looks for the first seed at which its referee notices. */
import { canaries } from '../../lib/testing/simulator/canaries.ts'
import type { Canary } from '../../lib/testing/simulator/canary.ts'
import { kafkaCanaries } from '../../lib/testing/simulator/kafka-canaries.ts'
import { protocolCanaries } from '../../lib/testing/simulator/protocol-canaries.ts'
import { timedCanaries } from '../../lib/testing/simulator/timed-canaries.ts'
import { printFindings, printLast } from './one-seed.ts'
import { play } from './play.ts'

/** A referee that has noticed nothing after so many seeds does not notice. */
const mostSeeds = 300

const all: { readonly [name: string]: Canary } = {
  ...canaries,
  ...protocolCanaries,
  ...timedCanaries,
  ...kafkaCanaries,
}

export function listCanaries(): number {
  const widest = Math.max(...Object.keys(all).map((name) => name.length))
  for (const [name, { breaks, caughtBy }] of Object.entries(all)) {
    console.log(`${name.padEnd(widest)}  ${breaks} (noticed by ${caughtBy})`)
  }
  return 0
}

/** Exits with 1 where the canary was noticed, as a failing run does; with 3 where it was not, which is a bug of the referee. */
export async function breakPart(name: string): Promise<number> {
  const canary: Canary | undefined = Object.hasOwn(all, name) ? all[name] : undefined
  if (canary === undefined) throw new TypeError(`there is no canary "${name}": --break list names them`)
  console.log(`broken: ${canary.breaks}`)
  for (let seed = 0; seed < mostSeeds; seed++) {
    const { findings } = await play(seed, { canary })
    if (!findings.some(({ referee }) => referee === canary.caughtBy)) continue
    console.log(`seed ${seed}`)
    printLast(await play(seed, { canary, traces: true }))
    printFindings(findings)
    return 1
  }
  console.log(`${canary.caughtBy} noticed nothing in ${mostSeeds} seeds`)
  return 3
}
