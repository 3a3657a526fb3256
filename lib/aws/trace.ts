/**
 * The X-Ray trace of an invocation, on its way to the stages that read what it writes. Kinesis carries no trace, and a frame is the
 * same in every attempt; so the trace goes beside the frame, in its partition key, which decides nothing (its explicit hash key does).
 *
 * @see https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
 */
import type { Environment } from './function-environment.ts'

const root = /(?:^|;)\s*Root=(1-[0-9a-f]{8}-[0-9a-f]{24})(?:;|$)/i
const keyWithTrace = /^\d+ (1-[0-9a-f]{8}-[0-9a-f]{24})$/i

/** The most bytes that a trace takes in a partition key, the space before it included. */
export const traceBytes = 36

/** The traces that a line of the log names at most. */
const mostTold = 20

/** The trace of the invocation that runs now, where it is kept: of all others nothing could be found. */
export function sampledTrace(environment: Environment): string | undefined {
  const header = environment._X_AMZN_TRACE_ID ?? ''
  return /(?:^|;)\s*Sampled=1(?:;|$)/.test(header) ? root.exec(header)?.[1] : undefined
}

/** The partition key of a frame: its slot and, where there is one, the trace that wrote it. */
export const frameKey = (slot: number, trace: string | undefined): string =>
  trace === undefined ? String(slot) : `${slot} ${trace}`

/** The traces that wrote these frames, each once; frames of other releases and of unsampled invocations have none. */
export function tracesIn(partitionKeys: Iterable<string>): readonly string[] {
  const traces = new Set<string>()
  for (const key of partitionKeys) {
    const trace = keyWithTrace.exec(key)?.[1]
    if (trace !== undefined && traces.size < mostTold) traces.add(trace)
  }
  return [...traces]
}
