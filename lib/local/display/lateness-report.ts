/** What a run has measured of how far the records of each source come behind, in words: which grace catches which share of them. */
import type { Plan } from '../../plan/plan.ts'
import { Lateness } from '../../time/lateness.ts'
import type { MetricValues } from '../run/metric-lines.ts'
import { grouped, table } from './run-display.ts'

const shares = [0.5, 0.9, 0.99, 0.999, 1]

/** Gathers the metric `event-lateness` of the stages of a run. */
export class LatenessReport {
  readonly #bySource = new Map<string, Lateness>()

  /** Takes the metrics of an invocation: those of a source's stage carry its name. */
  take(stage: string, metrics: MetricValues): void {
    const measured = metrics.get('event-lateness')
    if (measured === undefined) return
    const lateness = this.#bySource.get(stage) ?? new Lateness()
    for (const latenessMs of measured) lateness.add(latenessMs)
    this.#bySource.set(stage, lateness)
  }

  /** A table for each source of which any record came behind; nothing of the others. */
  lines({ graph }: Pick<Plan, 'graph'>): readonly string[] {
    return graph.sources.flatMap(({ name, outOfOrdernessMs }) => {
      const lateness = this.#bySource.get(name)
      return lateness && lateness.withinMs(1) > 0 ? linesOf(name, lateness, outOfOrdernessMs) : []
    })
  }
}

function linesOf(source: string, lateness: Lateness, outOfOrdernessMs: number): readonly string[] {
  const rows = shares.map((share) => {
    const behindMs = lateness.withinMs(share)
    return [`${share * 100} %`, span(behindMs), span(Math.max(0, behindMs - outOfOrdernessMs))]
  })
  return [
    `How far the records of ${source} come behind the newest of their partition (${grouped(lateness.records)} measured; outOfOrderness is ${span(outOfOrdernessMs)}):`,
    ...table([['records', 'come behind by', 'none of them is late with a grace of'], ...rows], [true, true, true]).map(
      (line) => `  ${line}`,
    ),
  ]
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** In whole units, at most two of them, rounded up: `1 h 20 min`. */
export function span(ms: number): string {
  const exactToMs = ms < 3_600_000 ? 1_000 : ms < 86_400_000 ? 60_000 : 3_600_000
  let leftMs = Math.ceil(ms / exactToMs) * exactToMs
  const parts = units.flatMap(([name, unitMs]) => {
    const whole = Math.floor(leftMs / unitMs)
    leftMs -= whole * unitMs
    return whole === 0 ? [] : [`${whole} ${name}`]
  })
  return parts.join(' ') || '0'
}
