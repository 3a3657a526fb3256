/** `npm run nexmark -- --query Q --in FILE --out FILE`: runs a query of Nexmark over a file of events. */
import { queries } from '../../functions/nexmark/queries.ts'
import { CommandFlags, runCommand } from './flags.ts'
import { type FileRun, runFile } from './run-file.ts'

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
  const run = await runFile(query, files, (read) => {
    if (performance.now() < reportedMs + reportEveryMs) return
    reportedMs = performance.now()
    console.error(`${shown(read)} events`)
  })
  report(name, files.to, run)
}

function report(name: string, to: string, run: FileRun): void {
  const { events, results, disorderMs, isSorted, late, refused, firstRefusal } = run
  console.error(`${name}: ${shown(events)} events, ${shown(results)} results in ${to}`)
  const handling = isSorted ? 'they were sorted first' : 'windows waited for that long'
  if (disorderMs > 0) console.error(`Events trail the newest one by up to ${shown(disorderMs)} ms: ${handling}`)
  if (late > 0) console.error(`Bids in no result: ${shown(late)}, which came to the file while it was read`)
  if (refused > 0) console.error(`Lines in no result: ${shown(refused)}, the first: ${firstRefusal}`)
  if (late > 0 || refused > 0) process.exitCode = 1
}

await runCommand(main)
