/** Plays a seed and judges it. */
import type { Canary } from './canary.ts'
import type { Finding } from './findings.ts'
import { keyedApplication } from './keyed-application.ts'
import { Simulation, type SimulationOptions } from './simulation.ts'
import { timedApplication } from './timed-application.ts'
import type { TraceEvent } from './trace.ts'

export interface Report {
  readonly seed: number
  /** What the referees found; none where every promise was kept. */
  readonly findings: readonly Finding[]
  readonly steps: number
  /** Virtual time that the run took, in ms. */
  readonly virtualMs: number
  readonly records: number
  /** What the run met: faults by name, metrics of the runners. */
  readonly met: ReadonlyMap<string, number>
  /** The last events, where the run was traced. */
  readonly trace: readonly TraceEvent[]
}

/** What a seed is played with. */
export type SeedOptions = Omit<SimulationOptions, 'applications'>

/** How many events are kept for whoever looks for the cause. */
const lastEvents = 400

/**
 * Runs one seed.
 *
 * @example
 * const { findings } = await simulate({ seed: 7, settle: () => new Promise(setImmediate) })
 */
export async function simulate(options: SeedOptions): Promise<Report> {
  const run = new Simulation({ ...options, applications: { keyed: keyedApplication, timed: timedApplication } })
  await run.play()
  const { findings, met: more } = await run.application.judge(run)
  const { met, streams, scheduler, source, trace } = run
  return {
    seed: options.seed,
    findings,
    steps: scheduler.steps,
    virtualMs: scheduler.elapsedMs,
    records: source.length,
    met: new Map([...met, ['inversion', streams.inversions], ...more]),
    trace: trace.last(options.traces ? Number.POSITIVE_INFINITY : lastEvents),
  }
}

/** The first of so many seeds at which the canary's referee speaks. */
export async function findCanary(
  canary: Canary,
  options: Omit<SeedOptions, 'seed' | 'canary'> & { readonly mostSeeds: number },
): Promise<Report | undefined> {
  for (let seed = 0; seed < options.mostSeeds; seed++) {
    const report = await simulate({ ...options, seed, canary })
    if (report.findings.some(({ referee }) => referee === canary.caughtBy)) return report
  }
  return undefined
}
