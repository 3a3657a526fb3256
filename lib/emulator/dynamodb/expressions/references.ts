/**
 * Owns the `#names` and `:values` of one request: whatever an expression names must be given, and whatever is given must be used by
 * some expression of the request.
 */
import { invalid } from '../errors.ts'
import type { AttributeValue, Item } from '../shapes.ts'
import { parseValue } from '../value.ts'

export interface ExpressionParameters {
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>> | undefined
  readonly ExpressionAttributeValues?: Item | undefined
}

export class References {
  readonly #names: ReadonlyMap<string, string>
  readonly #values: ReadonlyMap<string, AttributeValue>
  readonly #unusedNames: Set<string>
  readonly #unusedValues: Set<string>

  /** Checks the shape of both, and every value. `expressions` are those of the request, where undefined are not given. */
  constructor(parameters: ExpressionParameters, expressions: Readonly<Record<string, string | undefined>>) {
    const { ExpressionAttributeNames: names, ExpressionAttributeValues: values } = parameters
    const given = Object.values(expressions).some((expression) => expression !== undefined)
    checkShape('ExpressionAttributeNames', names, '#', given, Object.keys(expressions))
    checkShape('ExpressionAttributeValues', values, ':', given, Object.keys(expressions))
    this.#names = new Map(Object.entries(names ?? {}))
    this.#values = new Map(
      Object.entries(values ?? {}).map(([key, value]) => {
        try {
          return [key, parseValue(value)]
        } catch (error) {
          const { message } = error as Error
          throw invalid(`ExpressionAttributeValues contains invalid value: ${message} for key ${key}`)
        }
      }),
    )
    this.#unusedNames = new Set(this.#names.keys())
    this.#unusedValues = new Set(this.#values.keys())
  }

  name(reference: string, expression: string): string {
    const name = this.#names.get(reference)
    if (name === undefined) {
      throw invalid(
        `Invalid ${expression}: An expression attribute name used in the document path is not defined; attribute name: ${reference}`,
      )
    }
    this.#unusedNames.delete(reference)
    return name
  }

  value(reference: string, expression: string): AttributeValue {
    const value = this.#values.get(reference)
    if (value === undefined) {
      throw invalid(
        `Invalid ${expression}: An expression attribute value used in expression is not defined; attribute value: ${reference}`,
      )
    }
    this.#unusedValues.delete(reference)
    return value
  }

  /** To be called after every expression of the request was parsed. */
  checkAllUsed(): void {
    checkUnused('ExpressionAttributeNames', this.#unusedNames)
    checkUnused('ExpressionAttributeValues', this.#unusedValues)
  }
}

function checkShape(
  field: string,
  entries: Readonly<Record<string, unknown>> | undefined,
  sign: '#' | ':',
  expressionGiven: boolean,
  expressions: readonly string[],
): void {
  if (entries === undefined) return
  if (!expressionGiven) {
    throw invalid(`${field} can only be specified when using expressions: ${expressions.join(', ')} is null`)
  }
  const keys = Object.keys(entries)
  if (keys.length === 0) throw invalid(`${field} must not be empty`)
  const wrong = keys.find((key) => !/^[#:][A-Za-z0-9_]+$/.test(key) || key[0] !== sign)
  if (wrong !== undefined) throw invalid(`${field} contains invalid key: Syntax error; key: "${wrong}"`)
}

function checkUnused(field: string, unused: ReadonlySet<string>): void {
  if (unused.size > 0) {
    throw invalid(`Value provided in ${field} unused in expressions: keys: {${[...unused].join(', ')}}`)
  }
}
