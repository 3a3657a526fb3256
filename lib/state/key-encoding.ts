/**
 * From keys and names to the keys of the table, readable and without ambiguity.
 *
 * 1. Different names have different table keys: the kind stands before the first `#`, a state's name is escaped, and a key
 *    or an entry's name comes last, as it is, so that nothing in it can be mistaken for a separator.
 * 2. The items of one key, and no others, share a partition (`pk`): its key item first, then the entries of each map state.
 * 3. Within a map state, entries sort by the UTF-8 bytes of their names, as DynamoDB sorts text. Names that are too long
 *    sort by their beginning.
 * 4. A text that is too long for the table ends in its SHA-256 and is exactly as long as the table allows, where other
 *    texts are shorter. The full text is kept beside it and compared when the item is read.
 * 5. Due entries share a partition per slot, and sort by domain, time and key.
 */
import { createHash } from 'node:crypto'
import { invariant, TerminalError } from '../core/errors.ts'
import type { DueEntry, EntryName, TimerDomain } from './state-store.ts'

/** A key or the name of an entry: text, bytes, or several texts in their order. */
export type Key = string | Uint8Array | readonly string[]

/** Where an item stands in the table. */
export interface TableKey {
  readonly pk: string
  readonly sk: string
  /** The whole of `pk` and `sk` where that is too long for the table. */
  readonly pkText: string | undefined
  readonly skText: string | undefined
}

/**
 * In UTF-8 bytes.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
 */
const longestPartitionKeyBytes = 2_048
const longestSortKeyBytes = 1_024
const longestStateNameBytes = 255

/** What a text key begins with that could be taken for another kind of key. */
const ambiguous = /^(?:\[|bytes:|text:)/

/**
 * The one text of a key, by which the runtime and the stores know it. Text stays as it is, except where it begins like
 * another kind: then `text:` is put before it.
 *
 * @example
 * keyText('h1')               // 'h1'
 * keyText(['doc-7', '12'])    // '["doc-7","12"]'
 * keyText(Uint8Array.of(255)) // 'bytes:ff'
 * keyText('bytes:ff')         // 'text:bytes:ff'
 */
export function keyText(key: Key): string {
  if (typeof key === 'string') return ambiguous.test(key) ? `text:${key}` : key
  if (key instanceof Uint8Array) return `bytes:${Buffer.from(key).toString('hex')}`
  return JSON.stringify(key)
}

/** The key of a text that {@link keyText} made. */
export function keyOfText(text: string): Key {
  if (text.startsWith('text:')) return text.slice('text:'.length)
  if (text.startsWith('bytes:')) return new Uint8Array(Buffer.from(text.slice('bytes:'.length), 'hex'))
  return text.startsWith('[') ? (JSON.parse(text) as string[]) : text
}

/** Where a key's item stands: first in its partition. */
export function keyItemKey(key: string): TableKey {
  return tableKey(`key#${key}`, 'key')
}

/** Where an entry of a key's map state stands: beside the key's item. */
export function entryKey({ key, state, entry }: EntryName): TableKey {
  return tableKey(`key#${key}`, entryPrefix(state) + entry)
}

/** What the sort keys of all entries of a map state begin with, and those of no other. */
export function entryPrefix(state: string): string {
  const escaped = state.replaceAll('%', '%25').replaceAll('#', '%23')
  invariant(
    Buffer.byteLength(escaped) <= longestStateNameBytes,
    `the state name "${state.slice(0, 50)}..." has more than ${longestStateNameBytes} bytes`,
  )
  return `map#${escaped}#`
}

/** Where the progress of a partition stands. */
export function progressKey(partition: string): TableKey {
  return tableKey(`progress#${partition}`, 'progress')
}

/** Where the manifest of the table stands. */
export function manifestKey(): TableKey {
  return tableKey('manifest#', 'manifest')
}

/** Where a due entry stands. Throws a TerminalError for a key that is no text of whole characters. */
export function dueKey({ slot, domain, timeMs, key }: DueEntry): TableKey {
  return tableKey(duePartition(slot), `${duePrefix(domain)}${sortableTime(timeMs)}#${key}`)
}

/** The `pk` of all due entries of a slot. */
export function duePartition(slot: number): string {
  invariant(Number.isSafeInteger(slot) && slot >= 0, `${slot} is no slot`)
  return `due#${slot}`
}

/** What the sort keys of all due entries of a domain begin with. */
export const duePrefix = (domain: TimerDomain): string => (domain === 'event-time' ? 'e#' : 'p#')

/** Time and key of a due entry, from its whole sort key; undefined for a text that {@link dueKey} never makes. */
export function dueOfSortKey(sk: string): Pick<DueEntry, 'timeMs' | 'key'> | undefined {
  const match = /^[ep]#([0-]\d{16})#/.exec(sk)
  if (match === null) return undefined
  const [prefix, text = ''] = match
  return {
    timeMs: text.startsWith('-') ? Number(text.slice(1)) - Number.MAX_SAFE_INTEGER : Number(text),
    key: sk.slice(prefix.length),
  }
}

/** `00001767225600000`; before 1970, `-` and what is left to the least safe integer: `-` sorts before any digit. */
function sortableTime(timeMs: number): string {
  invariant(Number.isSafeInteger(timeMs), `${timeMs} is no time of a due entry`)
  if (timeMs >= 0) return String(timeMs).padStart(17, '0')
  return `-${String(Number.MAX_SAFE_INTEGER + timeMs).padStart(16, '0')}`
}

/** Orders texts by their UTF-8 bytes, as DynamoDB orders sort keys; JavaScript's own order is that of UTF-16. */
export function compareUtf8(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length)
  for (let i = 0; i < shorter; i += 1) {
    const left = a.charCodeAt(i)
    const right = b.charCodeAt(i)
    if (left !== right) return rankOf(left) - rankOf(right)
  }
  return a.length - b.length
}

/** Surrogates stand for code points above all other units. */
const rankOf = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit)

function tableKey(pkText: string, skText: string): TableKey {
  const pk = shortened(pkText, longestPartitionKeyBytes)
  const sk = shortened(skText, longestSortKeyBytes)
  return { pk, sk, pkText: pk === pkText ? undefined : pkText, skText: sk === skText ? undefined : skText }
}

function shortened(text: string, longestBytes: number): string {
  if (!text.isWellFormed()) {
    throw new TerminalError(
      `the key or name ${JSON.stringify(text.slice(0, 100))} holds half a surrogate pair, which UTF-8 cannot hold: use bytes instead`,
      { code: 'unsupported-key' },
    )
  }
  // A UTF-16 unit becomes three bytes at most.
  if (text.length * 3 < longestBytes || Buffer.byteLength(text) < longestBytes) return text
  const bytes = Buffer.from(text)
  const digest = `#${createHash('sha256').update(bytes).digest('hex')}`
  const room = longestBytes - digest.length
  let end = room
  // A byte 10xxxxxx goes on with a character that began before it.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end) + '~'.repeat(room - end) + digest
}
