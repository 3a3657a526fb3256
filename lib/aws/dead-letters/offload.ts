/** Where the whole of an entry goes that is too large for its transport. */
import type { Outcome } from '../../runtime/sink.ts'
import { type DeliveryPorts, type Destination, deliverInOrder } from '../ordered-delivery.ts'
import type { FittedEntry } from './entry.ts'

/** One whole entry on its way to its bucket. */
export interface DeadLetterObject {
  readonly key: string
  readonly text: string
}

/** A bucket for whole entries. It is opened when the first of them comes, as few functions ever meet one. */
export interface DeadLetterOffload {
  readonly bucket: string
  open(): Promise<Destination<DeadLetterObject>>
}

/**
 * Stores the objects of oversize entries, then hands on those entries whose object is stored or that have none. An entry
 * whose object is not stored is never sent, as it would point to nothing.
 */
export async function deliverOffloaded(
  entries: readonly FittedEntry[],
  offload: DeadLetterOffload | undefined,
  ports: DeliveryPorts,
  signal: AbortSignal,
  deliver: (entries: readonly FittedEntry[]) => Promise<readonly Outcome[]>,
): Promise<readonly Outcome[]> {
  const objects = entries.flatMap(({ object }) => object ?? [])
  if (!offload || objects.length === 0) return deliver(entries)
  const stored = await deliverInOrder(objects, await offload.open(), ports, signal)
  const failures = new Map(
    objects.flatMap((object, i) => (stored[i]?.status === 'delivered' ? [] : [[object, stored[i]]])),
  )
  const sent = entries.filter(({ object }) => !object || !failures.has(object))
  const outcomes = await deliver(sent)
  const outcomeOf = new Map(sent.map((entry, i) => [entry, outcomes[i]]))
  return entries.map((entry) => (outcomeOf.get(entry) ?? (entry.object && failures.get(entry.object))) as Outcome)
}
