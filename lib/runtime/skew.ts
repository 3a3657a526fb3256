/**
 * Records whose event time is further ahead of their arrival than their source allows: a clock that is wrong, or a unit.
 *
 * They move no time, so one of them makes no other record late. Their own mark is the end of all time: every window of event
 * time takes them for late, here and behind, and other steps take them as they come. Whether a record is one depends on itself
 * alone, so every attempt and every redrive says the same.
 */
import type { RecordInfo } from '../core/record.ts'
import type { SourceNode } from '../topology/graph.ts'

/** The own mark of a record that is late for every window. */
export const endOfTimeMs = Number.POSITIVE_INFINITY

export function isSkewed(
  { eventTimeMs, arrivalTimeMs }: Pick<RecordInfo, 'eventTimeMs' | 'arrivalTimeMs'>,
  { skewLimitMs }: Pick<SourceNode, 'skewLimitMs'>,
): boolean {
  return skewLimitMs !== undefined && eventTimeMs - arrivalTimeMs > skewLimitMs
}
