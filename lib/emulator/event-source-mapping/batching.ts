/** When a lane's waiting records become a batch, and which of them, as pure functions. */

export interface BatchRules {
  readonly batchSize: number
  readonly windowMs: number
  /** Limit of the event's JSON. */
  readonly maxPayloadBytes: number
  /** Bytes of the event's JSON with no record in it. */
  readonly emptyEventBytes: number
}

/** How many of the waiting records make up the next batch, and whether size or payload close it before its window does. */
export function nextBatch(
  waiting: readonly { readonly eventBytes: number }[],
  rules: BatchRules,
): { readonly count: number; readonly isFull: boolean } {
  let bytes = rules.emptyEventBytes
  let count = 0
  for (const { eventBytes } of waiting) {
    if (count === rules.batchSize) break
    bytes += eventBytes
    // A record that is too large even alone is still taken alone: no batch of it could ever be smaller.
    if (bytes > rules.maxPayloadBytes && count > 0) return { count, isFull: true }
    count += 1
  }
  return { count, isFull: count === rules.batchSize }
}

/**
 * When the window closes in which the first waiting record arrived. A stream's next window begins when the previous
 * invocation completes, and an empty window is followed by another; one without a start, as of Kafka, begins with that record.
 */
export function windowEndMs(windowStartMs: number | undefined, firstWaitingMs: number, windowMs: number): number {
  if (windowMs === 0 || windowStartMs === undefined) return firstWaitingMs + windowMs
  const emptyWindows = Math.max(0, Math.floor((firstWaitingMs - windowStartMs) / windowMs))
  return windowStartMs + (emptyWindows + 1) * windowMs
}

/**
 * The lane of a key: FNV-1a over its UTF-16 units, modulo the parallelization factor. AWS does not document its own; only that
 * order holds per partition key.
 */
export function laneOf(partitionKey: string, parallelizationFactor: number): number {
  if (parallelizationFactor === 1) return 0
  let hash = 0x811c9dc5
  for (let index = 0; index < partitionKey.length; index += 1) {
    hash = Math.imul(hash ^ partitionKey.charCodeAt(index), 0x01000193)
  }
  return (hash >>> 0) % parallelizationFactor
}
