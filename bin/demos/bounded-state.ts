/** `npm run demo:bounded-state`: a day of distinct keys, and what the table holds hour by hour until it is empty of them. */
import { runBoundedState } from './bounded-state/run.ts'
import { runDemo } from './demo.ts'
import { readFlags } from './flags.ts'

const command = 'npm run demo:bounded-state'
const about =
  'Keeps every kind of state with a TTL, for a day of distinct keys on a virtual clock, and looks at the table each hour.'

const readOwnFlags = () =>
  readFlags(
    command,
    about,
    {
      hours: { least: 1, most: 240, value: 24, help: 'for how long new devices report      (default: 24)' },
      devices: { least: 1, most: 5_000, value: 100, help: 'new devices each hour                (default: 100)' },
      steady: { least: 0, most: 1_000, value: 5, help: 'devices that report all the time     (default: 5)' },
    },
    process.argv.slice(2),
  )

await runDemo(command, readOwnFlags, ({ numbers, stop }) => {
  const { hours = 24, devices = 100, steady = 5 } = numbers
  return runBoundedState({ hours, devices, steady }, stop.signal)
})
