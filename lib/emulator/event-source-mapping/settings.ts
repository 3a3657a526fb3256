import { ConfigurationError } from '../../core/errors.ts'
import { laneOf as fnvLaneOf } from './batching.ts'

/**
 * The parameters of an event source mapping on a stream, with AWS's names, ranges and defaults.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-parameters.html
 *
 * @example
 * const settings: MappingSettings = {
 *   uuid: '7f6c2f6e-2a67-4d7c-9c50-6f9f5c1f0a11',
 *   functionArn: 'arn:aws:lambda:us-east-1:000000000000:function:bookings',
 *   startingPosition: 'TRIM_HORIZON',
 *   batchSize: 500,
 *   functionResponseTypes: ['ReportBatchItemFailures'],
 * }
 */
export interface MappingSettings {
  readonly uuid: string
  readonly functionArn: string
  readonly startingPosition: 'TRIM_HORIZON' | 'LATEST' | 'AT_TIMESTAMP'
  /** Milliseconds since 1970; given exactly with AT_TIMESTAMP. */
  readonly startingPositionTimestampMs?: number
  /** @default 100, range 1..10,000 */
  readonly batchSize?: number
  /** @default 0, range 0..300 */
  readonly maximumBatchingWindowInSeconds?: number
  /** @default 1, range 1..10 */
  readonly parallelizationFactor?: number
  /** @default -1 (until the record expires), range -1..10,000 */
  readonly maximumRetryAttempts?: number
  /** @default -1 (no limit), range -1 or 60..604,800 */
  readonly maximumRecordAgeInSeconds?: number
  /** @default false */
  readonly bisectBatchOnFunctionError?: boolean
  /** @default [] */
  readonly functionResponseTypes?: readonly 'ReportBatchItemFailures'[]
  /** At most 10, OR-ed, each a pattern as JSON text. @default none */
  readonly filterCriteria?: { readonly filters: readonly { readonly pattern: string }[] }
  /** What AWS does not document. @default see {@link EmulationSettings} */
  readonly emulation?: Partial<EmulationSettings>
}

/** Facts about the service that AWS does not state, or states loosely, and the speed of the emulator itself. */
export interface EmulationSettings {
  /** Between reads of a shard that is caught up. @default 1,000: AWS's base rate of one read a second */
  readonly pollIntervalMs: number
  /** Between reads of a shard with a backlog. @default 200: a shard answers five reads a second */
  readonly backlogPollIntervalMs: number
  /** Between listings of the shards; a drained shard asks for one at once. @default 10,000 */
  readonly shardSyncIntervalMs: number
  /** Wait before the first poll; with LATEST whatever arrives meanwhile is missed, as on AWS. @default 0 */
  readonly startDelayMs: number
  /**
   * Exponential wait before the next attempt; AWS does not document its own. The default makes eight attempts within the
   * first minute, as recorded on AWS. @default 400 ms doubling up to 60,000 ms
   */
  readonly backoff: { readonly initialMs: number; readonly factor: number; readonly maxMs: number }
  /** With a parallelization factor: whether a lane that is retrying also holds up the rest of its shard. @default 'blocks-lane' */
  readonly failingLane: 'blocks-lane' | 'blocks-shard'
  /** Which lane a partition key belongs to, from 0. @default FNV-1a of the key, modulo the parallelization factor */
  readonly laneOf: (partitionKey: string, parallelizationFactor: number) => number
  /** Whether a batch that is tried again is the same, or is filled up with what has arrived since. @default 'stays' */
  readonly retriedBatch: 'stays' | 'regroups'
  /**
   * A record that makes an event above the payload limit even alone: the function cannot be run, for ever unless by age, or each
   * try counts as a function error. @default 'not-run'
   */
  readonly oversizeRecord: 'not-run' | 'function-error'
  /** An answer of no known shape: silent success as far as is known, or a failure. @default 'success' */
  readonly unrecognisedAnswer: 'success' | 'failure'
  /** Limit of the event as JSON. @default 6,291,456 (6 MB) */
  readonly maxPayloadBytes: number
  /** Age at which the stream itself lets go of a record that is still being retried; -1 for never. @default -1 */
  readonly retentionMs: number
  /** Records read ahead per shard at most, never less than a batch for each lane. @default 10,000 */
  readonly maxBufferedRecords: number
  /** Bytes of events read ahead per shard at most; one read may pass it. @default 33,554,432 (32 MB) */
  readonly maxBufferedBytes: number
}

/** The settings after validation, nothing left out. Ages and windows are in milliseconds; `undefined` means no limit. */
export interface ResolvedSettings extends EmulationSettings {
  readonly uuid: string
  readonly functionArn: string
  readonly startingPosition: MappingSettings['startingPosition']
  readonly startingPositionTimestampMs: number | undefined
  readonly batchSize: number
  readonly windowMs: number
  readonly windowBegins: 'after-invocation' | 'first-record'
  readonly parallelizationFactor: number
  readonly maxRetryAttempts: number | undefined
  readonly maxRecordAgeMs: number | undefined
  readonly bisect: boolean
  readonly reportsItemFailures: boolean
  readonly patterns: readonly string[]
}

