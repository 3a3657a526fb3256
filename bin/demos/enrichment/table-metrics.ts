/** Adds up what the function says of its tables, invocation by invocation. */
import type { MetricValues } from '../../../lib/local/run/metric-lines.ts'

export class TableMetrics {
  batches = 0
  lookupCalls = 0
  /** The most calls that one batch made. */
  mostCalls = 0
  hits = 0
  misses = 0
  /** The age of the refreshed table when each batch began, in ms. */
  readonly stalenessMs: number[] = []

  take(metrics: MetricValues): void {
    const sum = (name: string): number => (metrics.get(name) ?? []).reduce((total, value) => total + value, 0)
    const calls = sum('lookup-calls')
    this.batches += 1
    this.lookupCalls += calls
    this.mostCalls = Math.max(this.mostCalls, calls)
    this.hits += sum('lookup-hits')
    this.misses += sum('lookup-misses')
    this.stalenessMs.push(...(metrics.get('table-staleness') ?? []))
  }

  /** Which part of the keys the cache had, 0 to 1. */
  get hitRate(): number {
    const keys = this.hits + this.misses
    return keys === 0 ? 0 : this.hits / keys
  }
}
