/** `npm run demo:map-state`: what it costs to update one entry of a map of 10 to 10,000 entries. */
import { runDemo } from './demo.ts'
import { readFlags } from './flags.ts'
import { runMapState } from './map-state/run.ts'

const command = 'npm run demo:map-state'
const about = 'Updates one entry of maps of 10, 100, 1,000 and 10,000 entries, and prints what each update costs.'

const readOwnFlags = () =>
  readFlags(
    command,
    about,
    {
      entries: { least: 10, most: 100_000, value: 10_000, help: 'entries of the largest map   (default: 10,000)' },
    },
    process.argv.slice(2),
  )

await runDemo(command, readOwnFlags, ({ numbers, stop }) => runMapState(numbers.entries ?? 10_000, stop.signal))
