/**
 * Sends the input to the stream `flights` through the SDK, and remembers how far it is.
 *
 * Invariants:
 * 1. The progress never passes a record that Kinesis has not acknowledged.
 * 2. One request is in flight, so that reports of one airport keep their order.
 * 3. What the stream holds already is not sent again: after a crash a request may have been taken and its progress not saved.
 * 4. While the disk is full nothing is sent, and what could not be saved is tried again until the signal.
 */
import { readFile } from 'node:fs/promises'
import { type KinesisClient, PutRecordsCommand, type PutRecordsCommandOutput } from '@aws-sdk/client-kinesis'
import type { Clock } from '../../lib/core/clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import type { ProgressFile, SaveOptions } from '../../lib/local/files/progress-file.ts'
import { isUnsaved, writePauseMs, writeProblem } from '../../lib/local/files/replace-file.ts'
import type { InputRecord } from './input.ts'

/** What decides which records are sent and where: a run goes on only with the same. */
export interface RunSettings {
  /** Flights of the file; undefined for the whole first week. */
  readonly limit: number | undefined
  readonly corrupt: number
  readonly shards: number
}

export interface ReplayProgress {
  readonly settings: RunSettings
  /** Records that Kinesis has acknowledged. */
  readonly sent: number
  /** Whether a report was made of the whole run. */
  readonly finished: boolean
}

/** The progress of earlier runs; undefined where there is none. Throws a {@link ConfigurationError} for a damaged file. */
export async function readProgress(path: string): Promise<ReplayProgress | undefined> {
  try {
    const progress = JSON.parse(await readFile(path, 'utf8')) as ReplayProgress
    if (Number.isInteger(progress.sent) && typeof progress.settings?.shards === 'number') return progress
  } catch (error) {
    if (describeError(error).code === 'ENOENT') return undefined
  }
  throw new ConfigurationError(`The file ${path} is damaged: start over with --fresh.`)
}

/** The signal ends the replay after the request in flight. */
export interface ReplayOptions extends SaveOptions {
  readonly client: KinesisClient
  readonly streamName: string
  readonly input: readonly InputRecord[]
  readonly settings: RunSettings
  readonly progress: ProgressFile<ReplayProgress>
  /** Where to go on. */
  readonly from: number
  /** The payloads, by {@link payloadText}, that the stream holds already. @default none */
  readonly already?: ReadonlySet<string>
  /** Seconds of event time per second, or as fast as it goes. */
  readonly speed: number | 'max'
  readonly clock: Clock
  /** Hears of every acknowledged request. */
  readonly onSent: (sent: number) => void
}

/** A payload as a set can hold it. Those of the input are all different. */
export const payloadText = (data: Uint8Array): string => Buffer.from(data).toString('latin1')

const recordsPerRequest = 500
const retryMs = 200
const mostAttempts = 50
/** How long a slow replay gathers reports for one request. */
const gatherMs = 100

/** Sends until the input's end or the signal. Resolves with the number of records that are acknowledged. */
export async function replay(options: ReplayOptions): Promise<number> {
  const { input, settings, progress, clock, signal, onSent, already = new Set<string>() } = options
  const due = dueBy(options)
  let sent = options.from
  while (sent < input.length && !signal.aborted) {
    const end = Math.min(due(sent), sent + recordsPerRequest)
    if (end === sent) {
      await clock.sleep(gatherMs, signal)
      continue
    }
    const left = input.slice(sent, end).filter(({ data }) => already.size === 0 || !already.has(payloadText(data)))
    if (left.length > 0 && !(await putAll(options, left))) return sent
    sent = end
    await progress.save({ settings, sent, finished: false }, options)
    onSent(sent)
  }
  return sent
}

/** Says up to where the input is known by now, from a place on. */
function dueBy({ input, from, speed, clock }: ReplayOptions): (at: number) => number {
  if (speed === 'max') return () => input.length
  const startMs = clock.nowMs()
  const startKnownMs = input[from]?.knownMs ?? 0
  return (at) => {
    const nowKnownMs = startKnownMs + (clock.nowMs() - startMs) * speed
    let end = at
    while (end < input.length && end - at < recordsPerRequest && (input[end]?.knownMs ?? 0) <= nowKnownMs) end++
    return end
  }
}

/** Puts records, and those that were refused again, until all are taken. Resolves with false where the signal came before. */
async function putAll(options: ReplayOptions, records: readonly InputRecord[]): Promise<boolean> {
  const { streamName, clock } = options
  let left = records
  let problem = ''
  for (let attempt = 1; attempt <= mostAttempts; attempt++) {
    try {
      const answer = await putOnceSaved(options, left)
      if (answer === undefined) return false
      left = left.filter((_, index) => answer.Records?.[index]?.SequenceNumber === undefined)
      if (left.length === 0) return true
      problem = answer.Records?.find((record) => record.ErrorCode)?.ErrorMessage ?? 'no reason given'
    } catch (error) {
      problem = describeError(error).message
    }
    await clock.sleep(retryMs)
  }
  throw new ConfigurationError(
    `The stream ${streamName} refused ${left.length} records ${mostAttempts} times: ${problem}. Run again to go on.`,
  )
}

/** One request, which is sent again for as long as the service cannot save it. Resolves with undefined where the signal came before. */
async function putOnceSaved(
  { client, streamName, clock, signal, onBlocked }: ReplayOptions,
  records: readonly InputRecord[],
): Promise<PutRecordsCommandOutput | undefined> {
  const Records = records.map(({ partitionKey, data }) => ({ PartitionKey: partitionKey, Data: data }))
  for (let failures = 1; ; failures++) {
    try {
      const answer = await client.send(new PutRecordsCommand({ StreamName: streamName, Records }))
      onBlocked(undefined)
      return answer
    } catch (error) {
      if (!isUnsaved(error)) throw error
      if (signal.aborted) return undefined
      onBlocked(writeProblem(`The stream ${streamName}`, error))
    }
    await clock.sleep(writePauseMs(failures), signal)
  }
}
