/**
 * Update expressions: SET, REMOVE, ADD and DELETE, each at most once, read and applied.
 *
 * 1. Every operand is read from the item as it was before the update, whatever the order of the clauses.
 * 2. Nothing is changed in place: maps and lists on the way to a changed value are copied, the rest is shared with the old item.
 * 3. ADD and DELETE work on attributes of the item only, not inside of maps and lists, as AWS documents.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html
 */
import { invalid } from '../errors.ts'
import { addNumbers } from '../number.ts'
import type { AttributeValue, Item } from '../shapes.ts'
import { compareText, elementKey, emptyRecord, setElements, typeOf } from '../value.ts'
import { checkDisjoint, type ExpressionReader, type Path, valueAt } from './reader.ts'

type Term =
  | { readonly type: 'path'; readonly path: Path }
  | { readonly type: 'value'; readonly value: AttributeValue }
  | { readonly type: 'if-not-exists'; readonly path: Path; readonly otherwise: Term }
  | { readonly type: 'list-append'; readonly left: Term; readonly right: Term }
  | { readonly type: 'sum'; readonly operator: '+' | '-'; readonly left: Term; readonly right: Term }

type Action =
  | { readonly type: 'set'; readonly path: Path; readonly term: Term }
  | { readonly type: 'remove'; readonly path: Path }
  | { readonly type: 'add' | 'delete'; readonly path: Path; readonly value: AttributeValue }

export interface Update {
  readonly actions: readonly Action[]
}

const setTypes: ReadonlySet<string> = new Set(['SS', 'NS', 'BS'])

/** Reads a whole expression that changes none of the key attributes. Throws ValidationException. */
export function readUpdate(reader: ExpressionReader, keyNames: readonly string[]): Update {
  const actions: Action[] = []
  const seen = new Set<string>()
  while (reader.peek() !== undefined) {
    const section = reader.take().toUpperCase()
    if (seen.has(section)) {
      throw reader.refuse(`The "${section}" section can only be used once in an update expression;`)
    }
    seen.add(section)
    do actions.push(readAction(reader, section))
    while (reader.accept(','))
  }
  for (const { path } of actions) {
    if (keyNames.includes(path[0])) {
      throw invalid(
        `One or more parameter values were invalid: Cannot update attribute ${path[0]}. This attribute is part of the key`,
      )
    }
  }
  checkDisjoint(
    reader,
    actions.map(({ path }) => path),
  )
  return { actions }
}

function readAction(reader: ExpressionReader, section: string): Action {
  switch (section) {
    case 'SET': {
      const path = reader.path()
      reader.expect('=')
      return { type: 'set', path, term: readSum(reader) }
    }
    case 'REMOVE':
      return { type: 'remove', path: reader.path() }
    case 'ADD':
    case 'DELETE':
      return readSetAction(reader, section)
    default:
      throw reader.refuse(`Syntax error; token: "${section}"; an update has the sections SET, REMOVE, ADD, DELETE`)
  }
}

function readSetAction(reader: ExpressionReader, section: 'ADD' | 'DELETE'): Action {
  const path = reader.path()
  if (path.length > 1) {
    throw reader.refuse(`${section} changes attributes of the item, not what is inside of them: use SET`)
  }
  const value = reader.value()
  const type = typeOf(value)
  if (!setTypes.has(type) && !(section === 'ADD' && type === 'N')) {
    throw reader.refuse(
      `Incorrect operand type for operator or function; operator: ${section}, operand type: ${type}, typeSet: ${section === 'ADD' ? 'ALLOWED_FOR_ADD_OPERAND' : 'ALLOWED_FOR_DELETE_OPERAND'}`,
    )
  }
  return { type: section === 'ADD' ? 'add' : 'delete', path, value }
}

function readSum(reader: ExpressionReader): Term {
  const left = readTerm(reader)
  const operator = reader.peek()
  if (operator !== '+' && operator !== '-') return left
  reader.take()
  const right = readTerm(reader)
  for (const term of [left, right]) {
    if (term.type === 'value' && term.value.N === undefined) throw wrongOperand(reader, operator, term.value)
  }
  return { type: 'sum', operator, left, right }
}

function wrongOperand(reader: ExpressionReader, operator: string, value: AttributeValue): Error {
  return reader.refuse(
    `Incorrect operand type for operator or function; operator or function: ${operator}, operand type: ${typeOf(value)}`,
  )
}

function readTerm(reader: ExpressionReader): Term {
  if (reader.peek()?.startsWith(':')) return { type: 'value', value: reader.value() }
  if (reader.peek(1) !== '(') return { type: 'path', path: reader.path() }
  const name = reader.take()
  reader.expect('(')
  const term = readFunction(reader, name)
  reader.expect(')')
  return term
}

function readFunction(reader: ExpressionReader, name: string): Term {
  if (name === 'if_not_exists') {
    const path = reader.path()
    reader.expect(',')
    return { type: 'if-not-exists', path, otherwise: readTerm(reader) }
  }
  if (name === 'list_append') {
    const left = readTerm(reader)
    reader.expect(',')
    const right = readTerm(reader)
    for (const term of [left, right]) {
      if (term.type === 'value' && term.value.L === undefined) throw wrongOperand(reader, name, term.value)
    }
    return { type: 'list-append', left, right }
  }
  throw reader.refuse(`Invalid function name; function: ${name}`)
}

