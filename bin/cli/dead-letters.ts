/** `millrace dead-letters list | show | redrive`. */
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import { Closing } from '../../lib/local/closing.ts'
import { LocalFunction } from '../../lib/local/dead-letter-function.ts'
import type { LoggedDeadLetter } from '../../lib/local/dead-letter-log.ts'
import { type RedriveOutcome, redrive } from '../../lib/local/dead-letter-redrive.ts'
import { takeLock } from '../../lib/local/directory-lock.ts'
import { grouped } from '../../lib/local/run-display.ts'
import { plan } from '../../lib/plan/plan.ts'
import { interruption } from '../flights/interruption.ts'
import { type Arguments, type CommandSyntax, type Flag, usage } from './arguments.ts'
import { type LetterPlace, openLetters, openLocalLetters } from './dead-letter-places.ts'
import { letterJson, listLines, outcomeText, reasonLines, showLines } from './dead-letter-text.ts'
import { directoryOf, readRunFacts, runNamed } from './local-run.ts'
import { handlerBeside, loadUserCode } from './user-code.ts'
import { counted } from './words.ts'

type Say = (line: string) => void

const whichRun: Readonly<Record<string, Flag>> = {
  app: { value: 'NAME', help: 'the local run of that topology (default: the only one in .millrace)' },
}
const elsewhere: Readonly<Record<string, Flag>> = {
  ...whichRun,
  stream: { value: 'NAME', help: 'a Kinesis stream of dead letters, instead of a local run' },
  queue: { value: 'URL', help: 'an SQS queue of dead letters, instead of a local run' },
  endpoint: { value: 'URL', help: 'where --stream or --queue is (default: AWS, as the environment says)' },
}
const byReason: Flag = { value: 'CODE', help: 'only those with this reason, such as not-json' }

const listSyntax: CommandSyntax = {
  name: 'dead-letters list',
  positionals: [],
  summary: 'Lists open dead letters: when each was given up, why, and where it is in its source.',
  flags: {
    ...elsewhere,
    reason: byReason,
    'include-redriven': { help: 'lists those that were redriven, too' },
    json: { help: 'one JSON value a line, without what the records held' },
  },
}
const showSyntax: CommandSyntax = {
  name: 'dead-letters show',
  positionals: ['ID'],
  summary: 'Shows one dead letter with its error, key, headers and original bytes.',
  flags: elsewhere,
}
const redriveSyntax: CommandSyntax = {
  name: 'dead-letters redrive',
  positionals: [],
  summary: 'Sends open dead letters of a local run to its own function again. No other reader of the source sees them.',
  flags: {
    ...whichRun,
    all: { help: 'all that are open' },
    reason: { ...byReason, help: 'those with this reason' },
    id: { value: 'ID', many: true, help: 'this one; may be repeated' },
    topology: { value: 'FILE', help: 'the topology (default: what the run was started with)' },
    handler: { value: 'FILE', help: 'the handler (default: what the run was started with)' },
  },
}

export const deadLetterCommands = [
  { syntax: listSyntax, run: runList },
  { syntax: showSyntax, run: runShow },
  { syntax: redriveSyntax, run: runRedrive },
]

async function withClosing(work: (closing: Closing) => Promise<number>): Promise<number> {
  const closing = new Closing()
  try {
    return await work(closing)
  } finally {
    await closing.close()
  }
}

async function runList(args: Arguments, say: Say): Promise<number> {
  return withClosing(async (closing) => {
    const { title, letters, unreadable } = await openLetters(args, closing)
    const reason = args.text('reason')
    const chosen = letters.filter(
      ({ entry, redrivenAtMs }) =>
        (reason === undefined || entry.reason.code === reason) &&
        (redrivenAtMs === undefined || args.has('include-redriven')),
    )
    if (args.has('json')) {
      for (const letter of chosen) say(letterJson(letter))
      return 0
    }
    say(`${counted(chosen.length, 'dead letter')} of ${title}`)
    const lines = chosen.length === 0 ? [] : ['', ...listLines(chosen), '', ...reasonLines(chosen)]
    for (const line of [...lines, ...unreadable.map(({ place, problem }) => `${place} is not listed: ${problem}`)])
      say(line)
    return 0
  })
}

async function runShow(args: Arguments, say: Say): Promise<number> {
  return withClosing(async (closing) => {
    const { title, letters } = await openLetters(args, closing)
    const letter = theLetter(letters, args.positionals[0] ?? '', title)
    for (const line of showLines(letter)) say(line)
    return 0
  })
}

/** By its id, or by its handle or the beginning of that. */
function theLetter<L extends Pick<LoggedDeadLetter, 'handle' | 'entry'>>(
  letters: readonly L[],
  typed: string,
  title: string,
): L {
  const [found, ...others] = letters.filter(({ handle, entry }) => entry.id === typed || handle.startsWith(typed))
  if (found !== undefined && others.length === 0) return found
  const problem = found === undefined ? 'no dead letter' : `${others.length + 1} dead letters`
  throw new ConfigurationError(`There ${found ? 'are' : 'is'} ${problem} ${typed} of ${title}: take an id of the list.`)
}

