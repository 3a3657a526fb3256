/**
 * Bindings as the environment of a function holds them. Lambda takes 4 KB there for all variables, and a cluster's authority alone may
 * have two: so each Kafka cluster is written once, as `clusters`, and named elsewhere by its number there.
 */
import type { AnnouncerBindings, StageBindings } from './stage-bindings.ts'

/** What is written: bindings, in which a `cluster` may be a number. */
export type PackedBindings = object

/**
 * Packs what a function is told.
 *
 * @example
 * const text = JSON.stringify(packedBindings(bindings))
 */
export function packedBindings(bindings: StageBindings | AnnouncerBindings): PackedBindings {
  const numbers = new Map<string, number>()
  const clusters: unknown[] = []
  const packed = withClusters(bindings, (cluster) => {
    const name = JSON.stringify(cluster)
    const number = numbers.get(name) ?? clusters.push(cluster) - 1
    numbers.set(name, number)
    return number
  })
  return clusters.length === 0 ? bindings : { ...(packed as object), clusters }
}

/** Undoes it. What was never packed, as that of a local run, stays as it is; what are no bindings, too. */
export function unpackedBindings<Bindings>(value: Bindings): Bindings {
  const { clusters, ...packed } = Object(value)
  if (!Array.isArray(clusters)) return value
  return withClusters(packed, (cluster) => (typeof cluster === 'number' ? clusters[cluster] : cluster)) as Bindings
}

/** A copy with other clusters. What only the deployment knows is no plain object, and stays the same. */
function withClusters(value: unknown, change: (cluster: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => withClusters(item, change))
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      name,
      name === 'cluster' && part !== undefined ? change(part) : withClusters(part, change),
    ]),
  )
}
