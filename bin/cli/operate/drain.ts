/**
 * Draining: the sources are paused, and each keyed stage processes what was sent to it. Then no frame is on its way any more, and a
 * stage or a sink may be removed, or a stage be given another name.
 */
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import type { Say } from '../command.ts'
import { counted } from '../words.ts'
import type { Operated, OperatedStage } from './operated.ts'
import { partitionsOf } from './stage-status.ts'
import { letInvocationsEnd, switchAndWait, waitUntil } from './waits.ts'

export async function drain(operated: Operated, atMostMs: number, say: Say): Promise<void> {
  const { stages, title, flags, note } = operated
  if (note !== undefined) throw new ConfigurationError(`${title} cannot be drained. ${note}`)
  const keyed = stages.filter(({ kind }) => kind === 'keyed')
  const sources = stages.filter(({ kind }) => kind !== 'keyed').map(({ name }) => name)
  await refuseIdle(operated, keyed)
  const untilMs = systemClock.nowMs() + atMostMs
  const leftMs = () => Math.max(0, untilMs - systemClock.nowMs())
  say(`Pausing the sources of ${title}: ${sources.join(', ')}.`)
  await switchAndWait(operated, sources, false, leftMs())
  await letInvocationsEnd(operated, say)
  for (const stage of keyed) {
    say(`Waiting for stage ${stage.name} to process what was sent to it.`)
    let open: readonly string[] = []
    await waitUntil(
      operated,
      leftMs(),
      async () => {
        open = await notCaughtUp(stage)
        return open.length === 0
      },
      () =>
        `Stage ${stage.name} is not drained after ${Math.round(atMostMs / 1_000)} s: ${counted(open.length, 'partition')} of it (${open.join(', ')}) ${open.length === 1 ? 'has' : 'have'} more to do. The sources are paused. Look at \`millrace status ${flags}\`, and drain again, or go on with \`millrace resume ${flags}\`.`,
    )
  }
  say(`${title} is drained: no record is on its way between its stages. Its sources are paused.`)
  for (const line of stillSending(operated, keyed)) say(line)
  say(`\`millrace resume ${flags}\` goes on, with what is deployed then.`)
}

/** What comes due by the clock comes due with paused sources, too. */
function stillSending({ flags }: Operated, keyed: readonly OperatedStage[]): readonly string[] {
  const names = keyed.flatMap(({ name, bindings: { feeds = [] } }) => (feeds.length > 0 ? name : []))
  if (names.length === 0) return []
  return [
    `Windows and timers of ${names.join(', ')} still come due by the clock, and are sent to the stages behind: \`millrace pause ${flags} ${names.map((name) => `--stage ${name}`).join(' ')}\` where those are to go.`,
  ]
}

/** A stage that is paused itself would be waited for in vain. */
async function refuseIdle({ mappingStates, flags }: Operated, keyed: readonly OperatedStage[]): Promise<void> {
  const states = await mappingStates()
  const idle = keyed.filter(({ name }) => states.get(name) !== 'Enabled').map(({ name }) => name)
  if (idle.length === 0) return
  const which = idle.map((name) => `--stage ${name}`).join(' ')
  throw new ConfigurationError(
    `${idle.join(', ')} cannot process anything, as ${idle.length === 1 ? 'it is' : 'they are'} not enabled: \`millrace resume ${flags} ${which}\` first.`,
  )
}

async function notCaughtUp(stage: OperatedStage): Promise<readonly string[]> {
  const partitions = await partitionsOf(stage)
  if (partitions === undefined) {
    throw new ConfigurationError(
      `The partitions of stage ${stage.name} cannot be listed, so nobody can tell when it is drained.`,
    )
  }
  return partitions.filter(({ isCaughtUp }) => !isCaughtUp).map(({ partition }) => partition)
}
