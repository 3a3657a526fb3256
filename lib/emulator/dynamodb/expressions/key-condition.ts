/**
 * Key conditions: the partition key equals a value, and the sort key may be compared with one.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.KeyConditionExpressions.html
 */
import { invalid } from '../errors.ts'
import type { AttributeValue } from '../shapes.ts'
import { compareValues } from '../value.ts'
import type { Condition, Operand } from './condition.ts'
import { beginsWith } from './evaluate.ts'

/** The key attributes of a table with the types that their values must have. */
export interface KeyTypes {
  readonly hash: { readonly name: string; readonly type: 'S' | 'N' | 'B' }
  readonly range: { readonly name: string; readonly type: 'S' | 'N' | 'B' } | undefined
}

/** A range of sort keys: all from the first that is not `before` it to the last that is not `beyond` it. */
export interface KeyCondition {
  readonly hash: AttributeValue
  before(sortKey: AttributeValue): boolean
  beyond(sortKey: AttributeValue): boolean
}

interface SortRange {
  before(sortKey: AttributeValue): boolean
  beyond(sortKey: AttributeValue): boolean
}

const everything: SortRange = { before: () => false, beyond: () => false }
const order = (sortKey: AttributeValue, bound: AttributeValue): number => compareValues(sortKey, bound) ?? 0

export function keyConditionOf(condition: Condition, keys: KeyTypes): KeyCondition {
  const parts = condition.type === 'and' ? [condition.left, condition.right] : [condition]
  const hashPart = parts.find((part) => attributeOf(part) === keys.hash.name)
  if (hashPart === undefined) throw invalid(`Query condition missed key schema element: ${keys.hash.name}`)
  if (hashPart.type !== 'compare' || hashPart.comparator !== '=') throw notSupported()
  const hash = literal(hashPart.right, keys.hash.type)
  const other = parts.find((part) => part !== hashPart)
  if (other === undefined) return { hash, ...everything }
  if (keys.range === undefined || attributeOf(other) !== keys.range.name) {
    throw keys.range === undefined
      ? notSupported()
      : invalid(`Query condition missed key schema element: ${keys.range.name}`)
  }
  return { hash, ...sortRange(other, keys.range.type) }
}

const notSupported = () => invalid('Query key condition not supported')

/** The attribute on the left of a condition; anything that is not of the form `attribute operator values` is not supported. */
function attributeOf(condition: Condition): string {
  const operand =
    condition.type === 'compare'
      ? condition.left
      : condition.type === 'between' || condition.type === 'begins-with'
        ? condition.operand
        : undefined
  if (operand?.type !== 'path' || operand.path.length > 1) throw notSupported()
  return operand.path[0]
}

function literal(operand: Operand, type: 'S' | 'N' | 'B'): AttributeValue {
  if (operand.type !== 'value') throw notSupported()
  if (operand.value[type] === undefined) {
    throw invalid('One or more parameter values were invalid: Condition parameter type does not match schema type')
  }
  return operand.value
}

function sortRange(condition: Condition, type: 'S' | 'N' | 'B'): SortRange {
  if (condition.type === 'between') {
    const [low, high] = [literal(condition.low, type), literal(condition.high, type)]
    return { before: (key) => order(key, low) < 0, beyond: (key) => order(key, high) > 0 }
  }
  if (condition.type === 'begins-with') {
    const prefix = literal(condition.prefix, type)
    return {
      before: (key) => order(key, prefix) < 0,
      beyond: (key) => order(key, prefix) > 0 && !beginsWith(key, prefix),
    }
  }
  if (condition.type !== 'compare' || condition.comparator === '<>') throw notSupported()
  const bound = literal(condition.right, type)
  switch (condition.comparator) {
    case '=':
      return { before: (key) => order(key, bound) < 0, beyond: (key) => order(key, bound) > 0 }
    case '<':
      return { ...everything, beyond: (key) => order(key, bound) >= 0 }
    case '<=':
      return { ...everything, beyond: (key) => order(key, bound) > 0 }
    case '>':
      return { ...everything, before: (key) => order(key, bound) <= 0 }
    case '>=':
      return { ...everything, before: (key) => order(key, bound) < 0 }
  }
}
