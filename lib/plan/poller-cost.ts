/** What provisioned pollers of Kafka mappings cost: event poller units by the hour, whether records come or not. */
import { hoursPerMonth, prices } from './prices.ts'

export interface PollersCost {
  /** Event poller units. */
  readonly units: number
  /** In dollars. */
  readonly perUnitHour: number
  /** In dollars. */
  readonly perMonth: number
}

/**
 * What so many pollers of one group cost, or of one mapping without a group.
 *
 * @example
 * pollersCost(1).perMonth // 135.05
 */
export function pollersCost(pollers: number): PollersCost {
  const { perUnitHour, pollersPerUnit } = prices.kafkaPollers
  const units = Math.max(1, Math.ceil(pollers / pollersPerUnit))
  return { units, perUnitHour, perMonth: units * perUnitHour * hoursPerMonth }
}
