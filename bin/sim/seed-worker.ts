/** Plays the seeds that it is sent, one at a time, until nobody is there any more to send some. */
import type { SeedResult } from './many-seeds.ts'
import { play, type Service } from './play.ts'

// Runs throw errors by the thousand, and nobody looks at their stacks: whoever replays a seed by itself has them.
Error.stackTraceLimit = 0

const service = process.argv[2] as Service

process.on('message', async (seed: number) => {
  const { findings, steps, met } = await play(seed, { service })
  process.send?.({ seed, findings, steps, met: [...met] } satisfies SeedResult)
})
