/** Cuts redriven records into frames. */
import type { EncodedFrame, OutgoingRecord, RedriveFrame } from './frame.ts'
import { defaultFrameBytes, encodeRedriveFrame } from './frame-format.ts'
import { mostRowBytes } from './record-rows.ts'
import type { SlottedRecord } from './sender.ts'

/** Frames of records in the order of their positions, each with its redrive identity: slot by slot, each slot's in order. */
export function redriveFrames(
  records: readonly SlottedRecord[],
  head: Pick<RedriveFrame, 'schemaVersion' | 'generation'>,
): readonly EncodedFrame[] {
  const bySlot = Map.groupBy(records, ({ slot }) => slot)
  return [...bySlot].flatMap(([slot, own]) =>
    cut(own.map(({ record }) => record)).map((part) =>
      encodeRedriveFrame({ kind: 'redrive', slot, ...head, records: part }),
    ),
  )
}

function cut(records: readonly OutgoingRecord[]): readonly (readonly OutgoingRecord[])[] {
  const parts: OutgoingRecord[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const record of records) {
    const rowBytes = mostRowBytes(record)
    if (bytes + rowBytes > defaultFrameBytes) {
      parts.push([])
      bytes = 0
    }
    parts.at(-1)?.push(record)
    bytes += rowBytes
  }
  return parts
}