/** The item after the update. Throws ValidationException, with nothing changed, where the item does not fit it. */
export function applyUpdate(item: Item, { actions }: Update): Record<string, AttributeValue> {
  const changes: { path: Path; value: AttributeValue | undefined }[] = []
  for (const action of actions) {
    if (action.type === 'set') changes.push({ path: action.path, value: evaluate(item, action.term) })
    else if (action.type === 'remove') changes.push({ path: action.path, value: undefined })
    else changes.push({ path: action.path, value: combine(action.type, valueAt(item, action.path), action.value) })
  }
  let root: AttributeValue = { M: item }
  // Elements are taken out of a list from behind, so that the indices before stay what the expression meant; those that are
  // set beyond a list's end are appended in the order of their indices.
  const sets = changes.filter(({ value }) => value !== undefined).sort(byPath)
  const removals = changes
    .filter(({ value }) => value === undefined)
    .sort(byPath)
    .reverse()
  for (const { path, value } of [...sets, ...removals]) root = changeAt(root, path, value)
  return root.M as Record<string, AttributeValue>
}

function byPath(one: { path: Path }, two: { path: Path }): number {
  const at = one.path.findIndex((step, i) => step !== two.path[i])
  const [a, b] = [one.path[at], two.path[at]]
  return typeof a === 'number' && typeof b === 'number' ? a - b : compareText(String(a), String(b))
}

function evaluate(item: Item, term: Term): AttributeValue {
  switch (term.type) {
    case 'value':
      return term.value
    case 'path': {
      const value = valueAt(item, term.path)
      if (value !== undefined) return value
      throw invalid('The provided expression refers to an attribute that does not exist in the item')
    }
    case 'if-not-exists':
      return valueAt(item, term.path) ?? evaluate(item, term.otherwise)
    case 'list-append': {
      const [left, right] = [evaluate(item, term.left).L, evaluate(item, term.right).L]
      if (left === undefined || right === undefined) throw incorrectType()
      return { L: [...left, ...right] }
    }
    case 'sum': {
      const [left, right] = [evaluate(item, term.left).N, evaluate(item, term.right).N]
      if (left === undefined || right === undefined) throw incorrectType()
      return { N: addNumbers(left, right, term.operator) }
    }
  }
}

const incorrectType = () => invalid('An operand in the update expression has an incorrect data type')

/** What ADD or DELETE makes of an attribute; undefined where nothing is left. */
function combine(
  action: 'add' | 'delete',
  held: AttributeValue | undefined,
  given: AttributeValue,
): AttributeValue | undefined {
  if (held === undefined) return action === 'add' ? given : undefined
  const type = typeOf(given)
  if (typeOf(held) !== type) throw incorrectType()
  if (held.N !== undefined && given.N !== undefined) return { N: addNumbers(held.N, given.N) }
  const [before, change] = [setElements(held) ?? [], setElements(given) ?? []]
  const elements = action === 'add' ? union(before, change) : before.filter((element) => !includes(change, element))
  return elements.length === 0 ? undefined : ({ [type]: elements } as AttributeValue)
}

type Elements = readonly (string | Uint8Array)[]

function union(before: Elements, added: Elements): Elements {
  return [...before, ...added.filter((element) => !includes(before, element))]
}

function includes(elements: Elements, wanted: string | Uint8Array): boolean {
  const key = elementKey(wanted)
  return elements.some((element) => elementKey(element) === key)
}

/** A copy of the value with the inner value at the path set, or removed where it is undefined. */
function changeAt(
  value: AttributeValue | undefined,
  path: readonly (string | number)[],
  inner: AttributeValue | undefined,
): AttributeValue {
  const [step, ...rest] = path
  if (typeof step === 'number' && value?.L !== undefined) return changeList(value.L, step, rest, inner)
  if (typeof step === 'string' && value?.M !== undefined) return changeMap(value.M, step, rest, inner)
  throw invalid('The document path provided in the update expression is invalid for update')
}

function changeMap(
  members: Item,
  name: string,
  rest: readonly (string | number)[],
  inner: AttributeValue | undefined,
): AttributeValue {
  const copy = emptyRecord<AttributeValue>()
  for (const member in members) copy[member] = members[member] as AttributeValue
  if (rest.length > 0) copy[name] = changeAt(copy[name], rest, inner)
  else if (inner === undefined) delete copy[name]
  else copy[name] = inner
  return { M: copy }
}

function changeList(
  elements: readonly AttributeValue[],
  index: number,
  rest: readonly (string | number)[],
  inner: AttributeValue | undefined,
): AttributeValue {
  const copy = [...elements]
  if (rest.length > 0) copy[index] = changeAt(copy[index], rest, inner)
  else if (inner === undefined) copy.splice(index, 1)
  else copy[Math.min(index, copy.length)] = inner
  return { L: copy }
}
