/** `npm start`: the main job. Exit codes: 0 equal or stopped by Ctrl-C, 1 different or failed, 2 wrong flags. */
import { join } from 'node:path'
import { systemClock } from '../lib/aws/system-clock.ts'
import { ConfigurationError } from '../lib/core/errors.ts'
import { RunDisplay } from '../lib/local/display/run-display.ts'
import { interruption } from './cli/interruption.ts'
import { checkJsonFile, runMainJob } from './flights/main-job.ts'
import { helpText, parseOptions, usageCode } from './flights/options.ts'

const root = join(import.meta.dirname, '..')
const display = new RunDisplay(process.stdout, systemClock.nowMs)

// Nobody reads any more, as behind `| head`. The state stays as it is for the next run.
process.stdout.on('error', () => process.exit(1))

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2))
  if (options.help) {
    display.say(helpText)
    return 0
  }
  if (options.json !== undefined) await checkJsonFile(options.json)
  const signal = interruption(process, systemClock.nowMs, () => {
    display.say('Stopping: what is in flight is finished and the position is saved. Ctrl-C again stops at once.')
  })
  return runMainJob(options, { root, stateDirectory: '.millrace/flights-app' }, display, signal)
}

/** What the operating system refuses, such as a full disk at the start, says enough in its message. */
const isSystemError = (error: unknown): error is Error => error instanceof Error && 'syscall' in error

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof ConfigurationError) && !isSystemError(error)) throw error
  console.error(`npm start: ${error.message}`)
  process.exitCode = error instanceof ConfigurationError && error.code === usageCode ? 2 : 1
}
