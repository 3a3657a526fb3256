/** The flags of a demo: numbers within bounds, `--json FILE` and `--help`. */
import { access, constants } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'

export interface NumberFlag {
  readonly least: number
  readonly most: number
  /** Undefined where leaving the flag out means something of its own. */
  readonly value: number | undefined
  /** Allows a fraction. @default false */
  readonly fraction?: boolean
  readonly help: string
}

export interface Flags<N extends string> {
  readonly numbers: { readonly [name in N]: number | undefined }
  readonly json: string | undefined
  /** What to print instead of running. */
  readonly help: string | undefined
}

/** Code of the errors below: they are the caller's, so the exit code is 2. */
export const usageCode = 'usage'

/** Reads the flags of a command. Throws a {@link ConfigurationError} (code `usage`) of one line. */
export function readFlags<N extends string>(
  command: string,
  about: string,
  numbers: { readonly [name in N]: NumberFlag },
  args: readonly string[],
): Flags<N> {
  const names = Object.keys(numbers) as N[]
  const values = parsed(command, names, args)
  const given = names.map((name) => [name, numberOf(command, name, numbers[name], values[name])] as const)
  const rows = [
    ...names.map((name) => `  --${`${name} N`.padEnd(16)} ${numbers[name].help}`),
    `  --${'json FILE'.padEnd(16)} writes the figures to FILE`,
  ]
  return {
    numbers: Object.fromEntries(given) as Flags<N>['numbers'],
    json: typeof values.json === 'string' ? values.json : undefined,
    help: values.help === true ? [about, '', `${command} -- [flags]`, ...rows].join('\n') : undefined,
  }
}

function parsed(command: string, names: readonly string[], args: readonly string[]) {
  const texts = [...names, 'json'].map((name) => [name, { type: 'string' }] as const)
  try {
    const options = { ...Object.fromEntries(texts), help: { type: 'boolean' } as const }
    return parseArgs({ args: [...args], options, allowPositionals: false }).values as Record<string, string | boolean>
  } catch (error) {
    const [sentence] = describeError(error).message.split(/\. |\n/)
    throw usage(command, `${sentence}.`)
  }
}

function numberOf(command: string, name: string, flag: NumberFlag, text: string | boolean | undefined) {
  if (text === undefined) return flag.value
  const shape = flag.fraction ? /^\d+(\.\d+)?$/ : /^\d+$/
  const value = typeof text === 'string' && shape.test(text) ? Number(text) : Number.NaN
  if (value >= flag.least && value <= flag.most) return value
  const kind = flag.fraction ? 'a number' : 'a whole number'
  throw usage(command, `--${name} ${text} is not ${kind} from ${flag.least} to ${flag.most}.`)
}

/** A {@link ConfigurationError} that says which flag is wrong. */
export function usage(command: string, problem: string): ConfigurationError {
  return new ConfigurationError(`${problem} \`${command} -- --help\` lists the flags.`, { code: usageCode })
}

/** Refuses a file for the figures whose folder is missing or cannot be written to, before anything runs. */
export async function checkJsonFile(file: string | undefined): Promise<void> {
  if (file === undefined) return
  try {
    await access(dirname(file), constants.W_OK)
  } catch (error) {
    throw new ConfigurationError(`--json ${file} cannot be written: ${describeError(error).message}.`, {
      code: usageCode,
    })
  }
}
