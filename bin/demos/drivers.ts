/** `npm run demo:drivers`: replay any prefix of the events any number of times, and the drivers' earnings do not change. */
import { runDemo } from './demo.ts'
import { runDrivers } from './drivers/run.ts'
import { readFlags } from './flags.ts'

const command = 'npm run demo:drivers'
const about = 'Keeps the state of drivers, and delivers random prefixes of their events again and again.'

const readOwnFlags = () =>
  readFlags(
    command,
    about,
    {
      events: {
        least: 100,
        most: 200_000,
        value: 5_000,
        help: 'events of the drivers                   (default: 5,000)',
      },
      drivers: { least: 1, most: 10_000, value: 50, help: 'drivers                                 (default: 50)' },
      replays: { least: 1, most: 100, value: 5, help: 'prefixes that are delivered again       (default: 5)' },
      shards: { least: 1, most: 16, value: 2, help: 'shards of each stream                   (default: 2)' },
      seed: { least: 0, most: 4_294_967_295, value: 1, help: 'what the events and the prefixes are of (default: 1)' },
    },
    process.argv.slice(2),
  )

await runDemo(command, readOwnFlags, ({ numbers, stop }) => {
  const { events = 5_000, drivers = 50, replays = 5, shards = 2, seed = 1 } = numbers
  return runDrivers({ events, drivers, replays, shards, seed }, stop.signal)
})
