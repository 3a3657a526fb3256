/**
 * Conditions and filters: the grammar of AWS, read into a tree with all names and values resolved.
 *
 * condition = and (OR and)*, and = not (AND not)*, not = NOT not | '(' condition ')' | function | comparison
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
 */
import type { AttributeValue } from '../shapes.ts'
import { compareValues, isTypeName, type TypeName, typeOf } from '../value.ts'
import { type ExpressionReader, type Path, showPath } from './reader.ts'

export type Comparator = '=' | '<>' | '<' | '<=' | '>' | '>='
export type Operand =
  | { readonly type: 'path'; readonly path: Path }
  | { readonly type: 'size'; readonly path: Path }
  | { readonly type: 'value'; readonly value: AttributeValue }

export type Condition =
  | { readonly type: 'or' | 'and'; readonly left: Condition; readonly right: Condition }
  | { readonly type: 'not'; readonly condition: Condition }
  | { readonly type: 'compare'; readonly comparator: Comparator; readonly left: Operand; readonly right: Operand }
  | { readonly type: 'between'; readonly operand: Operand; readonly low: Operand; readonly high: Operand }
  | { readonly type: 'in'; readonly operand: Operand; readonly candidates: readonly Operand[] }
  | { readonly type: 'exists'; readonly path: Path; readonly expected: boolean }
  | { readonly type: 'attribute-type'; readonly path: Path; readonly expected: TypeName }
  | { readonly type: 'begins-with'; readonly operand: Operand; readonly prefix: Operand }
  | { readonly type: 'contains'; readonly operand: Operand; readonly element: Operand }

const comparators: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>='])
const ordered: ReadonlySet<string> = new Set(['S', 'N', 'B'])
const MOST_CANDIDATES = 100

/** Reads a whole expression. Throws ValidationException. */
export function readCondition(reader: ExpressionReader): Condition {
  const condition = readOr(reader)
  reader.expectEnd()
  return condition
}

function readOr(reader: ExpressionReader): Condition {
  let left = readAnd(reader)
  while (reader.accept('OR')) left = { type: 'or', left, right: readAnd(reader) }
  return left
}

function readAnd(reader: ExpressionReader): Condition {
  let left = readNot(reader)
  while (reader.accept('AND')) left = { type: 'and', left, right: readNot(reader) }
  return left
}

function readNot(reader: ExpressionReader): Condition {
  if (reader.accept('NOT')) return { type: 'not', condition: readNot(reader) }
  if (!reader.accept('(')) return readFunction(reader) ?? readComparison(reader)
  const condition = readOr(reader)
  reader.expect(')')
  return condition
}

/** The functions that are conditions by themselves; `size` is an operand. */
function readFunction(reader: ExpressionReader): Condition | undefined {
  if (reader.peek(1) !== '(' || reader.peek() === 'size') return undefined
  const name = reader.take()
  reader.expect('(')
  const condition = readArguments(reader, name)
  reader.expect(')')
  return condition
}

function readArguments(reader: ExpressionReader, name: string): Condition {
  switch (name) {
    case 'attribute_exists':
    case 'attribute_not_exists':
      return { type: 'exists', path: readOnlyPath(reader, name), expected: name === 'attribute_exists' }
    case 'attribute_type': {
      const path = readOnlyPath(reader, name)
      reader.expect(',')
      return { type: 'attribute-type', path, expected: readTypeName(reader) }
    }
    case 'begins_with': {
      const operand = readOperand(reader)
      reader.expect(',')
      const prefix = readOperand(reader)
      for (const given of [operand, prefix])
        checkOperandType(reader, name, given, (type) => type === 'S' || type === 'B')
      return { type: 'begins-with', operand, prefix }
    }
    case 'contains': {
      const operand = readOperand(reader)
      reader.expect(',')
      return { type: 'contains', operand, element: readOperand(reader) }
    }
    default:
      throw reader.refuse(`Invalid function name; function: ${name}`)
  }
}

function readOnlyPath(reader: ExpressionReader, name: string): Path {
  if (reader.atPath) return reader.path()
  throw reader.refuse(`Operator or function requires a document path; operator or function: ${name}`)
}

function readTypeName(reader: ExpressionReader): TypeName {
  const { S: name } = reader.value()
  if (name !== undefined && isTypeName(name)) return name
  throw reader.refuse(`Invalid attribute type name found; type: ${name}, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}`)
}

function readComparison(reader: ExpressionReader): Condition {
  const operand = readOperand(reader)
  if (reader.accept('BETWEEN')) {
    const low = readOperand(reader)
    reader.expect('AND')
    const high = readOperand(reader)
    checkBounds(reader, operand, low, high)
    return { type: 'between', operand, low, high }
  }
  if (reader.accept('IN')) return { type: 'in', operand, candidates: readCandidates(reader) }
  const comparator = reader.peek()
  if (comparator === undefined || !comparators.has(comparator)) throw reader.syntaxError()
  reader.take()
  const right = readOperand(reader)
  if (comparator !== '=' && comparator !== '<>') {
    for (const given of [operand, right]) checkOperandType(reader, comparator, given, (type) => ordered.has(type))
  }
  if (operand.type === 'path' && right.type === 'path' && showPath(operand.path) === showPath(right.path)) {
    throw reader.refuse(
      `The first operand must be distinct from the remaining operands for this operator or function; operator: ${comparator}, first operand: ${showPath(operand.path)}`,
    )
  }
  return { type: 'compare', comparator: comparator as Comparator, left: operand, right }
}

function readCandidates(reader: ExpressionReader): Operand[] {
  const candidates: Operand[] = []
  reader.expect('(')
  do candidates.push(readOperand(reader))
  while (reader.accept(','))
  reader.expect(')')
  if (candidates.length > MOST_CANDIDATES) {
    throw reader.refuse(
      `The IN operator is provided with too many operands; number of operands: ${candidates.length}, most: ${MOST_CANDIDATES}`,
    )
  }
  return candidates
}

function checkBounds(reader: ExpressionReader, operand: Operand, low: Operand, high: Operand): void {
  for (const given of [operand, low, high]) checkOperandType(reader, 'BETWEEN', given, (type) => ordered.has(type))
  if (low.type !== 'value' || high.type !== 'value') return
  const order = compareValues(low.value, high.value)
  if (order === undefined) {
    throw reader.refuse('The BETWEEN operator requires same data type for lower and upper bounds')
  }
  if (order > 0) {
    throw reader.refuse(
      'The BETWEEN operator requires upper bound to be greater than or equal to lower bound; swap the two bounds',
    )
  }
}

function readOperand(reader: ExpressionReader): Operand {
  if (reader.peek()?.startsWith(':')) return { type: 'value', value: reader.value() }
  if (reader.peek() !== 'size' || reader.peek(1) !== '(') return { type: 'path', path: reader.path() }
  reader.take()
  reader.expect('(')
  const path = readOnlyPath(reader, 'size')
  reader.expect(')')
  return { type: 'size', path }
}

/** A literal of a type that the operator never takes is a mistake of the request, whatever the item holds. */
function checkOperandType(
  reader: ExpressionReader,
  operator: string,
  operand: Operand,
  allows: (type: TypeName) => boolean,
): void {
  const type = operand.type === 'value' ? typeOf(operand.value) : operand.type === 'size' ? 'N' : undefined
  if (type !== undefined && !allows(type)) {
    throw reader.refuse(
      `Incorrect operand type for operator or function; operator or function: ${operator}, operand type: ${type}`,
    )
  }
}
