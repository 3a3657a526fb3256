/** `npm run nexmark -- --query Q --in FILE --out FILE`: runs a query of Nexmark over a file of events. */
import { queries } from '../../functions/nexmark/queries.ts'
import { CommandFlags, runCommand } from './flags.ts'
import { runFile } from './run-file.ts'

const flagTexts = [
  ['query', 'Q', `which query: ${Object.keys(queries).join(', ')}`],
  ['in', 'FILE', 'events, one JSON object a line'],
  ['out', 'FILE', 'where the results go, one JSON object a line'],
] as const

const reportEveryMs = 1_000
const shown = (count: number): string => count.toLocaleString('en')

async function main(): Promise<void> {
  const flags = new CommandFlags('npm run nexmark', flagTexts, process.argv.slice(2))
  if (flags.help !== undefined) {
    console.log(flags.help)
    return
  }
  const name = flags.text('query')
  const query = Object.hasOwn(queries, name) ? queries[name] : undefined
  if (query === undefined) throw flags.refusal(`--query ${name} is none of ${Object.keys(queries).join(', ')}.`)
  const files = { from: flags.text('in'), to: flags.text('out') }
  let reportedMs = performance.now()
  const { events, results, late, refused } = await runFile(query.app, files, (read) => {
    if (performance.now() < reportedMs + reportEveryMs) return
    reportedMs = performance.now()
    console.error(`${shown(read)} events`)
  })
  console.error(`${name}: ${shown(events)} events, ${shown(results)} results in ${files.to}`)
  if (late > 0) console.error(`${shown(late)} bids trail the newest event by more than 4 s: no result holds them`)
  if (refused.length > 0) console.error(`${shown(refused.length)} lines are no event, the first: ${refused[0]}`)
  if (late > 0 || refused.length > 0) process.exitCode = 1
}

await runCommand(main)
