/**
 * Event patterns, the subset that Lambda's filters know: equal values, `null`, `""`, equals-ignore-case, prefix, suffix,
 * anything-but, numeric, exists and `$or`.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
 */
import { ConfigurationError } from '../../core/errors.ts'
import { isList, isObject, type JsonText, type JsonTextObject, NumberText, parseJsonText } from './json-text.ts'

/** A compiled pattern: whether a value, or its absence, matches. */
export type Matcher = (value: JsonText | undefined) => boolean

/**
 * Compiles a pattern. Throws a {@link ConfigurationError} where AWS refuses it at create time: text that is not a JSON object, a
 * field without a list of alternatives, an unknown operator.
 *
 * @example
 * const isLarge = compilePattern('{"data":{"price":[{"numeric":[">",100]}]}}')
 */
export function compilePattern(text: string): Matcher {
  const pattern = parseJsonText(text)
  if (!isObject(pattern)) throw refused(text, 'is not a JSON object')
  return fields(pattern, text)
}

/** Every field must match. A list of objects in the event matches when one of them does. */
function fields(pattern: JsonTextObject, text: string): Matcher {
  const names = Object.keys(pattern)
  if (names.length === 0) throw refused(text, 'has an object without fields')
  const tests = names.map((name): ((event: JsonTextObject) => boolean) => {
    const alternatives = pattern[name]
    if (name === '$or' && isList(alternatives)) return either(alternatives, text)
    const matches = isObject(alternatives) ? fields(alternatives, text) : leaf(name, alternatives, text)
    return (event) => matches(Object.hasOwn(event, name) ? event[name] : undefined)
  })
  const matchesOne = (value: JsonText | undefined): boolean => {
    // A field that must not exist also matches where the object around it is missing.
    const event = value === undefined ? {} : value
    return isObject(event) && tests.every((test) => test(event))
  }
  return (value) => (isList(value) && value.length > 0 ? value.some(matchesOne) : matchesOne(value))
}

function either(alternatives: readonly JsonText[], text: string): (event: JsonTextObject) => boolean {
  const matchers = alternatives.map((alternative) => {
    if (!isObject(alternative)) throw refused(text, 'has a $or whose alternatives are not objects')
    return fields(alternative, text)
  })
  if (matchers.length === 0) throw refused(text, 'has a $or without alternatives')
  return (event) => matchers.some((matches) => matches(event))
}

/** One of the alternatives must match. Only leaves have values: an object or an empty list counts as absent. */
function leaf(name: string, alternatives: JsonText | undefined, text: string): Matcher {
  if (!isList(alternatives) || alternatives.length === 0) {
    throw refused(text, `gives field ${name} something else than a list of alternatives`)
  }
  const matchers = alternatives.map((alternative) => compileAlternative(alternative, text))
  return (value) => {
    const leaves = (isList(value) ? value : [value]).filter((one) => !isObject(one) && !isList(one))
    const candidates = leaves.length === 0 ? [undefined] : leaves
    return matchers.some((matches) => candidates.some(matches))
  }
}

function compileAlternative(alternative: JsonText, text: string): Matcher {
  if (isList(alternative)) throw refused(text, 'has a list inside a list of alternatives')
  if (!isObject(alternative)) return (value) => value !== undefined && equals(value, alternative)
  const names = Object.keys(alternative)
  const [operator] = names
  if (operator === undefined || names.length > 1) throw refused(text, 'has an alternative without exactly one operator')
  const operand = alternative[operator]
  if (operator === 'exists') {
    if (typeof operand !== 'boolean') throw refused(text, 'gives exists something else than true or false')
    return (value) => (value !== undefined) === operand
  }
  if (operator === 'anything-but') return anythingBut(operand, text)
  if (operator === 'numeric') return numeric(operand, text)
  return onText(operator, operand, text)
}

/** Strings exact, numbers by their text: 300 is not 300.0. */
function equals(one: JsonText, other: JsonText): boolean {
  if (one instanceof NumberText && other instanceof NumberText) return one.text === other.text
  return one === other
}

function onText(operator: string, operand: JsonText | undefined, text: string): Matcher {
  const ignoresCase = isObject(operand) && typeof operand['equals-ignore-case'] === 'string'
  const wanted = ignoresCase ? operand['equals-ignore-case'] : operand
  const compare = textOperators[operator]
  if (compare === undefined) throw refused(text, `uses the unknown operator ${operator}`)
  if (typeof wanted !== 'string') throw refused(text, `gives ${operator} something else than a string`)
  if (ignoresCase || operator === 'equals-ignore-case') {
    const lower = wanted.toLowerCase()
    return (value) => typeof value === 'string' && compare(value.toLowerCase(), lower)
  }
  return (value) => typeof value === 'string' && compare(value, wanted)
}

const textOperators: Readonly<Record<string, (value: string, wanted: string) => boolean>> = {
  prefix: (value, wanted) => value.startsWith(wanted),
  suffix: (value, wanted) => value.endsWith(wanted),
  'equals-ignore-case': (value, wanted) => value === wanted,
}

/** The field must exist. What is excluded is a value, a list of values, or one of the operators on text with one or several. */
function anythingBut(operand: JsonText | undefined, text: string): Matcher {
  if (operand === undefined) throw refused(text, 'gives anything-but nothing')
  const excluded = isObject(operand) ? textExclusions(operand, text) : valueExclusions(operand, text)
  return (value) => value !== undefined && !excluded.some((matches) => matches(value))
}

function textExclusions(operand: JsonTextObject, text: string): readonly Matcher[] {
  const [operator] = Object.keys(operand)
  if (operator === undefined) throw refused(text, 'gives anything-but an empty object')
  const wanted = operand[operator]
  return (isList(wanted) ? wanted : [wanted]).map((one) => onText(operator, one, text))
}

function valueExclusions(operand: JsonText, text: string): readonly Matcher[] {
  return (isList(operand) ? operand : [operand]).map((excluded) => {
    if (isObject(excluded) || isList(excluded)) throw refused(text, 'gives anything-but a nested value')
    return (value) => value !== undefined && equals(value, excluded)
  })
}

const comparisons: Readonly<Record<string, (value: number, bound: number) => boolean>> = {
  '=': (value, bound) => value === bound,
  '<': (value, bound) => value < bound,
  '<=': (value, bound) => value <= bound,
  '>': (value, bound) => value > bound,
  '>=': (value, bound) => value >= bound,
}

function numeric(operand: JsonText | undefined, text: string): Matcher {
  if (!isList(operand) || ![2, 4].includes(operand.length)) {
    throw refused(text, 'gives numeric something else than one or two comparisons')
  }
  const tests: ((value: number) => boolean)[] = []
  for (let index = 0; index < operand.length; index += 2) {
    const [operator, bound] = [operand[index], operand[index + 1]]
    const compare = typeof operator === 'string' ? comparisons[operator] : undefined
    if (compare === undefined || !(bound instanceof NumberText)) {
      throw refused(text, 'has a numeric comparison that is not one of = < <= > >= with a number')
    }
    tests.push((value) => compare(value, bound.value))
  }
  return (value) => value instanceof NumberText && tests.every((test) => test(value.value))
}

function refused(text: string, problem: string): ConfigurationError {
  return new ConfigurationError(
    `The filter pattern ${text.slice(0, 200)} ${problem}: write it as Lambda's filter rule syntax asks, such as {"data":{"city":["Oslo"]}}.`,
  )
}
