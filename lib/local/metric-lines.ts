/** Reads the metrics that a function writes to its log, in CloudWatch's embedded metric format. */

/** The values of each metric of one line, in the order in which they were measured. */
export type MetricValues = ReadonlyMap<string, readonly number[]>

interface EmbeddedMetrics {
  readonly _aws?: {
    readonly CloudWatchMetrics?: readonly {
      readonly Namespace?: unknown
      readonly Metrics?: readonly { readonly Name?: unknown }[]
    }[]
  }
  readonly [name: string]: unknown
}

/**
 * The metrics of one line of a log in one namespace; undefined where it carries none.
 *
 * @see https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 * @example
 * metricsIn(line)?.get('lookup-calls') // [1]
 */
export function metricsIn(line: string, namespace = 'Millrace'): MetricValues | undefined {
  // Most lines are none, and parsing each would cost more than the handler's own work.
  if (!line.includes('"CloudWatchMetrics"')) return undefined
  let content: EmbeddedMetrics | null
  try {
    content = JSON.parse(line)
  } catch {
    return undefined
  }
  const directives = content?._aws?.CloudWatchMetrics
  if (!content || !Array.isArray(directives)) return undefined
  const values = new Map<string, readonly number[]>()
  for (const { Namespace, Metrics = [] } of directives) {
    if (Namespace !== namespace) continue
    for (const { Name } of Metrics) {
      const measured = [content[String(Name)]].flat().filter((value) => typeof value === 'number')
      values.set(String(Name), measured)
    }
  }
  return values.size > 0 ? values : undefined
}
