/** `npm run demo:partitions`: partitioned workers, one of which is killed. */
import { runDemo } from './demo.ts'
import { readFlags } from './flags.ts'
import { runPartitions } from './partitions/run.ts'

const command = 'npm run demo:partitions'
const about =
  'Runs one topology on many shards and few workers, kills a worker and shows who takes over, how fast and with what loss.'

/** Where nobody can press a key, one worker is killed all the same. */
const unattendedKillAfter = process.stdin.isTTY && process.stdout.isTTY ? undefined : 5

const readOwnFlags = () =>
  readFlags(
    command,
    about,
    {
      'kill-after': {
        ...{ least: 0.1, most: 600, value: unattendedKillAfter, fraction: true },
        help: 'kills a worker after N seconds            (default: on a terminal the key k does, else 5)',
      },
      seconds: { least: 1, most: 600, value: 15, help: 'how long records are sent                 (default: 15)' },
      shards: { least: 1, most: 64, value: 24, help: 'shards of the stream `rides`              (default: 24)' },
      workers: { least: 1, most: 64, value: 3, help: 'worker processes                          (default: 3)' },
      rate: { least: 1, most: 5_000, value: 480, help: 'records a second, all shards together     (default: 480)' },
    },
    process.argv.slice(2),
  )

await runDemo(command, readOwnFlags, ({ numbers, stop }) => {
  const { seconds = 15, shards = 24, workers = 3, rate = 480 } = numbers
  return runPartitions({ seconds, shards, workers, rate, killAfter: numbers['kill-after'] }, stop)
})
