/** Provisioned pollers of a mapping: what they are, within the limits of Lambda, and what they cost. */
import { Annotations, Token } from 'aws-cdk-lib'
import type { ProvisionedPollerConfig } from 'aws-cdk-lib/aws-lambda'
import type { IConstruct } from 'constructs'
import { ConfigurationError } from '../../core/errors.ts'
import { pollersCost } from '../../plan/poller-cost.ts'
import { pricesAsOf } from '../../plan/prices.ts'

/**
 * How many pollers Lambda keeps for a mapping. Each takes 5 MB a second or five invocations at a time, and there are never more than
 * the topic has partitions.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/kafka-scaling-modes.html
 */
export interface Pollers {
  /** Always there, 1 to 200. They are paid by the hour, see docs/kafka.md. @default 1 */
  readonly minimum?: number
  /** As the topic asks for, 1 to 2,000. @default 200 */
  readonly maximum?: number
  /**
   * A name of 1 to 128 letters, digits, "-" and "_": mappings of one name in one VPC, up to 100 with up to 2,000 pollers in all, share
   * what is paid for. @default the mapping pays for itself
   */
  readonly group?: string
}

/** Completes the pollers, or throws a {@link ConfigurationError} that names the source and the limit. */
export function checkedPollers(resource: string, pollers: Pollers): Required<Pick<Pollers, 'minimum'>> & Pollers {
  const minimum = within(resource, 'minimum', pollers.minimum ?? 1, 200)
  if (pollers.maximum !== undefined) {
    const maximum = within(resource, 'maximum', pollers.maximum, 2_000)
    if (!Token.isUnresolved(maximum) && !Token.isUnresolved(minimum) && maximum < minimum) {
      throw new ConfigurationError(
        `the source on ${resource} has pollers from ${minimum} to ${maximum}: the maximum must not be below the minimum.`,
      )
    }
  }
  const { group } = pollers
  if (group !== undefined && !Token.isUnresolved(group) && !/^[\w-]{1,128}$/.test(group)) {
    throw new ConfigurationError(
      `the source on ${resource} has pollers of the group "${group}": give a name of 1 to 128 letters, digits, "-" and "_".`,
    )
  }
  return { ...pollers, minimum }
}

function within(resource: string, what: string, value: number, most: number): number {
  if (Token.isUnresolved(value) || (Number.isInteger(value) && value >= 1 && value <= most)) return value
  throw new ConfigurationError(
    `the source on ${resource} has pollers with the ${what} ${value}: give a whole number from 1 to ${most.toLocaleString('en')}.`,
  )
}

export const pollerConfigOf = ({ minimum, maximum, group }: Pollers): ProvisionedPollerConfig => ({
  ...(minimum === undefined ? {} : { minimumPollers: minimum }),
  ...(maximum === undefined ? {} : { maximumPollers: maximum }),
  ...(group === undefined ? {} : { pollerGroupName: group }),
})

/** Says at synth what pollers cost, whatever comes: nothing else of a mapping is paid while nothing happens. */
export function sayPrice(mapping: IConstruct, { minimum = 1, group }: Pollers): void {
  const { units, perMonth, perUnitHour } = pollersCost(Token.isUnresolved(minimum) ? 1 : minimum)
  const shared = group === undefined ? '' : `; it is paid once for all of the group "${group}"`
  Annotations.of(mapping).addInfoV2(
    'millrace:provisioned-pollers',
    `the mapping ${mapping.node.path} has provisioned pollers, which cost at least $${Math.round(perMonth)} a month: ${units === 1 ? '1 event poller unit' : `${units} event poller units`} at $${perUnitHour} an hour (us-east-1, ${pricesAsOf}), more while it needs more${shared}.`,
  )
}
