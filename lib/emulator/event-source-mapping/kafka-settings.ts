import { ConfigurationError } from '../../core/errors.ts'
import { type EmulationSettings, type MappingSettings, type ResolvedSettings, resolveSettings } from './settings.ts'

/**
 * The parameters of an event source mapping on a Kafka topic, with AWS's names, ranges and defaults.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/with-msk-configure.html
 *
 * @example
 * const settings: KafkaMappingSettings = {
 *   uuid: '7f6c2f6e-2a67-4d7c-9c50-6f9f5c1f0a11',
 *   functionArn: 'arn:aws:lambda:us-east-1:000000000000:function:bookings',
 *   startingPosition: 'TRIM_HORIZON',
 *   mode: 'provisioned',
 *   functionResponseTypes: ['ReportBatchItemFailures'],
 * }
 */
export interface KafkaMappingSettings extends Omit<MappingSettings, 'parallelizationFactor' | 'emulation'> {
  /**
   * Whether the mapping has provisioned pollers. Without them it knows no partial answers, no limit of retries or of age and no
   * bisecting: a batch comes again whole until it succeeds or expires. AWS does not say whether it refuses those settings then
   * [I]; here they count for nothing, so that a handler that relies on them fails in a test.
   */
  readonly mode: 'on-demand' | 'provisioned'
  /**
   * How many pollers share the partitions, each with one batch in flight; never more than there are partitions. AWS scales them by
   * itself, between the limits that the mapping has. @default 1, range 1..2,000
   */
  readonly pollers?: number
  /** @default the mapping's uuid */
  readonly consumerGroupId?: string
  /** @default half a second, which cannot be asked for; range 0..300 */
  readonly maximumBatchingWindowInSeconds?: number
  /** @default see {@link EmulationSettings}; but 100 ms between polls without a backlog, and none with one */
  readonly emulation?: Partial<EmulationSettings>
}

/** The settings after validation, nothing left out. */
export interface ResolvedKafkaSettings extends ResolvedSettings {
  readonly pollers: number
  readonly consumerGroupId: string
}

/** The batching window that a mapping has until it is given one. */
const defaultWindowMs = 500
/** [D] What infinite retries are capped at where there is a destination. */
const retriesWithDestination = 10

/**
 * Validates as AWS does at create time. Throws a {@link ConfigurationError} that names the setting, its value and its range.
 * `hasDestination`: what is given up goes to a destination.
 */
export function resolveKafkaSettings(given: KafkaMappingSettings, hasDestination: boolean): ResolvedKafkaSettings {
  const { mode, pollers = 1, consumerGroupId = given.uuid, emulation, ...shared } = given
  if (mode !== 'on-demand' && mode !== 'provisioned')
    throw new ConfigurationError(`mode is ${String(mode)}: give 'on-demand' or 'provisioned'.`)
  if (!Number.isInteger(pollers) || pollers < 1 || pollers > 2_000)
    throw new ConfigurationError(`pollers is ${pollers}: give an integer from 1 to 2000.`)
  if (consumerGroupId === '') throw new ConfigurationError('consumerGroupId is empty: name the group, or leave it out.')
  const polling = { pollIntervalMs: 100, backlogPollIntervalMs: 0 }
  const resolved = resolveSettings({ ...shared, emulation: { ...polling, ...emulation } })
  const windowMs = given.maximumBatchingWindowInSeconds === undefined ? defaultWindowMs : resolved.windowMs
  const all = { ...resolved, windowMs, windowBegins: 'first-record', pollers, consumerGroupId } as const
  if (mode === 'on-demand') {
    return { ...all, reportsItemFailures: false, maxRetryAttempts: undefined, maxRecordAgeMs: undefined, bisect: false }
  }
  return hasDestination ? { ...all, maxRetryAttempts: all.maxRetryAttempts ?? retriesWithDestination } : all
}
