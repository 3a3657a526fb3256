/**
 * Logs and metrics of a function, through Powertools: JSON lines and CloudWatch's embedded metric format, both on stdout.
 *
 * 1. Every metric has the dimensions `application` and `stage`, and no others: each further value of one would be a metric of its own,
 *    which CloudWatch charges for.
 * 2. Ratios are metrics of their own, made where both of their parts are known, so that an alarm needs no metric math.
 * 3. What was measured often goes out as values with counts, in a line of its own: should CloudWatch refuse that line, only that
 *    metric is lost.
 */
import { Logger as PowertoolsLogger } from '@aws-lambda-powertools/logger'
import { MetricUnit, Metrics as PowertoolsMetrics } from '@aws-lambda-powertools/metrics'
import type { GaugeName, Logger, MetricName, Metrics } from '../../runtime/ports.ts'
import type { StateCallPorts } from '../state-table/calls.ts'

/** Who speaks: the dimensions of every metric and two fields of every log line. */
export interface Speaker {
  readonly application: string
  readonly stage: string
}

/**
 * A structured logger. What is true of many records of a batch is told of the first ones, with how many more there are; no line
 * holds anything of a record but where it stands, nor the message of an error that is not ours, as it may quote one.
 */
export function lambdaLogger({ application, stage }: Speaker): Logger {
  const logger = new PowertoolsLogger({ serviceName: application, persistentKeys: { stage } })
  return {
    info: (message, fields = {}) => logger.info(message, loggable(fields)),
    warn: (message, fields = {}) => logger.warn(message, loggable(fields)),
    error: (message, fields = {}) => logger.error(message, loggable(fields)),
  }
}

/** Powertools drops a field `message`, as that is the line's own: what an error says of itself is its `reason`. */
type LogFields = Readonly<Record<string, unknown>>
const loggable = ({ message, ...fields }: LogFields): LogFields =>
  message === undefined ? fields : { ...fields, reason: message }

const units = { milliseconds: MetricUnit.Milliseconds, count: MetricUnit.Count, bytes: MetricUnit.Bytes } as const

/** The gauge that goes out as values with counts. */
const spread: GaugeName = 'event-lateness'

/**
 * The most values that a metric of one line may have.
 *
 * @see https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
const mostValues = 100

interface Counted {
  readonly value: number
  readonly times: number
}

/** Metrics in namespace `Millrace`. `flush` writes what an invocation gathered. */
export function lambdaMetrics(speaker: Speaker): Metrics & { flush(): void } {
  const metrics = powertoolsOf(speaker)
  const counts = new Map<MetricName, number>()
  const spreads: Counted[] = []
  return {
    count: (name, value) => void counts.set(name, (counts.get(name) ?? 0) + value),
    gauge(name, value, unit, times = 1) {
      if (name === spread) spreads.push({ value, times })
      else metrics.addMetric(name, units[unit], value)
    },
    flush() {
      for (const [name, value] of [...counts, ...ratiosOf(counts)]) metrics.addMetric(name, MetricUnit.Count, value)
      counts.clear()
      if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics()
      for (const values of slicesOf(spreads.splice(0))) writeSpread(metrics, values)
    },
  }
}

/** Powertools calls its first dimension `service`, unless it is told all of them again. */
function powertoolsOf({ application, stage }: Speaker): PowertoolsMetrics {
  const metrics = new PowertoolsMetrics({ namespace: 'Millrace', serviceName: application })
  metrics.clearDefaultDimensions()
  return metrics.setDefaultDimensions({ application, stage })
}

/** What an invocation says per 1,000 of its records; nothing where it had none, as where all came again. */
function ratiosOf(counts: ReadonlyMap<MetricName, number>): readonly (readonly [string, number])[] {
  const records = counts.get('records-in') ?? 0
  if (records === 0) return []
  const per1000 = (value: number): number => (value * 1_000) / records
  const read = counts.get('read-units')
  const written = counts.get('write-units')
  const late = counts.get('records-late')
  return [
    ...(read === undefined && written === undefined
      ? []
      : [['units-per-1000-records', per1000((read ?? 0) + (written ?? 0))] as const]),
    ...(late === undefined ? [] : [['late-per-1000-records', per1000(late)] as const]),
  ]
}

function slicesOf(all: readonly Counted[]): readonly (readonly Counted[])[] {
  const slices: (readonly Counted[])[] = []
  for (let from = 0; from < all.length; from += mostValues) slices.push(all.slice(from, from + mostValues))
  return slices
}

/**
 * Writes values with counts. Powertools writes plain values only, so its line gets them in place of one: the form in which AWS's
 * own exporter of OpenTelemetry writes histograms.
 *
 * @see https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/exporter/awsemfexporter
 */
function writeSpread(metrics: PowertoolsMetrics, counted: readonly Counted[]): void {
  if (process.env.POWERTOOLS_METRICS_DISABLED === 'true') return
  const values = counted.map(({ value }) => value)
  const times = counted.map((one) => one.times)
  metrics.addMetric(spread, MetricUnit.Milliseconds, 0)
  const line = metrics.serializeMetrics()
  metrics.clearMetrics()
  const statistics = {
    Values: values,
    Counts: times,
    Max: Math.max(...values),
    Min: Math.min(...values),
    Count: times.reduce((sum, count) => sum + count, 0),
    Sum: counted.reduce((sum, one) => sum + one.value * one.times, 0),
  }
  // Not by `console.log`, before which Lambda puts what no parser of metrics reads.
  process.stdout.write(`${JSON.stringify({ ...line, [spread]: statistics })}\n`)
}

/** What has a state table count its units, and what it was refused, among the metrics of a stage. */
export function meteredBy(metrics: Metrics): Pick<StateCallPorts, 'onCapacity' | 'onThrottle'> {
  return {
    onCapacity: ({ kind, units: consumed }) => metrics.count(kind === 'read' ? 'read-units' : 'write-units', consumed),
    onThrottle: () => metrics.count('throttles', 1),
  }
}
