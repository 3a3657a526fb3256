/** `npm run demo:partitions`: partitioned workers, one of which is killed. */
import { runDemo } from './demo.ts'
import { readFlags, usage } from './flags.ts'
import { runPartitions } from './partitions/run.ts'

const command = 'npm run demo:partitions'
const about =
  'Runs one topology on many shards and few workers, kills a worker and shows who takes over, how fast and with what loss.'

/** Where nobody can press a key, one worker is killed all the same. */
const isAttended = process.stdin.isTTY && process.stdout.isTTY
const unattendedKillAfter = 5

function readOwnFlags() {
  const flags = readFlags(
    command,
    about,
    {
      'kill-after': {
        ...{ least: 0.1, most: 600, value: undefined, fraction: true },
        help: 'kills a worker after N seconds            (default: on a terminal the key k does, else 5, or half of --seconds where that is less)',
      },
      seconds: { least: 1, most: 600, value: 15, help: 'how long records are sent                 (default: 15)' },
      shards: { least: 1, most: 64, value: 24, help: 'shards of the stream `rides`              (default: 24)' },
      workers: { least: 1, most: 64, value: 3, help: 'worker processes                          (default: 3)' },
      rate: { least: 1, most: 5_000, value: 480, help: 'records a second, all shards together     (default: 480)' },
    },
    process.argv.slice(2),
  )
  const { 'kill-after': killAfter, seconds = 15 } = flags.numbers
  if (killAfter !== undefined && killAfter >= seconds) {
    throw usage(command, `--kill-after ${killAfter} kills nobody: the run ends before, with --seconds ${seconds}.`)
  }
  return flags
}

await runDemo(command, readOwnFlags, ({ numbers, stop }) => {
  const { seconds = 15, shards = 24, workers = 3, rate = 480 } = numbers
  const unattended = isAttended ? undefined : Math.min(unattendedKillAfter, seconds / 2)
  return runPartitions({ seconds, shards, workers, rate, killAfter: numbers['kill-after'] ?? unattended }, stop)
})
