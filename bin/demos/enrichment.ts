/** `npm run demo:enrichment`: enrichment without state, in its three forms. */
import { runDemo } from './demo.ts'
import { runEnrichment } from './enrichment/run.ts'
import { readFlags } from './flags.ts'

const command = 'npm run demo:enrichment'
const about =
  'Enriches orders from a static table, a refreshed one and a batched, cached lookup, and shows staleness and cache hits.'

const readOwnFlags = () =>
  readFlags(
    command,
    about,
    {
      seconds: { least: 1, most: 600, value: 12, help: 'how long orders are sent   (default: 12)' },
      rate: { least: 1, most: 5_000, value: 1_500, help: 'orders a second            (default: 1,500)' },
      shards: { least: 1, most: 64, value: 4, help: 'shards of the stream       (default: 4)' },
      workers: { least: 1, most: 64, value: 2, help: 'worker processes           (default: 2)' },
    },
    process.argv.slice(2),
  )

await runDemo(command, readOwnFlags, ({ numbers, stop }) => {
  const { seconds = 12, rate = 1_500, shards = 4, workers = 2 } = numbers
  return runEnrichment({ seconds, rate, shards, workers }, stop.signal)
})
