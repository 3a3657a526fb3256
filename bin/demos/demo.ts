/** What the demos share: how they start, end and report. Exit codes: 0 every goal met, 1 missed or failed, 2 wrong flags. */
import { demandOf, type Figure, finish, meets } from '../../bench/figures.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { table } from '../../lib/local/display/run-display.ts'
import { interruption } from '../cli/interruption.ts'
import { checkJsonFile, type Flags, usageCode } from './flags.ts'

/** What a demo is given while it runs. */
export interface DemoRun<N extends string> {
  readonly numbers: Flags<N>['numbers']
  /** Ends the demo early; what was measured by then is reported. */
  readonly stop: AbortController
}

/** Runs a demo and reports its figures. */
export async function runDemo<N extends string>(
  command: string,
  readFlags: () => Flags<N>,
  run: (demo: DemoRun<N>) => Promise<readonly Figure[]>,
): Promise<void> {
  // Nobody reads any more, as behind `| head`.
  process.stdout.on('error', () => process.exit(1))
  try {
    const { numbers, json, help } = readFlags()
    if (help !== undefined) return console.log(help)
    await checkJsonFile(json)
    const stop = new AbortController()
    const signal = interruption(process, systemClock.nowMs, () => console.log('Stopping. Ctrl-C again stops at once.'))
    signal.addEventListener('abort', () => stop.abort())
    const figures = await run({ numbers, stop })
    console.log(['', ...figureLines(figures)].join('\n'))
    finish(command, figures, json)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    console.error(`${command}: ${error.message}`)
    process.exitCode = error.code === usageCode ? 2 : 1
  }
}

const shown = (value: number): string =>
  !Number.isFinite(value)
    ? 'never'
    : value.toLocaleString('en-US', { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 0 })

/** The figures as a table: each with its goal and whether it is met. */
export function figureLines(figures: readonly Figure[]): readonly string[] {
  const rows = figures.map((figure) => {
    const { name, value, unit, goal } = figure
    const bound = goal === undefined ? '' : `${demandOf(figure)} ${shown(goal)}`
    return [name, shown(value), unit, bound, goal === undefined ? '' : meets(figure) ? 'met' : 'MISSED']
  })
  return table([['figure', 'value', '', 'goal', ''], ...rows], [false, true, false, false, false])
}
