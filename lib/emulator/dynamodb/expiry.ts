/**
 * TTL: items whose attribute names a time that has passed are deleted when somebody sweeps, and not before.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ttl-expired-items.html
 */
import type { ItemWrite } from './effects.ts'
import type { AttributeValue } from './shapes.ts'
import type { World } from './world.ts'

/** What expired longer ago than this is taken for a mistake and stays. */
const OLDEST_EXPIRY_SECONDS = 5 * 365 * 86_400

/** Deletes every expired item and returns how many those were. TTL costs no write units. */
export function sweepExpired(world: World): number {
  const atMs = world.nowMs()
  const writes: ItemWrite[] = []
  for (const table of world.tables.values()) {
    if (table.ttlAttribute === undefined) continue
    for (const { key, item } of table.scan(undefined)) {
      if (isExpired(item[table.ttlAttribute], atMs)) writes.push({ table: table.name, deleted: key.attributes })
    }
  }
  if (writes.length > 0) world.commit({ type: 'items-written', atMs, writes, by: 'ttl' })
  return writes.length
}

function isExpired(value: AttributeValue | undefined, nowMs: number): boolean {
  if (value?.N === undefined) return false
  const ageSeconds = nowMs / 1_000 - Number(value.N)
  return ageSeconds > 0 && ageSeconds < OLDEST_EXPIRY_SECONDS
}
