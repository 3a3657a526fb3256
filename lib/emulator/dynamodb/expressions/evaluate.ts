/**
 * Whether an item meets a condition. An attribute that is missing meets nothing but `<>` and attribute_not_exists; values of
 * different types are never equal and have no order.
 */
import type { AttributeValue, Item } from '../shapes.ts'
import { compareValues, elementKey, equalBytes, equalValues, setElements, typeOf } from '../value.ts'
import type { Comparator, Condition, Operand } from './condition.ts'
import { valueAt } from './reader.ts'

export function meets(item: Item, condition: Condition): boolean {
  switch (condition.type) {
    case 'or':
      return meets(item, condition.left) || meets(item, condition.right)
    case 'and':
      return meets(item, condition.left) && meets(item, condition.right)
    case 'not':
      return !meets(item, condition.condition)
    case 'exists':
      return (valueAt(item, condition.path) !== undefined) === condition.expected
    case 'attribute-type': {
      const value = valueAt(item, condition.path)
      return value !== undefined && typeOf(value) === condition.expected
    }
    case 'compare':
      return compare(operandOf(item, condition.left), condition.comparator, operandOf(item, condition.right))
    case 'between': {
      const value = operandOf(item, condition.operand)
      return (
        compare(value, '>=', operandOf(item, condition.low)) && compare(value, '<=', operandOf(item, condition.high))
      )
    }
    case 'in': {
      const value = operandOf(item, condition.operand)
      return condition.candidates.some((candidate) => compare(value, '=', operandOf(item, candidate)))
    }
    case 'begins-with':
      return beginsWith(operandOf(item, condition.operand), operandOf(item, condition.prefix))
    case 'contains':
      return contains(operandOf(item, condition.operand), operandOf(item, condition.element))
  }
}

function operandOf(item: Item, operand: Operand): AttributeValue | undefined {
  if (operand.type === 'value') return operand.value
  const value = valueAt(item, operand.path)
  return operand.type === 'path' || value === undefined ? value : sizeOf(value)
}

/** Length of text or bytes, number of elements; a number, boolean or null has no size. */
function sizeOf(value: AttributeValue): AttributeValue | undefined {
  const size =
    value.S?.length ??
    value.B?.length ??
    value.L?.length ??
    (value.M === undefined ? undefined : Object.keys(value.M).length) ??
    setElements(value)?.length
  return size === undefined ? undefined : { N: String(size) }
}

function compare(left: AttributeValue | undefined, comparator: Comparator, right: AttributeValue | undefined): boolean {
  if (left === undefined || right === undefined) return comparator === '<>'
  if (comparator === '=') return equalValues(left, right)
  if (comparator === '<>') return !equalValues(left, right)
  const order = compareValues(left, right)
  if (order === undefined) return false
  switch (comparator) {
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    case '>':
      return order > 0
    case '>=':
      return order >= 0
  }
}

export function beginsWith(value: AttributeValue | undefined, prefix: AttributeValue | undefined): boolean {
  if (value?.S !== undefined && prefix?.S !== undefined) return value.S.startsWith(prefix.S)
  if (value?.B === undefined || prefix?.B === undefined) return false
  return equalBytes(value.B.subarray(0, prefix.B.length), prefix.B)
}

function contains(value: AttributeValue | undefined, element: AttributeValue | undefined): boolean {
  if (value === undefined || element === undefined) return false
  if (value.S !== undefined) return element.S !== undefined && value.S.includes(element.S)
  if (value.B !== undefined) return element.B !== undefined && Buffer.from(value.B).includes(Buffer.from(element.B))
  if (value.L !== undefined) return value.L.some((member) => equalValues(member, element))
  const [wanted, type] = [element.S ?? element.N ?? element.B, typeOf(element)]
  if (wanted === undefined || typeOf(value) !== `${type}S`) return false
  return setElements(value)?.some((member) => elementKey(member) === elementKey(wanted)) ?? false
}
