/** Plays the seeds that it is sent, one at a time. */
import { parentPort, workerData } from 'node:worker_threads'
import type { SeedResult } from './many-seeds.ts'
import { play, type Service } from './play.ts'

// Runs throw errors by the thousand, and nobody looks at their stacks: whoever replays a seed by itself has them.
Error.stackTraceLimit = 0

parentPort?.on('message', async (seed: number | 'end') => {
  if (seed === 'end') {
    parentPort?.close()
    return
  }
  const { findings, steps, met } = await play(seed, { service: workerData as Service })
  parentPort?.postMessage({ seed, findings, steps, met: [...met] } satisfies SeedResult)
})
