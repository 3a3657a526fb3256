/**
 * `millrace reset --from TIME`: the application forgets what it has made of its sources, and makes it again of their records from a time
 * on. lib/runtime/progress/reset.ts says why nothing old gets into what is computed again.
 */
import { createInterface } from 'node:readline/promises'
import { StateTableContents, type TableContents } from '../../../lib/aws/state-table/contents.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import { grouped } from '../../../lib/local/display/run-display.ts'
import { begin, fence, nextGeneration, type ResettableStage, release } from '../../../lib/runtime/progress/reset.ts'
import { type Arguments, usage } from '../arguments.ts'
import type { Say } from '../command.ts'
import { counted } from '../words.ts'
import type { Operated, OperatedStage } from './operated.ts'
import { letInvocationsEnd, switchAndWait } from './waits.ts'

interface DoomedStage extends ResettableStage {
  readonly contents: StateTableContents
  /** Of Kafka, whose records have a timestamp in place of an arrival. */
  readonly isTopic: boolean
}

/** A table of a hundred million items takes hours. */
const dayMs = 86_400_000

export async function reset(operated: Operated, args: Arguments, say: Say): Promise<void> {
  const fromMs = timeOf(args.text('from'))
  const waitMs = args.integer('wait', 1, 86_400, 600) * 1_000
  const signal = AbortSignal.timeout(dayMs)
  const stages = doomedStages(operated)
  for (const { name, kind } of stages) if (kind === 'feeding') await operated.checkRewind(name, fromMs)
  await announceReset(operated, stages, fromMs, say, signal)
  if (!args.has('yes') && !(await isConfirmed(operated))) {
    throw new ConfigurationError('Nothing was reset.')
  }
  const names = stages.map(({ name }) => name)
  const states = await operated.mappingStates()
  const wereEnabled = names.filter((name) => states.get(name) === 'Enabled' || states.get(name) === 'Enabling')
  say(`Pausing ${names.join(', ')}.`)
  await switchAndWait(operated, names, false, waitMs)
  const generation = { generation: await nextGeneration(stages, signal), startsAtMs: fromMs }
  await begin(stages, generation, signal)
  await fence(stages, generation, signal)
  await letInvocationsEnd(operated, say)
  await fence(stages, generation, signal)
  for (const { name, kind, contents } of stages) {
    if (kind !== 'keyed') continue
    say(`Emptied the state of ${name}: ${counted(await contents.empty(signal), 'item')} deleted.`)
  }
  const advice: string[] = []
  const rewound: string[] = []
  for (const { name, kind } of stages) {
    if (kind !== 'feeding') continue
    const left = await operated.rewind(name, fromMs)
    advice.push(...left)
    if (left.length === 0) rewound.push(name)
  }
  await release(stages, generation, signal)
  say(`${operated.title} is of generation ${generation.generation} now: frames of older ones are dropped as they come.`)
  const goOn = wereEnabled.filter(
    (name) => rewound.includes(name) || stages.some((one) => one.name === name && one.kind === 'keyed'),
  )
  await switchAndWait(operated, goOn.toReversed(), true, waitMs)
  if (goOn.length > 0) say(`Enabled again: ${goOn.join(', ')}.`)
  const still = names.filter((name) => !wereEnabled.includes(name))
  if (still.length > 0) say(`Were paused, and are: ${still.join(', ')}. \`millrace resume ${operated.flags}\` goes on.`)
  for (const line of advice) say(line)
  if (operated.note !== undefined) say(operated.note)
}

/** ISO 8601 with a zone; not later than now, as what arrives until then would be lost. */
function timeOf(text: string | undefined): number {
  if (text === undefined) throw usage('`millrace reset` needs --from TIME.')
  const isZoned = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/.test(text)
  const timeMs = Date.parse(text)
  if (!isZoned || Number.isNaN(timeMs)) {
    throw usage(`--from ${text} is no time with a zone: say it as 2026-11-29T12:00:00Z or 2026-11-29T13:00:00+01:00.`)
  }
  if (timeMs <= systemClock.nowMs()) return timeMs
  throw usage(`--from ${text} is still to come, and what arrives until then would be lost: say a time that has passed.`)
}

function doomedStages({ stages, dynamodb, title }: Operated): readonly DoomedStage[] {
  const doomed = stages.flatMap((stage) => doomedStage(stage, dynamodb))
  if (doomed.length > 0) return doomed
  throw new ConfigurationError(`${title} keeps nothing, so there is nothing to reset.`)
}

function doomedStage(
  { name, kind, state, bindings }: OperatedStage,
  client: Operated['dynamodb'],
): readonly DoomedStage[] {
  if (state === undefined || kind === 'stateless') return []
  const service = bindings.sources[0]?.kind
  if (kind === 'feeding' && service !== 'kinesis' && service !== 'kafka') {
    throw new ConfigurationError(
      `Source "${name}" is neither a Kinesis stream nor a Kafka topic, and only those can be read again from a time: nothing was reset.`,
    )
  }
  const { store, tableName } = state
  const contents = new StateTableContents({ client, tableName, stage: name, clock: systemClock })
  return [
    {
      name,
      kind,
      store,
      contents,
      isTopic: service === 'kafka',
      // Of a table that it shares with nobody, all progress but the generation of the stage itself.
      progressNames: async (signal) =>
        (await contents.count(signal)).progress.filter((stored) => stored.startsWith(`${name}/`)),
    },
  ]
}

async function announceReset(
  { title }: Operated,
  stages: readonly DoomedStage[],
  fromMs: number,
  say: Say,
  signal: AbortSignal,
): Promise<void> {
  say(`A reset of ${title} from ${new Date(fromMs).toISOString()}`)
  for (const stage of stages) say(`- ${intent(stage, await stage.contents.count(signal))}`)
  say('Outputs that are computed again go to the sinks again. What the sources no longer hold does not come back.')
}

function intent({ name, kind, isTopic }: DoomedStage, { keys, entries, dueEntries }: TableContents): string {
  if (kind === 'feeding')
    return `reads source ${name} again, the records ${isTopic ? 'of that timestamp' : 'that arrived then'} or later`
  const dues = `${grouped(dueEntries)} due ${dueEntries === 1 ? 'entry' : 'entries'}`
  const maps = `${grouped(entries)} map ${entries === 1 ? 'entry' : 'entries'}`
  return `empties the state of ${name}: ${counted(keys, 'key')}, ${maps}, ${dues}`
}

/** Asks who is at the terminal; where nobody is, --yes must be said. */
async function isConfirmed({ topology }: Operated): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw usage('`millrace reset` asks before it empties anything, and nobody is there to answer: say --yes.')
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return (await terminal.question(`Type ${topology} to go on: `)).trim() === topology
  } finally {
    terminal.close()
  }
}
