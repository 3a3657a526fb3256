import { inParallel } from '../../runtime/keyed/in-parallel.ts'

/**
 * Runs a call for each batch of `size` items, of which at most `most` are in flight. After one failed no further one starts;
 * rejects with the first failure once what was begun has ended.
 */
export function inBatches<T>(
  items: readonly T[],
  size: number,
  most: number,
  call: (batch: T[]) => Promise<void>,
): Promise<void> {
  const batches = Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  )
  return inParallel(batches, most, call)
}
