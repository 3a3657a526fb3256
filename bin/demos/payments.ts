/** `npm run demo:payments`: from three to eight workers in a running stream. */
import { runDemo } from './demo.ts'
import { readFlags } from './flags.ts'
import { runPayments } from './payments/run.ts'

const command = 'npm run demo:payments'
const about = 'Validates and converts payments, and grows from few to many workers while the stream runs.'

const readOwnFlags = () =>
  readFlags(
    command,
    about,
    {
      seconds: { least: 1, most: 600, value: 5, help: 'how long each number of workers is measured   (default: 5)' },
      from: { least: 1, most: 32, value: 3, help: 'worker processes at first                     (default: 3)' },
      to: { least: 2, most: 64, value: 8, help: 'worker processes at the end                   (default: 8)' },
      shards: { least: 1, most: 64, value: 12, help: 'shards of the stream `payments`               (default: 12)' },
      factor: { least: 1, most: 10, value: 2, help: 'parallelization factor: batches per shard     (default: 2)' },
      batch: { least: 1, most: 1_000, value: 5, help: 'payments per invocation                       (default: 5)' },
      backlog: {
        least: 1,
        most: 100_000,
        value: 6_000,
        help: 'payments that wait at any time                (default: 6,000)',
      },
      'round-trip': {
        least: 1,
        most: 1_000,
        value: 20,
        help: 'ms from the function to its sinks and back    (default: 20)',
      },
    },
    process.argv.slice(2),
  )

await runDemo(command, readOwnFlags, ({ numbers, stop }) => {
  const { seconds = 5, from = 3, to = 8, shards = 12, factor = 2, batch = 5, backlog = 6_000 } = numbers
  const { 'round-trip': roundTripMs = 20 } = numbers
  const settings = { seconds, from, to, shards, parallelizationFactor: factor, batchSize: batch, backlog, roundTripMs }
  return runPayments(settings, stop.signal)
})
