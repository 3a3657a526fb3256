/** `millrace status | pause | resume | drain | skip | reset`: looking at the stages of an application, and acting on them by hand. */
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../../lib/core/errors.ts'
import { Closing } from '../../../lib/local/closing.ts'
import { grouped } from '../../../lib/local/display/run-display.ts'
import type { Arguments, CommandSyntax, Flag } from '../arguments.ts'
import type { Command, Say } from '../command.ts'
import { drain } from './drain.ts'
import { openOperated, placeFlags } from './open-operated.ts'
import { type Operated, stageIn } from './operated.ts'
import { reset } from './reset.ts'
import { skipFailing } from './skip.ts'
import { statusOf } from './stage-status.ts'
import { statusJson, statusLines } from './status-text.ts'
import { switchAndWait } from './waits.ts'

const stageFlag: Flag = { value: 'NAME', many: true, help: 'only this stage; repeatable (default: all)' }
const waitFlag = (otherwise: number): Flag => ({
  value: 'SECONDS',
  help: `waits so long at most, up to 86,400 (default: ${grouped(otherwise)})`,
})

const statusSyntax: CommandSyntax = {
  name: 'status',
  positionals: [],
  summary: 'Shows the stages of an application: their mappings, how far they are, what fails. It changes nothing.',
  flags: { ...placeFlags, json: { help: 'one JSON value, with every partition' } },
}
const pauseSyntax: CommandSyntax = {
  name: 'pause',
  positionals: [],
  summary: 'Disables the event source mappings of an application and waits until they are. Nothing is lost.',
  flags: { ...placeFlags, stage: stageFlag, wait: waitFlag(600) },
}
const resumeSyntax: CommandSyntax = {
  name: 'resume',
  positionals: [],
  summary: 'Enables the event source mappings of an application: each goes on where it was.',
  flags: { ...placeFlags, stage: stageFlag, wait: waitFlag(600) },
}
const drainSyntax: CommandSyntax = {
  name: 'drain',
  positionals: [],
  summary: 'Pauses the sources and waits until every keyed stage has processed all that was sent to it.',
  flags: { ...placeFlags, wait: waitFlag(3_600) },
}
const skipSyntax: CommandSyntax = {
  name: 'skip',
  positionals: ['STAGE'],
  summary: 'Makes the record that fails a dead letter at its next attempt, instead of after as many as are allowed.',
  flags: { ...placeFlags, partition: { value: 'ID', help: 'needed where several partitions of the stage fail' } },
}

const resetSyntax: CommandSyntax = {
  name: 'reset',
  positionals: [],
  summary: 'Empties state and progress of an application, and has its sources read again from a time on.',
  flags: {
    ...placeFlags,
    from: {
      value: 'TIME',
      help: 'the arrival (of Kafka the timestamp) of the first record that counts, such as 2026-11-29T12:00:00Z',
    },
    yes: { help: 'does not ask' },
    wait: waitFlag(600),
  },
}

export const operateCommands: readonly Command[] = [
  { syntax: statusSyntax, run: (args, say) => at(args, (operated) => runStatus(operated, args, say)) },
  { syntax: pauseSyntax, run: (args, say) => at(args, (operated) => runSwitch(operated, args, say, false)) },
  { syntax: resumeSyntax, run: (args, say) => at(args, (operated) => runSwitch(operated, args, say, true)) },
  {
    syntax: drainSyntax,
    run: (args, say) => at(args, (operated) => drain(operated, args.integer('wait', 1, 86_400, 3_600) * 1_000, say)),
  },
  {
    syntax: skipSyntax,
    run: (args, say) =>
      at(args, (operated) => skipFailing(stageIn(operated, args.positionals[0] ?? ''), args.text('partition'), say)),
  },
  { syntax: resetSyntax, run: (args, say) => at(args, (operated) => reset(operated, args, say)) },
]

/** Opens the application; what the runtime would try again is said once. */
async function at(args: Arguments, work: (operated: Operated) => Promise<void>): Promise<number> {
  const closing = new Closing()
  try {
    await work(await openOperated(args, closing))
    return 0
  } catch (error) {
    if (error instanceof ConfigurationError) throw error
    throw new ConfigurationError(`${describeError(error).message.split('\n')[0]}`, { cause: error })
  } finally {
    await closing.close()
  }
}

async function runStatus(operated: Operated, args: Arguments, say: Say): Promise<void> {
  const stages = await statusOf(operated)
  const nowMs = systemClock.nowMs()
  if (args.has('json')) say(statusJson(operated, stages, nowMs))
  else for (const line of statusLines(operated, stages, nowMs)) say(line)
}

async function runSwitch(operated: Operated, args: Arguments, say: Say, enabled: boolean): Promise<void> {
  const waitMs = args.integer('wait', 1, 86_400, 600) * 1_000
  const named = new Set(args.texts('stage').map((name) => stageIn(operated, name).name))
  const names = operated.stages.flatMap(({ name }) => (named.size === 0 || named.has(name) ? name : []))
  // Behind what they feed when they stop, before it when they go on: what a stage has sent is taken either way.
  const order = enabled ? [...names].reverse() : names
  say(`${enabled ? 'Resuming' : 'Pausing'} ${names.join(', ')} of ${operated.title}.`)
  const changed = await switchAndWait(operated, order, enabled, waitMs)
  const already = names.filter((name) => !changed.includes(name))
  const state = enabled ? 'enabled' : 'paused'
  if (changed.length > 0) say(`Now ${state}: ${names.filter((name) => changed.includes(name)).join(', ')}.`)
  if (already.length > 0) say(`${enabled ? 'Were enabled' : 'Were paused, or have no mapping'}: ${already.join(', ')}.`)
  if (operated.note !== undefined) say(operated.note)
  if (!enabled) {
    say(`Records wait in their streams, as long as those keep them. \`millrace resume ${operated.flags}\` goes on.`)
  }
}
