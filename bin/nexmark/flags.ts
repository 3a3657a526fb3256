/** The flags of the Nexmark commands. */
import { parseArgs } from 'node:util'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'

/** Code of the errors below: they are the caller's, so the exit code is 2. */
const usageCode = 'usage'

/** What a command says of its flags: name, what to give, what it means. */
export type FlagTexts = readonly (readonly [name: string, value: string, meaning: string])[]

export class CommandFlags {
  readonly #command: string
  readonly #values: Readonly<Record<string, string | boolean | undefined>>
  readonly #texts: FlagTexts

  /** Throws a {@link ConfigurationError} for a flag that there is not. */
  constructor(command: string, texts: FlagTexts, args: readonly string[]) {
    this.#command = command
    this.#texts = texts
    const named = texts.map(([name]) => [name, { type: 'string' }] as const)
    try {
      const options = { ...Object.fromEntries(named), help: { type: 'boolean' } as const }
      this.#values = parseArgs({ args: [...args], options, allowPositionals: false }).values
    } catch (error) {
      throw this.refusal(`${describeError(error).message.split(/\. |\n/)[0]}.`)
    }
  }

  /** What to print instead of running, where that was asked for. */
  get help(): string | undefined {
    if (this.#values.help !== true) return undefined
    const rows = this.#texts.map(([name, value, meaning]) => `  --${`${name} ${value}`.padEnd(24)} ${meaning}`)
    return [`${this.#command} -- [flags]`, ...rows].join('\n')
  }

  text(name: string): string {
    const value = this.#values[name]
    if (typeof value === 'string' && value !== '') return value
    throw this.refusal(`--${name} is missing.`)
  }

  optionalText(name: string): string | undefined {
    return this.#values[name] === undefined ? undefined : this.text(name)
  }

  /** A whole number within bounds, both included. */
  whole(name: string, bounds: { readonly least: number; readonly most?: number; readonly otherwise?: number }): number {
    const { least, most = Number.MAX_SAFE_INTEGER, otherwise } = bounds
    if (this.#values[name] === undefined && otherwise !== undefined) return otherwise
    const text = this.text(name)
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw this.refusal(`--${name} ${text} is not a whole number from ${least} to ${most}.`)
  }

  /** A {@link ConfigurationError} that says which flag is wrong. */
  refusal(problem: string): ConfigurationError {
    return new ConfigurationError(`${problem} \`${this.#command} -- --help\` lists the flags.`, { code: usageCode })
  }
}

/** Runs a command. What goes wrong is one line on stderr; a wrong flag exits with 2. */
export async function runCommand(run: () => Promise<void> | void): Promise<void> {
  try {
    await run()
  } catch (error) {
    const { message, code } = describeError(error)
    console.error(message)
    process.exitCode = code === usageCode ? 2 : 1
  }
}
