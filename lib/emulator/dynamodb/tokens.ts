import { isCount, readToken, writeToken } from '../token-fields.ts'
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

export function encodeIterator({ streamArn, number, issuedAtMs }: IteratorToken): string {
  return writeToken(['iterator', streamArn, number, issuedAtMs])
}

export function decodeIterator(text: string): IteratorToken {
  const [kind, streamArn, number, issuedAtMs] = readToken(text)
  if (kind === 'iterator' && typeof streamArn === 'string' && isCount(number) && isCount(issuedAtMs)) {
    return { streamArn, number, issuedAtMs }
  }
  throw invalid('Invalid ShardIterator: take one from GetShardIterator or GetRecords.')
}
