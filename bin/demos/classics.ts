/** `npm run demo:classics`: running counter, recent-event list, session state machine, per-user aggregate, join key table. */
import { runClassics } from './classics/run.ts'
import { runDemo } from './demo.ts'
import { readFlags } from './flags.ts'

const command = 'npm run demo:classics'
const about = 'Runs the five classic uses of keyed state, and compares each with a plain loop over its input.'

const readOwnFlags = () =>
  readFlags(
    command,
    about,
    {
      events: { least: 10, most: 100_000, value: 1_000, help: 'events of each use                   (default: 1,000)' },
      keys: { least: 1, most: 10_000, value: 20, help: 'pages, accounts, visitors, customers (default: 20)' },
      seed: { least: 0, most: 4_294_967_295, value: 1, help: 'what the events are drawn from       (default: 1)' },
    },
    process.argv.slice(2),
  )

await runDemo(command, readOwnFlags, ({ numbers, stop }) => {
  const { events = 1_000, keys = 20, seed = 1 } = numbers
  return runClassics({ events, keys, seed }, stop.signal)
})
