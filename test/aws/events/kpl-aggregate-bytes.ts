/** Writes KPL aggregates for tests, byte by byte as the public format says. */
import { createHash } from 'node:crypto'

export interface UserRecord {
  readonly partitionKey: string
  readonly explicitHashKey?: string
  readonly data: Uint8Array | string
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  return Buffer.from([...bytes, rest])
}

export const numberField = (field: number, value: number): Buffer => Buffer.concat([varint(field * 8), varint(value)])

export function bytesField(field: number, value: Uint8Array | string): Buffer {
  const bytes = Buffer.from(value as Uint8Array)
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes])
}

/** The magic number, a message and its checksum. */
export function sealed(message: Uint8Array): Buffer {
  const checksum = createHash('md5').update(message).digest()
  return Buffer.concat([Buffer.from([0xf3, 0x89, 0x9a, 0xc2]), message, checksum])
}

/** An aggregate of the records, with tables that hold each key once. */
export function aggregateOf(records: readonly UserRecord[]): Buffer {
  const keys = [...new Set(records.map(({ partitionKey }) => partitionKey))]
  const hashKeys = [...new Set(records.flatMap(({ explicitHashKey }) => explicitHashKey ?? []))]
  return sealed(
    Buffer.concat([
      ...keys.map((key) => bytesField(1, key)),
      ...hashKeys.map((key) => bytesField(2, key)),
      ...records.map(({ partitionKey, explicitHashKey, data }) =>
        bytesField(
          3,
          Buffer.concat([
            numberField(1, keys.indexOf(partitionKey)),
            ...(explicitHashKey === undefined ? [] : [numberField(2, hashKeys.indexOf(explicitHashKey))]),
            bytesField(3, data),
          ]),
        ),
      ),
    ]),
  )
}
