/**
 * `npm run bench:nexmark [-- --query Q] [--events N] [--rounds N] [--json FILE]`: events a second on one core for each
 * query, decode to encode, through every stage with its streams and frames, every key committed to a state store in memory.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { CommandFlags, runCommand } from '../bin/nexmark/flags.ts'
import { queries } from '../functions/nexmark/queries.ts'
import { type Figure, finish, table } from './figures.ts'
import type { RaceResult } from './nexmark/race.ts'
import { parts } from './nexmark/where-time-goes.ts'

/**
 * Events a second that others reach with the same file and the same results, on a core like those that this was written
 * on: the faster of Kafka Streams 4.4 in memory and, for q5, q7 and q11, Flink 2.3 with RocksDB and checkpoints.
 */
const goals: Readonly<Record<string, number>> = { q0: 385_000, q5: 89_000, q7: 114_000, q11: 57_000, q12: 81_000 }

const flagTexts = [
  ['query', 'Q', 'only this query (default: all)'],
  ['events', 'N', 'events of a run (default: 200000)'],
  ['rounds', 'N', 'runs that are measured, of which the median counts (default: 5)'],
  ['json', 'FILE', 'writes the figures to FILE'],
] as const

/**
 * The heap of a function with one core, which has 1,769 MB: the start script of Lambda's Node.js runtime gives a twentieth of the memory
 * to each half of the young generation, and leaves nine tenths to the old one.
 */
const heapOfOneCore = ['--max-semi-space-size=88', '--max-old-space-size=1592']

const run = promisify(execFile)
const program = fileURLToPath(new URL('nexmark/one-query.ts', import.meta.url))

interface Options {
  readonly events: number
  readonly rounds: number
}

async function measured(query: string, { events, rounds }: Options): Promise<RaceResult> {
  const args = [...heapOfOneCore, program, query, String(events), String(rounds)]
  const { stdout } = await run(process.execPath, args, { maxBuffer: 1 << 26 })
  return JSON.parse(stdout.trim().split('\n').at(-1) as string)
}

const thousands = (perSecond: number): string => Math.round(perSecond / 1_000).toLocaleString('en')
const percent = (share: number): string => `${(share * 100).toFixed(0)}%`

function print(results: readonly RaceResult[], { events, rounds }: Options): void {
  const size = `${events.toLocaleString('en')} events, medians of ${rounds} rounds`
  console.log(`Thousands of events a second of processor time (${size})\n`)
  console.log(
    table([
      ['query', 'millrace', 'by hand', 'ratio', 'goal', 'rows'],
      ...results.map(({ query, millracePerSecond, byHandPerSecond, ratio, results: rows }) => [
        ...[query, thousands(millracePerSecond), thousands(byHandPerSecond), ratio.toFixed(2)],
        ...[goals[query] === undefined ? '' : thousands(goals[query]), rows.toLocaleString('en')],
      ]),
    ]),
  )
  console.log('\nWhere the time goes\n')
  console.log(
    table([
      ['query', ...parts],
      ...results.map(({ query, shares }) => [query, ...parts.map((part) => percent(shares.parts[part]))]),
    ]),
  )
  for (const { query, shares } of results) {
    const top = shares.functions.slice(0, 8).map(({ name, share }) => `${percent(share)} ${name}`)
    console.log(`\n${query}: ${top.join(', ')}`)
  }
}

const figuresOf = ({ query, millracePerSecond, byHandPerSecond, ratio }: RaceResult): readonly Figure[] => [
  {
    ...{ name: `millrace, ${query}`, value: Math.round(millracePerSecond), unit: 'events/s' },
    ...(goals[query] === undefined ? {} : { goal: goals[query] }),
  },
  { name: `by hand, ${query}`, value: Math.round(byHandPerSecond), unit: 'events/s' },
  { name: `millrace / by hand, ${query}`, value: Math.round(ratio * 1_000) / 1_000, unit: 'ratio' },
]

await runCommand(async () => {
  const flags = new CommandFlags('npm run bench:nexmark', flagTexts, process.argv.slice(2))
  if (flags.help !== undefined) {
    console.log(flags.help)
    return
  }
  const options = {
    events: flags.whole('events', { least: 1_000, most: 5_000_000, otherwise: 200_000 }),
    rounds: flags.whole('rounds', { least: 1, most: 1_000, otherwise: 5 }),
  }
  const only = flags.optionalText('query')
  if (only !== undefined && !Object.hasOwn(queries, only)) {
    throw flags.refusal(`--query ${only} is none of ${Object.keys(queries).join(', ')}.`)
  }
  const results: RaceResult[] = []
  for (const query of only === undefined ? Object.keys(queries) : [only]) {
    results.push(await measured(query, options))
    console.error(`${query} is measured`)
  }
  print(results, options)
  finish('npm run bench:nexmark', results.flatMap(figuresOf), flags.optionalText('json'))
})
