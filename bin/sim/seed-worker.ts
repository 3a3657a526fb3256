/** Plays the seeds that it is sent, one at a time. */
import { parentPort } from 'node:worker_threads'
import type { SeedResult } from './many-seeds.ts'
import { play } from './play.ts'

parentPort?.on('message', async (seed: number | 'end') => {
  if (seed === 'end') {
    parentPort?.close()
    return
  }
  const { findings, steps, met } = await play(seed)
  parentPort?.postMessage({ seed, findings, steps, met: [...met] } satisfies SeedResult)
})
