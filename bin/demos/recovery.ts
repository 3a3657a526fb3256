/** `npm run demo:recovery`: how long a killed worker's results take to come again, over a small and over a large state. */
import { runDemo } from './demo.ts'
import { readFlags, usage } from './flags.ts'
import { runRecovery } from './recovery/run.ts'

const command = 'npm run demo:recovery'
const about =
  'Kills workers of a keyed stage over a small and a large state, and shows that recovery takes no longer over the large one: nothing is restored.'

function readOwnFlags() {
  const flags = readFlags(
    command,
    about,
    {
      'small-keys': {
        least: 10,
        most: 1_000_000,
        value: 1_000,
        help: 'keys of the small state                   (default: 1,000)',
      },
      'large-keys': {
        least: 10,
        most: 4_000_000,
        value: 1_000_000,
        help: 'keys of the large state                   (default: 1,000,000)',
      },
      kills: { least: 1, most: 100, value: 9, help: 'kills over each state                     (default: 9)' },
      rate: { least: 10, most: 2_000, value: 100, help: 'records a second, for each state          (default: 100)' },
    },
    process.argv.slice(2),
  )
  const { 'small-keys': small = 0, 'large-keys': large = 0 } = flags.numbers
  if (small >= large) throw usage(command, `--small-keys ${small} is not below --large-keys ${large}.`)
  return flags
}

await runDemo(command, readOwnFlags, ({ numbers, stop }) => {
  const { 'small-keys': smallKeys = 1_000, 'large-keys': largeKeys = 1_000_000, kills = 9, rate = 100 } = numbers
  return runRecovery({ smallKeys, largeKeys, kills, rate }, stop)
})
