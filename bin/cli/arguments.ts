/** What a command takes, as data: parsing, help and suggestions all follow from it. */
import { parseArgs } from 'node:util'
import { ConfigurationError } from '../../lib/core/errors.ts'

/** Code of errors that are the caller's: their exit code is 2. */
export const usageCode = 'usage'

export interface Flag {
  /** What its value is called in the help, `URL` for one of http or https. A flag without one is on or off. */
  readonly value?: string
  /** May be given several times. @default false */
  readonly many?: boolean
  readonly help: string
}

export interface CommandSyntax {
  /** Such as `dev` or `dead-letters show`. */
  readonly name: string
  /** What follows the flags, such as `TOPOLOGY`; every one must be given, but for a last one in brackets. */
  readonly positionals: readonly string[]
  readonly summary: string
  readonly flags: Readonly<Record<string, Flag>>
}

/** What was typed. */
export class Arguments {
  readonly positionals: readonly string[]
  readonly #values: ReadonlyMap<string, readonly string[]>

  constructor(positionals: readonly string[], values: ReadonlyMap<string, readonly string[]>) {
    this.positionals = positionals
    this.#values = values
  }

  has(flag: string): boolean {
    return this.#values.has(flag)
  }

  /** The last value given. */
  text(flag: string): string | undefined {
    return this.#values.get(flag)?.at(-1)
  }

  texts(flag: string): readonly string[] {
    return this.#values.get(flag) ?? []
  }

  /** Throws a ConfigurationError (code `usage`) for what is not a whole number in the range. */
  integer(flag: string, least: number, most: number, otherwise: number): number {
    const text = this.text(flag)
    if (text === undefined) return otherwise
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw usage(`--${flag} ${text} is not a whole number from ${least} to ${most.toLocaleString('en-US')}.`)
  }
}

/** Throw it for a mistake in what was typed. */
export function usage(problem: string): ConfigurationError {
  return new ConfigurationError(problem, { code: usageCode })
}

/** Reads what follows the command's name. Throws a ConfigurationError (code `usage`) of one line. */
export function parseArguments(syntax: CommandSyntax, args: readonly string[]): Arguments {
  const { name, flags } = syntax
  const options = Object.fromEntries(
    Object.entries(flags).map(([flag, { value }]) => [flag, { type: value ? 'string' : 'boolean' } as const]),
  )
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true })
  const positionals: string[] = []
  const values = new Map<string, string[]>()
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined
    if (!flag) throw unknownFlag(token.rawName, name, Object.keys(flags))
    const known = values.get(token.name) ?? []
    if (known.length > 0 && !flag.many) throw usage(`--${token.name} is given twice.`)
    values.set(token.name, [...known, flagValue(token.name, flag, token.value)])
  }
  checkPositionals(syntax, positionals)
  return new Arguments(positionals, values)
}

function flagValue(name: string, flag: Flag, value: string | undefined): string {
  if (!flag.value) {
    if (value === undefined) return ''
    throw usage(`--${name} takes no value.`)
  }
  // `-` alone is the standard input.
  if (value !== undefined && value !== '' && !/^-./.test(value)) {
    if (flag.value === 'URL') checkUrl(name, value)
    return value
  }
  throw usage(`--${name} needs a value: --${name} ${flag.value}.`)
}

/** `localhost:4566` is a URL too, of the protocol `localhost`. */
function checkUrl(name: string, value: string): void {
  const { protocol } = URL.canParse(value) ? new URL(value) : { protocol: '' }
  if (['http:', 'https:'].includes(protocol)) return
  throw usage(
    `--${name} ${value} is no URL with http:// or https://: write --${name} http://${value.replace(/^[a-z]*:\/\//, '')}.`,
  )
}

function checkPositionals({ name, positionals }: CommandSyntax, given: readonly string[]): void {
  const missing = positionals[given.length]
  if (missing !== undefined && !missing.startsWith('[')) throw usage(`\`millrace ${name}\` needs ${missing}.`)
  if (given.length > positionals.length) {
    throw usage(`\`millrace ${name}\` does not take ${JSON.stringify(given[positionals.length])}.`)
  }
}

function unknownFlag(raw: string, command: string, flags: readonly string[]): ConfigurationError {
  const near = nearest(raw.replace(/^-+/, ''), flags)
  return usage(`\`millrace ${command}\` has no flag ${raw}${near === undefined ? '.' : `: did you mean --${near}?`}`)
}

/** The known word that is nearest to what was typed, where any is near at all. */
export function nearest(typed: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((word) => ({ word, distance: word.startsWith(typed) && typed.length > 1 ? 1 : editDistance(typed, word) }))
    .sort((one, other) => one.distance - other.distance)
  const [best] = ranked
  return best && best.distance <= Math.max(2, Math.floor(typed.length / 3)) ? best.word : undefined
}

/** Levenshtein's distance. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}

/** The help of one command. */
export function helpOf({ name, positionals, summary, flags }: CommandSyntax): string {
  const rows = Object.entries(flags).map(([flag, { value, help }]) => [`--${flag}${value ? ` ${value}` : ''}`, help])
  const width = Math.max(...rows.map(([left = '']) => left.length))
  return [
    summary,
    '',
    `millrace ${[name, ...positionals].join(' ')}${rows.length > 0 ? ' [flags]' : ''}`,
    ...rows.map(([left = '', help]) => `  ${left.padEnd(width)}  ${help}`),
  ].join('\n')
}
