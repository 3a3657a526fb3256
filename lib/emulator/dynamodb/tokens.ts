import { invalid } from './errors.ts'

/**
 * Shard iterators hold all that they mean, so that the model keeps no list of them and they outlive a restart. To clients they are
 * opaque.
 */
export interface IteratorToken {
  readonly streamArn: string
  /** The number of the next record to read. */
  readonly number: number
  readonly issuedAtMs: number
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

export function encodeIterator({ streamArn, number, issuedAtMs }: IteratorToken): string {
  return Buffer.from(JSON.stringify(['iterator', streamArn, number, issuedAtMs])).toString('base64url')
}

export function decodeIterator(text: string): IteratorToken {
  const [kind, streamArn, number, issuedAtMs] = decode(text)
  if (kind === 'iterator' && typeof streamArn === 'string' && isCount(number) && isCount(issuedAtMs)) {
    return { streamArn, number, issuedAtMs }
  }
  throw invalid('Invalid ShardIterator: take one from GetShardIterator or GetRecords.')
}

function decode(token: string): unknown[] {
  try {
    const fields: unknown = JSON.parse(Buffer.from(token, 'base64url').toString())
    return Array.isArray(fields) ? fields : []
  } catch {
    return []
  }
}
