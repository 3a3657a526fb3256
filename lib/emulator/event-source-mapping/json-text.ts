/**
 * JSON in which numbers keep their text. Filters compare numbers as they are written: 300 does not equal 300.0.
 */
export class NumberText {
  readonly text: string
  readonly value: number

  constructor(text: string, value: number) {
    this.text = text
    this.value = value
  }
}

/** A parsed JSON value. */
export type JsonText = string | boolean | null | NumberText | readonly JsonText[] | JsonTextObject

export interface JsonTextObject {
  readonly [key: string]: JsonText
}

/** Parses JSON text; `undefined` when it is none. */
export function parseJsonText(text: string): JsonText | undefined {
  const reviver = (_key: string, value: unknown, context?: { source?: string }): unknown => {
    if (typeof value === 'number') return new NumberText(context?.source ?? String(value), value)
    return value
  }
  try {
    return JSON.parse(text, reviver) as JsonText
  } catch {
    return undefined
  }
}

export function isObject(value: JsonText | undefined): value is JsonTextObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof NumberText)
}

export function isList(value: JsonText | undefined): value is readonly JsonText[] {
  return Array.isArray(value)
}
