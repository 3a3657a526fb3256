/** `millrace state get | list | explain`: what a keyed stage keeps, read from its table. Only `state mend` writes. */
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { Closing } from '../../lib/local/closing.ts'
import type { Arguments, CommandSyntax, Flag } from './arguments.ts'
import type { Say } from './command.ts'
import { printable } from './dead-letter-text.ts'
import { explain } from './state-explain.ts'
import { mendCommand } from './state-mend.ts'
import { openState, type StatePlace } from './state-place.ts'
import { listKeys, reading, readKey } from './state-reading.ts'
import { explanationJson, explanationLines, keyJson, keyLines, listLines, pageJson } from './state-text.ts'

const where: Readonly<Record<string, Flag>> = {
  app: { value: 'NAME', help: 'the local run of that topology (default: the only one in .millrace)' },
  topology: {
    value: 'FILE',
    help: 'the topology that types the states (default: what the local run was started with)',
  },
  table: { value: 'NAME', help: 'a state table, instead of a local run' },
  endpoint: { value: 'URL', help: 'where --table is (default: AWS, as the environment says)' },
}
const json: Flag = { help: 'one JSON value, for programs' }

const getSyntax: CommandSyntax = {
  name: 'state get',
  positionals: ['STAGE', 'KEY'],
  summary: 'Shows what a keyed stage keeps of a key. KEY is written as `state list` shows it.',
  flags: {
    ...where,
    entries: { value: 'N', help: 'at most so many entries of its map states, up to 100,000 (default: 1,000)' },
    json,
  },
}
const listSyntax: CommandSyntax = {
  name: 'state list',
  positionals: ['STAGE'],
  summary:
    'Lists keys of a keyed stage, in the order of the table. It reads the table from its beginning, or behind a key.',
  flags: {
    ...where,
    limit: { value: 'N', help: 'at most so many keys, up to 10,000 (default: 100)' },
    after: { value: 'KEY', help: 'goes on behind that key' },
    json,
  },
}
const explainSyntax: CommandSyntax = {
  name: 'state explain',
  positionals: ['STAGE', 'KEY'],
  summary: 'Says where a key is, what was applied to it, what is due, and what the stage knows of the time.',
  flags: {
    ...where,
    stream: {
      value: 'NAME',
      help: 'with --table: the stream that the stage reads, for what its partitions have done; a topic of Kafka needs none',
    },
    json,
  },
}

export const stateCommands = [
  { syntax: getSyntax, run: (args: Arguments, say: Say) => atState(args, (place) => runGet(place, args, say)) },
  { syntax: listSyntax, run: (args: Arguments, say: Say) => atState(args, (place) => runList(place, args, say)) },
  { syntax: explainSyntax, run: (args: Arguments, say: Say) => atState(args, (place) => runExplain(place, args, say)) },
  mendCommand,
]

async function atState(args: Arguments, work: (place: StatePlace) => Promise<void>): Promise<number> {
  const closing = new Closing()
  try {
    const place = await openState(args, args.positionals[0] ?? '', closing)
    await work(place)
    return 0
  } finally {
    await closing.close()
  }
}

async function runGet(place: StatePlace, args: Arguments, say: Say): Promise<void> {
  const [, key = ''] = args.positionals
  const found = there(await reading(readKey(place, key, args.integer('entries', 1, 100_000, 1_000))), place, key)
  if (args.has('json')) say(keyJson(found))
  else for (const line of keyLines(found, place)) say(line)
}

async function runList(place: StatePlace, args: Arguments, say: Say): Promise<void> {
  const page = await reading(listKeys(place, args.integer('limit', 1, 10_000, 100), args.text('after')))
  if (args.has('json')) say(pageJson(page))
  else for (const line of listLines(page, place)) say(line)
}

async function runExplain(place: StatePlace, args: Arguments, say: Say): Promise<void> {
  const [, key = ''] = args.positionals
  const nowMs = systemClock.nowMs()
  const explanation = there(await reading(explain(place, key, nowMs)), place, key)
  if (args.has('json')) say(explanationJson(place, explanation))
  else for (const line of explanationLines(place, explanation, nowMs)) say(line)
}

function there<T>(found: T | undefined, place: StatePlace, key: string): T {
  if (found !== undefined) return found
  throw new ConfigurationError(
    `There is no key ${JSON.stringify(printable(key))} in ${place.title}. \`millrace state list ${place.stage} ${place.flags}\` lists those that are there.`,
  )
}
