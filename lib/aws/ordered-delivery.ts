/**
 * Ordered delivery as the AWS adapters use it: with the machine's randomness, and AWS's ways to say that a failure passes.
 */
import {
  type Destination,
  deliverInOrder as deliver,
  type DeliveryPorts as EnginePorts,
} from '../runtime/ordered-delivery.ts'
import type { Outcome } from '../runtime/sink.ts'
import { passesByItself } from './aws-failure.ts'

export { type Answer, backoffMs, type Destination } from '../runtime/ordered-delivery.ts'

/** The ports of a delivery. */
export type DeliveryPorts = Pick<EnginePorts, 'clock' | 'logger'> & {
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number
}

/** The engine's ports for an adapter. */
export function enginePorts({ clock, logger, random = Math.random }: DeliveryPorts): EnginePorts {
  return { clock, logger, random, passesByItself }
}

/** Delivers items by the invariants of `lib/runtime/ordered-delivery.ts` and answers for each by index. */
export function deliverInOrder<Item>(
  items: readonly Item[],
  destination: Destination<Item>,
  ports: DeliveryPorts,
  signal: AbortSignal,
): Promise<readonly Outcome[]> {
  return deliver(items, destination, enginePorts(ports), signal)
}
