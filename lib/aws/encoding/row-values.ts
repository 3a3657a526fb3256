/**
 * Table rows as JavaScript objects, exactly: what the object could not hold is refused, as writing it back would change it.
 *
 * 1. A number comes as a number where that is exact, else, where it is whole, as a bigint.
 * 2. Sets are refused: no plain value stands for them.
 */
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import { TerminalError } from '../../core/errors.ts'
import { exactNumber } from '../../core/exact-number.ts'
import { attributeValue, checkAttributeName } from './attribute-values.ts'

/** The attributes of a table row. `undefined` counts as left out. */
export type TableRow = Readonly<Record<string, unknown>>

/** The row as the table holds it. Throws a {@link TerminalError} (code `unsupported-value`). */
export function attributesOf(row: TableRow): Record<string, AttributeValue> {
  const attributes: Record<string, AttributeValue> = {}
  for (const [name, value] of Object.entries(row)) {
    if (value !== undefined) attributes[checkAttributeName(name, 'of the row')] = attributeValue(value, name)
  }
  return attributes
}

/** The row as an object. Throws a {@link TerminalError} (code `unsupported-value`) for what an object cannot hold. */
export function rowOf(attributes: Readonly<Record<string, AttributeValue>>): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (const [name, attribute] of Object.entries(attributes)) row[name] = plainOf(attribute, name)
  return row
}

function plainOf(attribute: AttributeValue, path: string): unknown {
  if (attribute.S !== undefined) return attribute.S
  if (attribute.N !== undefined) return numberOf(attribute.N, path)
  if (attribute.BOOL !== undefined) return attribute.BOOL
  if (attribute.NULL !== undefined) return null
  if (attribute.B !== undefined) return attribute.B
  if (attribute.L !== undefined) return attribute.L.map((element, index) => plainOf(element, `${path}[${index}]`))
  if (attribute.M !== undefined) {
    const entries = Object.entries(attribute.M)
    return Object.fromEntries(entries.map(([name, element]) => [name, plainOf(element, `${path}.${name}`)]))
  }
  return refuse(path, `has the type ${Object.keys(attribute)[0]}: keep a list instead`)
}

function numberOf(text: string, path: string): number | bigint {
  return exactNumber(text) ?? refuse(path, `is the number ${text}, which has more digits than a JavaScript number`)
}

function refuse(path: string, what: string): never {
  throw new TerminalError(`the attribute ${path} ${what}`, { code: 'unsupported-value' })
}
