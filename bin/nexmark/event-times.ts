/** When the events of lines happened, and how much they are out of order. */
import { type Duration, milliseconds } from '../../lib/core/duration.ts'
import { isTerminal } from '../../lib/core/errors.ts'
import type { SourceNode } from '../../lib/topology/graph.ts'
import type { Topology } from '../../lib/topology/topology.ts'

/** The event time of a line, in ms since 1970 UTC; undefined where the line is no event. */
export type EventTimes = (line: Buffer) => number | undefined

/** Reads times as the source of the topology will: what that makes a dead letter of has none here. */
export function eventTimesOf(app: Topology): EventTimes {
  const { format, schema, eventTime } = app.graph().sources[0] as SourceNode
  return (line) => {
    try {
      const answer = schema?.['~standard'].validate(format.decode(line))
      if (answer === undefined || answer instanceof Promise || answer.issues) return undefined
      return eventTime?.extract(answer.value)
    } catch (error) {
      if (isTerminal(error)) return undefined
      throw error
    }
  }
}

/**
 * By how much an event trails the newest one before it, at most. Lines without a time count for nothing: they move none in a
 * run either.
 *
 * It is that of all lines in their order. However they are dealt out over partitions, no mark of these is ahead of the newest
 * event of them all; so with this allowance no event is late in any of them.
 */
export function disorderOf(timeOf: EventTimes, pieces: Iterable<readonly Buffer[]>): Duration {
  let newestMs = Number.NEGATIVE_INFINITY
  let mostMs = 0
  for (const lines of pieces) {
    for (const line of lines) {
      const timeMs = timeOf(line) ?? newestMs
      if (timeMs >= newestMs) newestMs = timeMs
      else mostMs = Math.max(mostMs, newestMs - timeMs)
    }
  }
  return milliseconds(mostMs)
}
