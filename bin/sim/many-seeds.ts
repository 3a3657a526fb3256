/** `--runs N`: seeds spread over the processors, with progress, speed and the seeds that failed. */
import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type Figure, figuresFile } from '../../bench/figures.ts'
import { faultKinds, kafkaFaultKinds } from '../../lib/testing/simulator/fault-kinds.ts'
import type { Finding } from '../../lib/testing/simulator/findings.ts'
import type { Service } from './play.ts'

/** One of the two applications: odd seeds have time, even ones have not. */
export type Only = 'time' | 'keyed'

export interface ManySeeds {
  readonly runs: number
  /** The first seed; where one application alone is played, the first of its seeds from there on. */
  readonly from: number
  /** @default both applications, in turn */
  readonly only: Only | undefined
  readonly service: Service
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
/** So many runs of both applications meet every kind of fault. */
const runsThatMeetAll = 1_000
/** Failures that are printed one by one. */
const mostShown = 20

export async function runMany({ runs, from, only, service, json }: ManySeeds): Promise<number> {
  const seeds = seedsOf(runs, from, only)
  console.log(
    `seeds ${seeds[0]} to ${seeds.at(-1)}${only ? `, ${only} only` : ''}${service === 'kafka' ? ', on Kafka' : ''}`,
  )
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
  let next = 0
  const nextSeed = () => seeds[next++]
  const workers = Math.min(runs, availableParallelism())
  try {
    await Promise.all(Array.from({ length: workers }, () => runWorker(service, nextSeed, take)))
  } finally {
    clearInterval(progress)
  }
  console.log(`${done} runs, ${failed.length} failed, ${perMinute()} a minute on ${workers} processors`)
  const counts = [...met].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => `${name} ${count}`)
  console.log(`met: ${counts.join(', ')}`)
  const kinds = service === 'kafka' ? kafkaFaultKinds : faultKinds
  const notMet = kinds.filter((kind) => (met.get(kind) ?? 0) === 0)
  if (notMet.length > 0) console.log(`not met: ${notMet.join(', ')}`)
  // A kind of fault that nobody meets any more is a simulator that has gone blind.
  const mustMeetAll = only === undefined && done >= runsThatMeetAll
  const figures: readonly Figure[] = [
    { name: 'seeds', value: done, unit: 'runs' },
    { name: 'seeds that failed', value: failed.length, unit: 'runs', goal: 0, better: 'exactly' },
    {
      name: 'kinds of faults not met',
      value: notMet.length,
      unit: 'kinds',
      ...(mustMeetAll && { goal: 0, better: 'exactly' }),
    },
    { name: 'rate', value: perMinute(), unit: 'runs/minute' },
  ]
  if (json !== undefined) {
    const told = { from, ...(only && { only }), service, failed, met: Object.fromEntries(met) }
    writeFileSync(json, `${JSON.stringify({ ...figuresFile('npm run sim', figures), ...told }, undefined, 2)}\n`)
  }
  const isBlind = mustMeetAll && notMet.length > 0
  if (isBlind) console.log(`${done} runs met no ${notMet.join(', no ')}: each is to be met in ${runsThatMeetAll}`)
  return failed.length === 0 && !isBlind ? 0 : 1
}

function seedsOf(runs: number, from: number, only: Only | undefined): readonly number[] {
  if (only === undefined) return Array.from({ length: runs }, (_, i) => from + i)
  const first = from % 2 === (only === 'time' ? 1 : 0) ? from : from + 1
  return Array.from({ length: runs }, (_, i) => first + 2 * i)
}

function printFailure({ seed, findings }: SeedResult): void {
  const [first] = findings
  const more = findings.length > 1 ? ` (and ${findings.length - 1} more)` : ''
  console.log(`seed ${seed} failed: ${first?.referee}: ${first?.message.slice(0, 200)}${more}`)
}

/**
 * Every processor has a worker, so threads that help with the garbage take from the others; and most of what a seed leaves dies with it,
 * so there is room for all of it.
 */
const workerFlags = ['--single-threaded-gc', '--min-semi-space-size=96', '--max-semi-space-size=96']

/** A worker that is given one seed after the other. */
function runWorker(
  service: Service,
  nextSeed: () => number | undefined,
  take: (result: SeedResult) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = fork(fileURLToPath(new URL('./seed-worker.ts', import.meta.url)), [service], {
      execArgv: workerFlags,
    })
    const give = () => {
      const seed = nextSeed()
      if (seed === undefined) worker.disconnect()
      else worker.send(seed)
    }
    worker.on('message', (result) => {
      take(result as SeedResult)
      give()
    })
    worker.on('error', reject)
    worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a worker exited with ${code}`))))
    give()
  })
}
