/** How long the first record of a partition has waited that is not done. */

import type { ReadPosition, ShardReader } from '../../../lib/emulator/event-source-mapping/index.ts'
import type { StageBindings } from '../../../lib/plan/stage-bindings.ts'

/** The name of the Kinesis stream that a stage reads; undefined where it reads none. */
export function streamNameIn({ sources: [source] }: StageBindings): string | undefined {
  return source?.kind === 'kinesis' ? source.streamArn.slice(source.streamArn.indexOf('/') + 1) : undefined
}

/** Pages without a record before the next one is not looked for any more. */
const mostPages = 20

/** Partition, the position behind which, and where that is undefined the arrival from which on, in ms since 1970 UTC. */
export type Place = readonly [partition: string, after: string | undefined, startsAtMs: number | undefined]

/**
 * When the first record from there on arrived, in ms since 1970 UTC; undefined where there is none for now, or it cannot be told: a
 * look at the status does not fail for it.
 */
export async function firstWaiting(reader: ShardReader, ...place: Place): Promise<number | undefined> {
  const [partition, after, startsAtMs] = place
  try {
    const position = positionOf(after, startsAtMs)
    let iterator: string | null = await reader.open(partition, position)
    for (let page = 0; page < mostPages && iterator !== null; page++) {
      const read = await reader.read(iterator, 1)
      const [first] = read.records
      if (first) return first.arrivalMs
      if (read.millisBehindLatest === 0) return undefined
      iterator = read.nextIterator
    }
    return undefined
  } catch {
    return undefined
  }
}

function positionOf(after: string | undefined, startsAtMs: number | undefined): ReadPosition {
  if (after !== undefined) return { at: 'after', sequenceNumber: after }
  return startsAtMs === undefined ? { at: 'trim-horizon' } : { at: 'timestamp', timestampMs: startsAtMs }
}
