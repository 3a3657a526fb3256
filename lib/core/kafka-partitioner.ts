/** Where producers of Kafka put a key: by its murmur2 hash, as the Java client has it, so that all writers of a topic agree. */

const mix = 0x5bd1e995

/**
 * The partition of a key.
 *
 * @see https://github.com/apache/kafka/blob/trunk/clients/src/main/java/org/apache/kafka/common/utils/Utils.java (murmur2)
 * @example
 * partitionOf(Buffer.from('21'), 4)
 */
export function partitionOf(key: Uint8Array, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions
}

/** The hash as a signed number of 32 bits. */
export function murmur2(bytes: Uint8Array): number {
  const { length } = bytes
  const view = new DataView(bytes.buffer, bytes.byteOffset, length)
  let hash = 0x9747b28c ^ length
  const whole = length - (length % 4)
  for (let i = 0; i < whole; i += 4) {
    const word = Math.imul(view.getInt32(i, true), mix)
    hash = Math.imul(hash, mix) ^ Math.imul(word ^ (word >>> 24), mix)
  }
  if (whole < length) {
    for (let i = length - 1; i >= whole; i -= 1) hash ^= view.getUint8(i) << (8 * (i - whole))
    hash = Math.imul(hash, mix)
  }
  hash = Math.imul(hash ^ (hash >>> 13), mix)
  return hash ^ (hash >>> 15)
}
