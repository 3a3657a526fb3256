/** Iterators and paging tokens, as the embedded services make them: fields in text that is opaque to clients. */

export function writeToken(fields: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(fields)).toString('base64url')
}

/** The fields of a token; none where it is not one. */
export function readToken(token: string): unknown[] {
  try {
    const fields: unknown = JSON.parse(Buffer.from(token, 'base64url').toString())
    return Array.isArray(fields) ? fields : []
  } catch {
    return []
  }
}

/** Whether a field is a whole number from 0, as numbers of records and times are. */
export const isCount = (field: unknown): field is number => Number.isSafeInteger(field) && Number(field) >= 0
