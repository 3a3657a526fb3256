/** Reads the tokens of one expression, and the document paths in it. */
import { invalid } from '../errors.ts'
import { isReservedWord } from '../reserved-words.ts'
import type { AttributeValue } from '../shapes.ts'
import type { References } from './references.ts'

/** Names and list indices from an item's attribute down. */
export type Path = readonly [string, ...(string | number)[]]

export type ExpressionKind =
  | 'ConditionExpression'
  | 'FilterExpression'
  | 'KeyConditionExpression'
  | 'ProjectionExpression'
  | 'UpdateExpression'

const LARGEST_EXPRESSION_BYTES = 4_096
const token = /\s*(#[A-Za-z0-9_]+|:[A-Za-z0-9_]+|[A-Za-z][A-Za-z0-9_]*|\d+|<>|<=|>=|[=<>()[\],.+-])/y

export class ExpressionReader {
  readonly kind: ExpressionKind
  readonly references: References
  readonly #tokens: readonly string[]
  #next = 0

  constructor(kind: ExpressionKind, text: string, references: References) {
    this.kind = kind
    this.references = references
    if (text.trim() === '') throw this.refuse('The expression can not be empty;')
    const bytes = Buffer.byteLength(text)
    if (bytes > LARGEST_EXPRESSION_BYTES) {
      throw this.refuse(`Expression size has exceeded the maximum allowed size; expression size: ${bytes}`)
    }
    this.#tokens = this.#tokenize(text)
  }

  #tokenize(text: string): string[] {
    const tokens: string[] = []
    const end = text.trimEnd().length
    for (let at = 0; at < end; at = token.lastIndex) {
      token.lastIndex = at
      const [, found] = token.exec(text) ?? []
      if (found === undefined) {
        const rest = text.slice(at).trimStart()
        throw this.refuse(`Syntax error; token: "${rest.slice(0, 1)}", near: "${rest.slice(0, 12)}"`)
      }
      tokens.push(found)
    }
    return tokens
  }

  refuse(message: string): Error {
    return invalid(`Invalid ${this.kind}: ${message}`)
  }

  peek(ahead = 0): string | undefined {
    return this.#tokens[this.#next + ahead]
  }

  take(): string {
    const found = this.#tokens[this.#next]
    if (found === undefined) throw this.syntaxError()
    this.#next += 1
    return found
  }

  /** Takes the next token if it is this one; keywords are given, and match, in any case. */
  accept(expected: string): boolean {
    if (this.peek()?.toUpperCase() !== expected) return false
    this.#next += 1
    return true
  }

  expect(expected: string): void {
    if (!this.accept(expected)) throw this.syntaxError()
  }

  expectEnd(): void {
    if (this.peek() !== undefined) throw this.syntaxError()
  }

  syntaxError(): Error {
    const near = [this.peek(-1), this.peek(), this.peek(1)].filter((part) => part !== undefined).join(' ')
    return this.refuse(`Syntax error; token: "${this.peek() ?? '<EOF>'}", near: "${near}"`)
  }

  /** Whether a path can begin here. */
  get atPath(): boolean {
    return /^[#A-Za-z]/.test(this.peek() ?? '')
  }

  path(): Path {
    const path: [string, ...(string | number)[]] = [this.#name()]
    for (;;) {
      if (this.accept('.')) path.push(this.#name())
      else if (this.accept('[')) {
        const index = this.take()
        if (!/^\d+$/.test(index)) throw this.syntaxError()
        path.push(Number(index))
        this.expect(']')
      } else return path
    }
  }

  #name(): string {
    if (!this.atPath) throw this.syntaxError()
    const name = this.take()
    if (name.startsWith('#')) return this.references.name(name, this.kind)
    if (isReservedWord(name)) {
      throw this.refuse(`Attribute name is a reserved keyword; reserved keyword: ${name}`)
    }
    return name
  }

  value(): AttributeValue {
    if (!this.peek()?.startsWith(':')) throw this.syntaxError()
    return this.references.value(this.take(), this.kind)
  }
}

/** The value at a path of an item, or undefined where the path leads nowhere. */
export function valueAt(item: Readonly<Record<string, AttributeValue>>, path: Path): AttributeValue | undefined {
  const [first, ...rest] = path
  let value = Object.hasOwn(item, first) ? item[first] : undefined
  for (const step of rest) {
    if (value === undefined) return undefined
    if (typeof step === 'number') value = value.L?.[step]
    else value = value.M !== undefined && Object.hasOwn(value.M, step) ? value.M[step] : undefined
  }
  return value
}

export const showPath = (path: Path): string =>
  `[${path.map((step) => (typeof step === 'number' ? `[${step}]` : step)).join(', ')}]`

/** Refuses two paths of which one leads through or to the other, or that use one attribute as a list and as a map. */
export function checkDisjoint(reader: ExpressionReader, paths: readonly Path[]): void {
  paths.forEach((one, i) => {
    for (const two of paths.slice(i + 1)) {
      const shared = one.findIndex((step, at) => step !== two[at])
      const problem =
        shared < 0 || shared >= two.length
          ? 'overlap'
          : typeof one[shared] !== typeof two[shared]
            ? 'conflict'
            : undefined
      if (problem !== undefined) {
        throw reader.refuse(
          `Two document paths ${problem} with each other; must remove or rewrite one of these paths; path one: ${showPath(one)}, path two: ${showPath(two)}`,
        )
      }
    }
  })
}
