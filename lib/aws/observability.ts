/** Logs and metrics of a function, through Powertools: JSON lines and CloudWatch's embedded metric format, both on stdout. */
import { Logger as PowertoolsLogger } from '@aws-lambda-powertools/logger'
import { MetricUnit, Metrics as PowertoolsMetrics } from '@aws-lambda-powertools/metrics'
import type { Logger, Metrics } from '../runtime/ports.ts'

/** Who speaks: the dimensions of every metric and two fields of every log line. */
export interface Speaker {
  readonly application: string
  readonly stage: string
}

/** A structured logger. */
export function lambdaLogger({ application, stage }: Speaker): Logger {
  const logger = new PowertoolsLogger({ serviceName: application, persistentKeys: { stage } })
  return {
    info: (message, fields = {}) => logger.info(message, fields),
    warn: (message, fields = {}) => logger.warn(message, fields),
    error: (message, fields = {}) => logger.error(message, fields),
  }
}

const units = { milliseconds: MetricUnit.Milliseconds, count: MetricUnit.Count, bytes: MetricUnit.Bytes } as const

/** Metrics in namespace `Millrace`. `flush` writes what an invocation gathered, in one line. */
export function lambdaMetrics({ application, stage }: Speaker): Metrics & { flush(): void } {
  const metrics = new PowertoolsMetrics({
    namespace: 'Millrace',
    serviceName: application,
    defaultDimensions: { stage },
  })
  const counts = new Map<string, number>()
  return {
    count: (name, value) => void counts.set(name, (counts.get(name) ?? 0) + value),
    gauge: (name, value, unit) => metrics.addMetric(name, units[unit], value),
    flush() {
      for (const [name, value] of counts) metrics.addMetric(name, MetricUnit.Count, value)
      counts.clear()
      metrics.publishStoredMetrics()
    },
  }
}
