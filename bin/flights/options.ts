/** The flags of `npm start`. */
import { parseArgs } from 'node:util'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'

export interface StartOptions {
  /** Flights of the file; undefined for the whole first week. */
  readonly limit: number | undefined
  readonly speed: number | 'max'
  readonly shards: number
  readonly fresh: boolean
  readonly json: string | undefined
  readonly corrupt: number
  readonly port: number
  readonly data: string | undefined
  readonly help: boolean
}

export const helpText = `Replays the US flights of 2001 through a topology on this machine and checks the result.

npm start -- [flags]
  --limit N      only the first N flights of the file, at most 500,000   (default: the first week, 113,493)
  --corrupt N    plants N bad records among them, at most 100,000        (default: 0)
  --shards N     shards of the stream \`flights\`, 1 to 64                 (default: 4)
  --speed X      X seconds of event time in each second, or max          (default: max)
  --fresh        drops the state of earlier runs first
  --json FILE    writes the figures of the report to FILE
  --port N       port of the embedded Kinesis, 0 for any free one        (default: 0)
  --data DIR     where flights-3m.parquet and airports.csv are           (default: npm package vega-datasets)
  --help         prints this`

const flags = {
  limit: { type: 'string' },
  speed: { type: 'string' },
  shards: { type: 'string' },
  fresh: { type: 'boolean' },
  json: { type: 'string' },
  corrupt: { type: 'string' },
  port: { type: 'string' },
  data: { type: 'string' },
  help: { type: 'boolean' },
} as const

/** Code of the errors below: they are the caller's, so the exit code is 2. */
export const usageCode = 'usage'

/** Reads the flags. Throws a {@link ConfigurationError} (code `usage`) of one line. */
export function parseOptions(args: readonly string[]): StartOptions {
  const values = parsed(args)
  return {
    limit: values.limit === undefined ? undefined : integer('limit', values.limit, 1, 500_000),
    speed: speed(values.speed ?? 'max'),
    shards: integer('shards', values.shards ?? '4', 1, 64),
    fresh: values.fresh ?? false,
    json: values.json,
    corrupt: integer('corrupt', values.corrupt ?? '0', 0, 100_000),
    port: integer('port', values.port ?? '0', 0, 65_535),
    data: values.data,
    help: values.help ?? false,
  }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: withValues(args), options: flags, allowPositionals: false }).values
  } catch (error) {
    if (error instanceof ConfigurationError) throw error
    const [sentence] = describeError(error).message.split(/\. |\n/)
    throw usage(`${sentence}.`)
  }
}

/** Joins a value that begins with a dash to its flag, as `--limit -1`: its own check says then what is wrong with it. */
function withValues(args: readonly string[]): string[] {
  const joined: string[] = []
  for (const arg of args) {
    const flag = joined.at(-1) ?? ''
    if (!arg.startsWith('-') || !takesValue(flag)) joined.push(arg)
    else if (arg.startsWith('--')) throw usage(`${flag} has no value: ${arg} follows it.`)
    else joined.splice(-1, 1, `${flag}=${arg}`)
  }
  return joined
}

const takesValue = (arg: string): boolean =>
  Object.entries(flags).some(([name, { type }]) => type === 'string' && arg === `--${name}`)

function integer(flag: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw usage(`--${flag} ${text} is not a whole number from ${least} to ${most.toLocaleString('en-US')}.`)
}

function speed(text: string): number | 'max' {
  if (text === 'max') return 'max'
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (value > 0) return value
  throw usage(`--speed ${text} is neither max nor a number above 0 (3600 replays an hour in each second).`)
}

function usage(problem: string): ConfigurationError {
  return new ConfigurationError(`${problem} \`npm start -- --help\` lists the flags.`, { code: usageCode })
}

/** The flags that name a run, as its owner would type them to go on with it. */
export function commandFor(settings: {
  readonly limit: number | undefined
  readonly corrupt: number
  readonly shards: number
}): string {
  const { limit, corrupt, shards } = settings
  const given = [
    ...(limit === undefined ? [] : [`--limit ${limit}`]),
    ...(corrupt === 0 ? [] : [`--corrupt ${corrupt}`]),
    ...(shards === 4 ? [] : [`--shards ${shards}`]),
  ]
  return given.length === 0 ? 'npm start' : `npm start -- ${given.join(' ')}`
}
