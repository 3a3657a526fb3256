/** Waiting for what was asked of an application to be so. */
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import type { Say } from '../command.ts'
import { counted } from '../words.ts'
import type { MappingState, Operated } from './operated.ts'

/** How long a look waits for the next one. Lambda's control API takes few calls a second. */
const pollMs = (operated: Operated): number => (operated.inFlightMs === 0 ? 200 : 3_000)

/** Resolves as soon as `isSo` answers true; throws a ConfigurationError that says what was waited for. */
export async function waitUntil(
  operated: Operated,
  atMostMs: number,
  isSo: () => Promise<boolean>,
  problem: () => string,
): Promise<void> {
  const untilMs = systemClock.nowMs() + atMostMs
  while (!(await isSo())) {
    if (systemClock.nowMs() >= untilMs) throw new ConfigurationError(problem())
    await systemClock.sleep(pollMs(operated))
  }
}

/** Disables or enables the mappings of stages, and waits until they are. Resolves with the names of those that changed. */
export async function switchAndWait(
  operated: Operated,
  stages: readonly string[],
  enabled: boolean,
  atMostMs: number,
): Promise<readonly string[]> {
  const wanted: MappingState = enabled ? 'Enabled' : 'Disabled'
  const before = await operated.mappingStates()
  const missing = stages.filter((stage) => before.get(stage) === 'Missing')
  if (enabled && missing.length > 0) {
    throw new ConfigurationError(
      `${missing.join(', ')} of ${operated.title} ${missing.length === 1 ? 'has' : 'have'} no event source mapping: deploy the stack. After a reset the source's starting position must be changed for that.`,
    )
  }
  const open = stages.filter((stage) => !missing.includes(stage) && before.get(stage) !== wanted)
  await operated.switchMappings(open, enabled)
  if (operated.note !== undefined) return open
  let states = before
  await waitUntil(
    operated,
    atMostMs,
    async () => {
      states = await operated.mappingStates()
      return open.every((stage) => states.get(stage) === wanted)
    },
    () => {
      const late = open.filter((stage) => states.get(stage) !== wanted)
      const shown = late.map((stage) => `${stage} is ${states.get(stage)}`).join(', ')
      return `Not ${wanted} after ${Math.round(atMostMs / 1_000)} s: ${shown}. It was asked for, and \`millrace status ${operated.flags}\` shows when it is so; or wait longer with --wait.`
    },
  )
  return open
}

/** Lets invocations end that a mapping began before it was disabled: Lambda does not tell of them. */
export async function letInvocationsEnd(operated: Operated, say: Say): Promise<void> {
  if (operated.inFlightMs === 0) return
  const seconds = Math.ceil(operated.inFlightMs / 1_000)
  say(`Waiting ${counted(seconds, 'second')}: so long may an invocation run that was in flight.`)
  await systemClock.sleep(operated.inFlightMs)
}
