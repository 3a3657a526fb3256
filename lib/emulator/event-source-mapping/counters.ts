/**
 * What a mapping has counted since it was created, after the metrics of AWS's EventCount group and some that a local display needs.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
 */
export interface MappingCounters {
  polledEvents: number
  filteredOutEvents: number
  invocations: number
  invokedEvents: number
  /** Events of invocations that failed or reported any failure. */
  failedInvokeEvents: number
  /** Events that were given up and reached no destination. */
  droppedEvents: number
  onFailureDeliveredEvents: number
  destinationDeliveryFailures: number
  lastDeliveryFailure: string | undefined
  /** Answers that count as success although their shape is unknown: records may be lost in silence. */
  unrecognisedAnswers: number
  lastUnrecognisedAnswer: string | undefined
}

export function newCounters(): MappingCounters {
  return {
    polledEvents: 0,
    filteredOutEvents: 0,
    invocations: 0,
    invokedEvents: 0,
    failedInvokeEvents: 0,
    droppedEvents: 0,
    onFailureDeliveredEvents: 0,
    destinationDeliveryFailures: 0,
    lastDeliveryFailure: undefined,
    unrecognisedAnswers: 0,
    lastUnrecognisedAnswer: undefined,
  }
}