async function runRedrive(args: Arguments, say: Say): Promise<number> {
  if (!args.has('all') && !args.has('reason') && !args.has('id')) throw usage('Say which: --all, --reason or --id.')
  if (args.has('all') && (args.has('reason') || args.has('id')))
    throw usage('--all goes with neither --reason nor --id.')
  return withClosing(async (closing) => {
    const app = await runNamed(args.text('app'))
    // Before anything is read: another redrive may be settling what this one would find open.
    closing.defer(await takeLock(join(directoryOf(app), 'redrive.lock')))
    const place = await openLocalLetters(app, closing)
    const chosen = choose(args, place, say)
    if (chosen.length === 0) {
      say('Nothing to redrive.')
      return 0
    }
    const outcomes = await redriveHere(args, place, chosen, say, closing)
    say(totals(outcomes, chosen.length))
    return outcomes.length === chosen.length && outcomes.every(({ kind }) => kind === 'done') ? 0 : 1
  })
}

/** The open ones that are asked for; says of a named one that it was redriven already. */
function choose(args: Arguments, { log, settlements, title }: LetterPlace, say: Say): readonly LoggedDeadLetter[] {
  const reason = args.text('reason')
  const named = args.texts('id').map((typed) => theLetter(log.letters, typed, title))
  const candidates = args.has('id') ? [...new Set(named)] : log.letters
  for (const letter of named) {
    if (settlements.isSettled(letter)) say(`${letter.handle}  redriven already`)
  }
  return candidates.filter(
    (letter) => !settlements.isSettled(letter) && (reason === undefined || letter.entry.reason.code === reason),
  )
}

async function redriveHere(
  args: Arguments,
  place: LetterPlace,
  letters: readonly LoggedDeadLetter[],
  say: Say,
  closing: Closing,
): Promise<readonly RedriveOutcome[]> {
  const { directory, endpoint, client, deadLetterStream, log, settlements } = place
  const { planned, handlerFile } = await application(args, place)
  const logFile = join(directory, 'redrive.log')
  const own = await LocalFunction.start({
    ...{ planned, entry: handlerFile, directory, endpoint, client, deadLetterStream },
    // A log that cannot be written must not end the redrive.
    onLine: (line) => void appendFile(logFile, `${line}\n`).catch(() => undefined),
  })
  closing.defer(() => own.stop())
  const outcomes: RedriveOutcome[] = []
  const signal = interruption(process, systemClock.nowMs, () => say('Stopping behind the record in flight.'))
  try {
    const stopped = await redrive({
      ...{
        topology: planned.topology,
        sources: planned.graph.sources.map(({ name }) => name),
        letters,
        log,
        settlements,
      },
      function: own,
      readSource: (entry) => own.readSource(entry),
      clock: systemClock,
      signal,
      onOutcome(letter, outcome) {
        outcomes.push(outcome)
        say(`${letter.handle}  ${outcomeText(outcome)}`)
      },
    })
    if (stopped !== undefined) say(`The redrive ended early: ${stopped}.`)
  } catch (error) {
    if (error instanceof ConfigurationError) throw error
    const problem = describeError(error).message.split('\n')[0]
    throw new ConfigurationError(
      `The redrive stopped: ${problem}. What is not reported as done is open: run it again.`,
      { cause: error },
    )
  }
  say(`Log of the function: ${logFile}.`)
  return outcomes
}

/** The application as its files are now: what was fixed is what runs. */
async function application(args: Arguments, { directory, app }: LetterPlace) {
  const facts = await readRunFacts(directory)
  const topologyFile = args.text('topology') ?? facts?.topologyFile
  if (topologyFile === undefined) throw usage(`${directory} does not say whose it is: add --topology FILE.`)
  const beside = args.has('topology') ? undefined : facts?.handlerFile
  const handlerFile = args.text('handler') ?? beside ?? handlerBeside(topologyFile)
  const { topology } = await loadUserCode(topologyFile, handlerFile)
  if (topology.name === app) return { planned: plan(topology), handlerFile }
  throw new ConfigurationError(`${topologyFile} exports topology "${topology.name}", not "${app}": give --topology.`)
}

function totals(outcomes: readonly RedriveOutcome[], asked: number): string {
  const count = (kind: RedriveOutcome['kind']) => outcomes.filter((outcome) => outcome.kind === kind).length
  const untried = asked - outcomes.length
  return [
    `${grouped(count('done'))} done`,
    `${grouped(count('dead-letter'))} given up again`,
    `${grouped(count('returned'))} returned`,
    `${grouped(count('refused'))} refused`,
    ...(untried > 0 ? [`${grouped(untried)} not tried`] : []),
  ].join(', ')
}
