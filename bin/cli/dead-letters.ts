/** `millrace dead-letters list | show | redrive`. */
import { Closing } from '../../lib/local/closing.ts'
import type { Arguments, CommandSyntax, Flag } from './arguments.ts'
import type { Say } from './command.ts'
import { openLetters } from './dead-letter-places.ts'
import { runRedrive } from './dead-letter-redrive.ts'
import {
  type ListedLetter,
  letterJson,
  listLines,
  printable,
  reasonLines,
  showLines,
  theLetter,
} from './dead-letter-text.ts'
import { counted } from './words.ts'

const whichRun: Readonly<Record<string, Flag>> = {
  app: { value: 'NAME', help: 'the local run of that topology (default: the only one in .millrace)' },
}
const elsewhere: Readonly<Record<string, Flag>> = {
  ...whichRun,
  stream: { value: 'NAME', help: 'a Kinesis stream of dead letters, instead of a local run' },
  queue: { value: 'URL', help: 'an SQS queue of dead letters, instead of a local run' },
  topic: { value: 'NAME', help: 'a Kafka topic of dead letters, instead of a local run; with --function' },
  endpoint: {
    value: 'URL',
    help: 'where --stream, --queue or the function is (default: AWS, as the environment says)',
  },
}
const whoseTopic: Flag = {
  value: 'NAME',
  help: 'with --topic: a deployed function with dead letters there, which knows how the cluster is reached',
}
const byReason: Flag = { value: 'CODE', help: 'only those with this reason, such as not-json' }

const listSyntax: CommandSyntax = {
  name: 'dead-letters list',
  positionals: [],
  summary: 'Lists open dead letters: when each was given up, why, and where it is in its source.',
  flags: {
    ...elsewhere,
    function: whoseTopic,
    reason: byReason,
    'include-redriven': { help: 'lists those that were redriven, too' },
    json: { help: 'one JSON value a line, without what the records held' },
  },
}
const showSyntax: CommandSyntax = {
  name: 'dead-letters show',
  positionals: ['ID'],
  summary: 'Shows one dead letter with its error, key, headers and original bytes.',
  flags: { ...elsewhere, function: whoseTopic },
}
const redriveSyntax: CommandSyntax = {
  name: 'dead-letters redrive',
  positionals: [],
  summary:
    'Sends open dead letters to their own function, or keyed stage, again. No other reader of the source sees them.',
  flags: {
    ...elsewhere,
    function: {
      value: 'NAME',
      help: 'the deployed function of their source, or one that feeds their keyed stage, with --stream, --queue or --topic',
    },
    all: { help: 'all that are open' },
    reason: { ...byReason, help: 'those with this reason' },
    id: { value: 'ID', many: true, help: 'this one; may be repeated' },
    topology: { value: 'FILE', help: 'the topology of a local run (default: what it was started with)' },
    handler: { value: 'FILE', help: 'the handler of a local run (default: what it was started with)' },
  },
}

export const deadLetterCommands = [
  { syntax: listSyntax, run: runList },
  { syntax: showSyntax, run: runShow },
  {
    syntax: redriveSyntax,
    run: (args: Arguments, say: Say) => withClosing((closing) => runRedrive(args, say, closing)),
  },
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
    const asked = letters.filter(({ redrivenAtMs }) => redrivenAtMs === undefined || args.has('include-redriven'))
    const chosen = asked.filter(({ entry }) => reason === undefined || entry.reason.code === reason)
    if (args.has('json')) {
      for (const letter of chosen) say(letterJson(letter))
      return 0
    }
    say(`${counted(chosen.length, 'dead letter')} of ${title}`)
    const lines =
      chosen.length === 0 ? otherReasons(asked, reason) : ['', ...listLines(chosen), '', ...reasonLines(chosen)]
    for (const line of [...lines, ...unreadable.map(({ place, problem }) => `${place} is not listed: ${problem}`)])
      say(line)
    return 0
  })
}

/** What to choose instead of a reason that no letter has. */
function otherReasons(letters: readonly ListedLetter[], reason: string | undefined): readonly string[] {
  if (reason === undefined || letters.length === 0) return []
  return [
    `None has the reason ${printable(reason)}. The reasons of ${counted(letters.length, 'dead letter')}:`,
    ...reasonLines(letters),
  ]
}

async function runShow(args: Arguments, say: Say): Promise<number> {
  return withClosing(async (closing) => {
    const { title, letters } = await openLetters(args, closing)
    const letter = theLetter(letters, args.positionals[0] ?? '', title)
    for (const line of showLines(letter)) say(line)
    return 0
  })
}
