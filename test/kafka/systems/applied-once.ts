/** What an idempotent reader makes of a sink's topic: each identity once. It checks what Millrace promises of what it skips. */
import type { KafkaRecord } from '../../../lib/aws/kafka/kafka-port.ts'
import { text } from '../broker.ts'

/** The outputs of a topic, each once, and how many records repeated one. */
export interface AppliedOnce {
  readonly values: readonly unknown[]
  /** Of each, the headers as `<name>=<value>`, but for the identity. */
  readonly headers: readonly (readonly string[])[]
  readonly repeats: number
}

const identityHeader = 'millrace-output'

/** Of an identity `<topology>/<sink>/<source>/<partition>/<position>/<sub position>/<index>`: whose it is, and when. */
function placeOf(identity: string): { readonly upstream: string; readonly order: readonly number[] } {
  const parts = identity.split('/')
  return { upstream: parts.slice(0, 4).join('/'), order: parts.slice(4).map(Number) }
}

function isBehind(order: readonly number[], other: readonly number[]): boolean {
  const index = order.findIndex((part, i) => part !== other[i])
  return index !== -1 && (order[index] as number) > (other[index] as number)
}

/**
 * Takes each identity once. Throws where one comes again with other content (P3), or where an output of a key comes for the first
 * time behind a later one of that key and upstream partition (P4).
 */
export function appliedOnce(records: readonly KafkaRecord[]): AppliedOnce {
  const known = new Map<string, string>()
  const last = new Map<string, readonly number[]>()
  const values: unknown[] = []
  const headers: string[][] = []
  for (const record of records) {
    const key = text(record.key)
    const identity = text(record.headers.find(({ name }) => name === identityHeader)?.value)
    const others = record.headers.filter(({ name }) => name !== identityHeader)
    const own = others.map(({ name, value }) => `${name}=${text(value)}`)
    const content = JSON.stringify([record.partition, key, text(record.value), own])
    const before = known.get(identity)
    if (before !== undefined) {
      if (before !== content) throw new Error(`output ${identity} was ${before}, and came again as ${content}`)
      continue
    }
    known.set(identity, content)
    const { upstream, order } = placeOf(identity)
    const place = `${upstream} ${key}`
    const previous = last.get(place)
    if (previous && !isBehind(order, previous))
      throw new Error(`output ${identity} of key ${key} came behind one at ${previous.join('/')}`)
    last.set(place, order)
    values.push(JSON.parse(text(record.value)))
    headers.push(own)
  }
  return { values, headers, repeats: records.length - values.length }
}
