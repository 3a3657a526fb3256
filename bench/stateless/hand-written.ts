/**
 * The handler that a careful engineer writes without a framework: decode, validate, map, serialise, pack into PutRecords
 * requests, report the first record that failed. It is what Millrace is measured against, so it does what Millrace does
 * to a record and nothing else. Its decoder refuses what Millrace's refuses (test/bench/hand-written.test.ts holds both
 * to one corpus): invalid UTF-8, integers beyond 2^53, keys named `__proto__`; and its serialiser refuses what JSON would
 * write as something else: NaN, infinite numbers, a Map, a Set. A request holds at most 500 records and 5 MiB. It keeps no order among records of one key, has no dead letters and no deadline.
 */
import { isUtf8 } from 'node:buffer'
import type { PutRecordsCommandInput } from '@aws-sdk/client-kinesis'
import type { KinesisStreamBatchResponse, KinesisStreamEvent } from 'aws-lambda'
import { convert, Payment } from './pipeline.ts'

type Entry = { Data: Uint8Array; PartitionKey: string }
type Put = (input: PutRecordsCommandInput) => Promise<{ FailedRecordCount?: number }>

function refuse(value: unknown): void {
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) throw new Error('an integer is too large')
  if (typeof value !== 'object' || value === null) return
  for (const key in value) {
    if (key === '__proto__') throw new Error('a key is named __proto__')
    refuse((value as Record<string, unknown>)[key])
  }
}

export function decode(base64: string): unknown {
  const bytes = Buffer.from(base64, 'base64')
  if (!isUtf8(bytes)) throw new Error('not UTF-8')
  const text = bytes.toString('utf8')
  const value: unknown = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)
  refuse(value)
  return value
}

function refuseLossy(value: unknown): void {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('a number is not finite')
  if (typeof value !== 'object' || value === null) return
  if (value instanceof Map || value instanceof Set) throw new Error('a Map or a Set has no form in JSON')
  for (const key in value) refuseLossy((value as Record<string, unknown>)[key])
}

export function serialise(value: unknown): Uint8Array {
  refuseLossy(value)
  return Buffer.from(JSON.stringify(value))
}

export function handWritten(put: Put) {
  return async (event: KinesisStreamEvent): Promise<KinesisStreamBatchResponse> => {
    const entries: Entry[] = []
    let failed: string | undefined
    for (const { kinesis } of event.Records) {
      try {
        const result = convert(Payment.parse(decode(kinesis.data)))
        entries.push({ Data: serialise(result), PartitionKey: result.id })
      } catch {
        failed = kinesis.sequenceNumber
        break
      }
    }
    for (let from = 0; from < entries.length; ) {
      let to = from
      let bytes = 0
      while (to < entries.length && to - from < 500) {
        const entry = entries[to] as Entry
        bytes += entry.Data.byteLength + entry.PartitionKey.length
        if (to > from && bytes > 5 * 1024 * 1024) break
        to++
      }
      const answer = await put({ StreamName: 'converted', Records: entries.slice(from, to) })
      if (answer.FailedRecordCount) throw new Error('some records were refused')
      from = to
    }
    return { batchItemFailures: failed === undefined ? [] : [{ itemIdentifier: failed }] }
  }
}
