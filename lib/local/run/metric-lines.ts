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
      values.set(String(Name), measuredIn(content[String(Name)]))
    }
  }
  return values.size > 0 ? values : undefined
}

/** What a line says of one metric: a value, several, or values with how often each was measured. */
function measuredIn(said: unknown): readonly number[] {
  const { Values, Counts } = Object(said) as { readonly Values?: unknown; readonly Counts?: unknown }
  if (!Array.isArray(Values) || !Array.isArray(Counts))
    return [said].flat().filter((value) => typeof value === 'number')
  return Values.flatMap((value, i) => Array<number>(Counts[i] ?? 0).fill(value))
}
