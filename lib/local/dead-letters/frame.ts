/**
 * The frame that carries a dead letter of a keyed stage to its stream again.
 *
 * Invariants:
 * 1. It has the identity of the dead letter, which its key takes once, however often it is sent.
 * 2. Key, value and its schema version, headers, side, event time, own mark and origin are those that the record had when it failed.
 * 3. It goes to the slot of its key, as the stage has its slots now.
 * 4. It carries the generation that the record was given up in: behind a reset the stage drops it.
 */
import type { DeadLetterEntry } from '../../aws/dead-letters/entry.ts'
import { describeError } from '../../core/errors.ts'
import type { RecordHeader } from '../../core/record.ts'
import { slotOf } from '../../core/slot.ts'
import { type KeyedCoordinates, later } from '../../runtime/dead-letter.ts'
import type { EncodedFrame } from '../../runtime/frames/frame.ts'
import { encodeRedriveFrame } from '../../runtime/frames/frame-format.ts'
import { ownPosition } from '../../runtime/frames/position.ts'
import { endOfTimeMs } from '../../runtime/skew.ts'
import { type Bytes, bytesKept, type RecordReading } from './record.ts'

/** A dead letter of a record that failed in a keyed stage. */
export type KeyedEntry = DeadLetterEntry & { readonly keyed: KeyedCoordinates }

export const isKeyed = (entry: DeadLetterEntry): entry is KeyedEntry => entry.keyed !== undefined

/** The streams of the keyed stages that can be written to from here. */
export interface KeyedStreams {
  /** The number of slots of a stage, or why its stream cannot be written to. */
  slotsOf(stage: string): number | { readonly reason: string }
  /** Resolves once the stream holds the frame; otherwise rejects. */
  publish(stage: string, frame: EncodedFrame): Promise<void>
}

/** The frame of an entry, or why there is none to be sent. */
export async function redriveFrame(
  entry: KeyedEntry,
  streams: Pick<KeyedStreams, 'slotsOf'>,
  reading: Pick<RecordReading, 'topology' | 'readObject'>,
): Promise<EncodedFrame | { readonly reason: string }> {
  const { topology, stage, reason, omitted } = entry
  if (topology !== reading.topology) {
    return { reason: `it is a dead letter of topology "${topology}", not of "${reading.topology}"` }
  }
  if (reason.phase === 'sink') {
    return {
      reason: `its record is applied to the state of stage "${stage}", and only an output was refused by a sink: to apply the record again would change the state twice`,
    }
  }
  if (omitted) {
    return {
      reason: `its value was too large for where dead letters go, and no other place than the stream of stage "${stage}" has it`,
    }
  }
  const slots = streams.slotsOf(stage)
  if (typeof slots !== 'number') return slots
  const bytes = await bytesKept(entry, reading)
  if ('reason' in bytes) return bytes
  try {
    return frameOf(entry, slots, bytes)
  } catch (error) {
    return { reason: `it fits in no frame: ${describeError(error).message}` }
  }
}

const bytesOf = (base64: string | null): Buffer => Buffer.from(base64 ?? '', 'base64')

/** Undefined where there are none: the frame is then one that every release reads. */
const headersOf = (headers: Bytes['headers']): readonly RecordHeader[] | undefined =>
  headers.length === 0 ? undefined : headers.map(({ name, value }) => ({ name, value: bytesOf(value) }))

function frameOf(entry: KeyedEntry, slots: number, bytes: Bytes): EncodedFrame {
  const { id, source, partition, position, subPosition, arrivalTimeMs } = entry
  const { side, eventTimeMs, isSkewed, schemaVersion = 1 } = entry.keyed
  const ownMarkMs = isSkewed ? endOfTimeMs : (entry.keyed.ownMarkMs ?? Number.NEGATIVE_INFINITY)
  const key = bytesOf(bytes.key).toString()
  const record = {
    ...{ position: ownPosition(0, 0), side, key, value: bytesOf(bytes.payload), eventTimeMs, ownMarkMs, redrive: id },
    headers: headersOf(bytes.headers),
    origin: { source, partition, position, subPosition, arrivalTimeMs },
  }
  const head = { slot: slotOf(key, slots), schemaVersion, ...later(entry.generation) }
  return encodeRedriveFrame({ kind: 'redrive', ...head, records: [record] })
}
