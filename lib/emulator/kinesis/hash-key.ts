import { hash } from 'node:crypto'

/** Hash keys are the integers [0, 2^128). */
export const HASH_KEY_COUNT = 1n << 128n
/** Decimal digits that a request may give for one. */
export const HASH_KEY_DIGITS = 39

/**
 * Where Kinesis routes a partition key: the MD5 of its UTF-8 bytes, read as a big-endian 128-bit integer.
 *
 * @see https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecord.html
 * @example
 * hashKeyOf('a') // 16955237001963240173058271559858726497n
 */
export function hashKeyOf(partitionKey: string): bigint {
  return BigInt(`0x${hash('md5', partitionKey, 'hex')}`)
}

/**
 * The first hash key of each of `count` equal ranges. The i-th is floor(i * 2^128 / count) rather than i times a rounded
 * width, so that doubling the count keeps every boundary that was there.
 */
export function uniformStarts(count: number): bigint[] {
  return Array.from({ length: count }, (_, i) => (BigInt(i) * HASH_KEY_COUNT) / BigInt(count))
}

/** Reads a hash key in decimal; undefined for anything that is not an integer in [0, 2^128) written without leading zeros. */
export function parseHashKey(text: string): bigint | undefined {
  if (!/^(0|[1-9]\d{0,38})$/.test(text)) return undefined
  const hashKey = BigInt(text)
  return hashKey < HASH_KEY_COUNT ? hashKey : undefined
}
