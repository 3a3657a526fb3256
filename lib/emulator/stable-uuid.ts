import { hash } from 'node:crypto'

/** A UUID that depends on its parts alone, so that a replayed simulation shows the same ids. */
export function stableUuid(...parts: readonly string[]): string {
  const hex = hash('md5', JSON.stringify(parts))
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`
}
