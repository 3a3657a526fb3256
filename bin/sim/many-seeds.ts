/** `--runs N`: seeds spread over the processors, with progress, speed and the seeds that failed. */
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { Finding } from '../../lib/testing/simulator/findings.ts'

export interface ManySeeds {
  readonly runs: number
  readonly from: number
  /** Where the result is written to as JSON. @default nowhere */
  readonly json: string | undefined
}

/** What a worker says of a seed. */
export interface SeedResult {
  readonly seed: number
  readonly findings: readonly Finding[]
  readonly steps: number
  readonly met: readonly (readonly [string, number])[]
}

const progressEveryMs = 5_000
/** Failures that are printed one by one. */
const mostShown = 20

export async function runMany({ runs, from, json }: ManySeeds): Promise<number> {
  console.log(`seeds ${from} to ${from + runs - 1}`)
  const startedMs = performance.now()
  const failed: SeedResult[] = []
  const met = new Map<string, number>()
  let done = 0
  const perMinute = () => Math.round((done * 60_000) / (performance.now() - startedMs))
  const progress = setInterval(
    () => console.log(`${done} of ${runs}, ${failed.length} failed, ${perMinute()} a minute`),
    progressEveryMs,
  )
  const take = (result: SeedResult) => {
    done += 1
    for (const [name, count] of result.met) met.set(name, (met.get(name) ?? 0) + count)
    if (result.findings.length === 0) return
    failed.push(result)
    if (failed.length <= mostShown) printFailure(result)
  }
  let next = from
  const nextSeed = () => (next < from + runs ? next++ : undefined)
  const workers = Math.min(runs, availableParallelism())
  try {
    await Promise.all(Array.from({ length: workers }, () => runWorker(nextSeed, take)))
  } finally {
    clearInterval(progress)
  }
  console.log(`${done} runs, ${failed.length} failed, ${perMinute()} a minute on ${workers} processors`)
  console.log(
    `met: ${[...met]
      .sort()
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')}`,
  )
  if (json !== undefined) {
    const result = { from, runs: done, perMinute: perMinute(), failed, met: Object.fromEntries(met) }
    writeFileSync(json, `${JSON.stringify(result, undefined, 2)}\n`)
  }
  return failed.length === 0 ? 0 : 1
}

function printFailure({ seed, findings }: SeedResult): void {
  const [first] = findings
  const more = findings.length > 1 ? ` (and ${findings.length - 1} more)` : ''
  console.log(`seed ${seed} failed: ${first?.referee}: ${first?.message.slice(0, 200)}${more}`)
}

/** A worker that is given one seed after the other. */
function runWorker(nextSeed: () => number | undefined, take: (result: SeedResult) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./seed-worker.ts', import.meta.url))
    const give = () => {
      const seed = nextSeed()
      if (seed === undefined) worker.postMessage('end')
      else worker.postMessage(seed)
    }
    worker.on('message', (result: SeedResult) => {
      take(result)
      give()
    })
    worker.on('error', reject)
    worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a worker exited with ${code}`))))
    give()
  })
}
