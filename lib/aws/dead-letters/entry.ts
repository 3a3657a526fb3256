/**
 * Dead letters as the transports carry them: JSON that fits, whatever the record was like.
 *
 * 1. An entry always fits its transport's limit, so that no record can block its shard by being too large to give up.
 * 2. What an entry had to leave out it says: `offloaded` names the S3 object with the whole entry, `omitted` counts the
 *    bytes that only the source still has, at the entry's coordinates.
 */
import type { DeadLetter } from '../../runtime/dead-letter.ts'

/** A dead letter on a transport. Without `offloaded` and `omitted` it is whole. */
export type DeadLetterEntry = DeadLetter & {
  /** The S3 object that holds the whole entry; payload, key and headers are left out here. */
  readonly offloaded?: { readonly bucket: string; readonly key: string }
  /** Payload, key and headers were left out and are nowhere but at the source. */
  readonly omitted?: { readonly bytes: number; readonly because: string }
}

/** An entry that fits, and where it does not hold everything, the object that does. */
export interface FittedEntry {
  readonly id: string
  readonly text: string
  readonly object: { readonly key: string; readonly text: string } | undefined
}

const longestMessage = 2_000

/** Letters, digits and `.-_` stay, `/` becomes `!`, anything else `~<code point in hex>~`: no two ids become one. */
function pathSafe(id: string): string {
  return id.replaceAll(/[^A-Za-z0-9._-]/gu, (character) =>
    character === '/' ? '!' : `~${character.codePointAt(0)?.toString(16)}~`,
  )
}

/**
 * Where the whole entry lies in S3: `dead-letters/<topology>/<stage>/<yyyy>/<mm>/<dd>/<id>.json`, by the UTC day on which
 * the record was given up.
 */
export function deadLetterObjectKey({ topology, stage, id, failedAtMs }: DeadLetter): string {
  const day = new Date(failedAtMs).toISOString().slice(0, 10).replaceAll('-', '/')
  return `dead-letters/${topology}/${stage}/${day}/${pathSafe(id)}.json`
}

/** JSON in the characters that every transport takes: SQS refuses U+FFFE and U+FFFF. */
export function entryText(entry: DeadLetterEntry): string {
  return JSON.stringify(entry).replaceAll(/[\ufffe\uffff]/g, (character) =>
    character === '\ufffe' ? '\\ufffe' : '\\uffff',
  )
}

/** The entry without all that may be large. */
function pointer(letter: DeadLetter): DeadLetter {
  const { reason, output } = letter
  const name = reason.name.slice(0, longestMessage)
  const message = reason.message.slice(0, longestMessage)
  const short = { ...letter, reason: { ...reason, name, message }, key: null, payload: null, headers: [] }
  return output === undefined ? short : { ...short, output: { ...output, value: null } }
}

/**
 * Makes an entry of at most `limitBytes`. One that is larger keeps its coordinates and its reason only; the whole goes to
 * `bucket` where there is one. Without one the value of an output that a sink refused is left out first: its record stays.
 *
 * @example
 * fitEntry(letter, 1_048_576, undefined).text // '{"formatVersion":1,…,"omitted":{"bytes":1500000,"because":…}}'
 */
export function fitEntry(letter: DeadLetter, limitBytes: number, bucket: string | undefined): FittedEntry {
  const text = entryText(letter)
  const bytes = Buffer.byteLength(text)
  if (bytes <= limitBytes) return { id: letter.id, text, object: undefined }
  if (bucket !== undefined) {
    const key = deadLetterObjectKey(letter)
    const entry: DeadLetterEntry = { ...pointer(letter), offloaded: { bucket, key } }
    return { id: letter.id, text: entryText(entry), object: { key, text } }
  }
  if (letter.output?.value)
    return fitEntry({ ...letter, output: { ...letter.output, value: null } }, limitBytes, bucket)
  const short = pointer(letter)
  const because = `the entry has ${bytes} bytes and its transport takes ${limitBytes}; no bucket for large ones is bound`
  const omitted = { bytes: bytes - Buffer.byteLength(entryText(short)), because }
  return { id: letter.id, text: entryText({ ...short, omitted }), object: undefined }
}