const emulationDefaults: EmulationSettings = {
  pollIntervalMs: 1_000,
  backlogPollIntervalMs: 200,
  shardSyncIntervalMs: 10_000,
  startDelayMs: 0,
  backoff: { initialMs: 400, factor: 2, maxMs: 60_000 },
  failingLane: 'blocks-lane',
  laneOf: fnvLaneOf,
  retriedBatch: 'stays',
  oversizeRecord: 'not-run',
  unrecognisedAnswer: 'success',
  maxPayloadBytes: 6 * 1024 * 1024,
  retentionMs: -1,
  maxBufferedRecords: 10_000,
  maxBufferedBytes: 32 * 1024 * 1024,
}

/** Validates as AWS does at create time. Throws a {@link ConfigurationError} that names the setting, its value and its range. */
export function resolveSettings(given: MappingSettings): ResolvedSettings {
  if (given.uuid === '') throw new ConfigurationError('uuid is empty: give the mapping an identity.')
  if (given.functionArn === '') throw new ConfigurationError('functionArn is empty: name the function to invoke.')
  const batchSize = integer('batchSize', given.batchSize ?? 100, 1, 10_000)
  const parallelizationFactor = integer('parallelizationFactor', given.parallelizationFactor ?? 1, 1, 10)
  const windowSeconds = given.maximumBatchingWindowInSeconds ?? 0
  const retries = integer('maximumRetryAttempts', given.maximumRetryAttempts ?? -1, -1, 10_000)
  const ageSeconds = given.maximumRecordAgeInSeconds ?? -1
  if (ageSeconds !== -1) integer('maximumRecordAgeInSeconds', ageSeconds, 60, 604_800, ', or -1 for no limit')
  const emulation = resolveEmulation(given.emulation ?? {})
  return {
    ...emulation,
    maxBufferedRecords: Math.max(emulation.maxBufferedRecords, batchSize * parallelizationFactor),
    uuid: given.uuid,
    functionArn: given.functionArn,
    startingPosition: startingPosition(given),
    startingPositionTimestampMs: given.startingPositionTimestampMs,
    batchSize,
    windowMs: integer('maximumBatchingWindowInSeconds', windowSeconds, 0, 300) * 1_000,
    windowBegins: 'after-invocation',
    parallelizationFactor,
    maxRetryAttempts: retries === -1 ? undefined : retries,
    maxRecordAgeMs: ageSeconds === -1 ? undefined : ageSeconds * 1_000,
    bisect: given.bisectBatchOnFunctionError ?? false,
    reportsItemFailures: reportsItemFailures(given.functionResponseTypes ?? []),
    patterns: patterns(given),
  }
}

function integer(name: string, value: number, least: number, most: number, or = ''): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new ConfigurationError(`${name} is ${value}: give an integer from ${least} to ${most}${or}.`)
}

function startingPosition(given: MappingSettings): MappingSettings['startingPosition'] {
  const { startingPosition: position, startingPositionTimestampMs: timestampMs } = given
  if (!['TRIM_HORIZON', 'LATEST', 'AT_TIMESTAMP'].includes(position)) {
    throw new ConfigurationError(`startingPosition is ${position}: give TRIM_HORIZON, LATEST or AT_TIMESTAMP.`)
  }
  if (position === 'AT_TIMESTAMP' && !(Number.isFinite(timestampMs) && Number(timestampMs) >= 0)) {
    throw new ConfigurationError(
      `startingPosition AT_TIMESTAMP comes with startingPositionTimestampMs ${timestampMs}: give milliseconds since 1970.`,
    )
  }
  if (position !== 'AT_TIMESTAMP' && timestampMs !== undefined) {
    throw new ConfigurationError(
      `startingPositionTimestampMs is ${timestampMs} but startingPosition is ${position}: leave it out, or use AT_TIMESTAMP.`,
    )
  }
  return position
}

function reportsItemFailures(types: readonly string[]): boolean {
  const unknown = types.find((type) => type !== 'ReportBatchItemFailures')
  if (unknown === undefined) return types.length > 0
  throw new ConfigurationError(`functionResponseTypes has ${unknown}: only ReportBatchItemFailures exists.`)
}

function patterns(given: MappingSettings): readonly string[] {
  const filters = given.filterCriteria?.filters ?? []
  if (filters.length <= 10) return filters.map((filter) => filter.pattern)
  throw new ConfigurationError(
    `filterCriteria has ${filters.length} filters: AWS allows 5, and 10 after a quota increase.`,
  )
}

function resolveEmulation(given: Partial<EmulationSettings>): EmulationSettings {
  const emulation = { ...emulationDefaults, ...given }
  const { backoff } = emulation
  const numbers = { ...emulation, 'backoff.initialMs': backoff.initialMs, 'backoff.maxMs': backoff.maxMs }
  for (const [name, value] of Object.entries(numbers)) {
    if (typeof value !== 'number' || (name === 'retentionMs' && value === -1)) continue
    if (!Number.isFinite(value) || value < 0) {
      throw new ConfigurationError(`emulation.${name} is ${value}: give a finite number that is not negative.`)
    }
  }
  if (!(backoff.factor >= 1)) {
    throw new ConfigurationError(`emulation.backoff.factor is ${backoff.factor}: give 1 or more.`)
  }
  return emulation
}
