/** The commands of `millrace`, and what is said to somebody who asks for help or mistypes. */
import { ConfigurationError } from '../../lib/core/errors.ts'
import { helpOf, nearest, parseArguments, usage } from './arguments.ts'
import type { Command, Say } from './command.ts'
import { deadLetterCommands } from './dead-letters.ts'
import { devSyntax, runDev } from './dev.ts'
import { lockSyntax, runLock } from './lock.ts'
import { operateCommands } from './operate/commands.ts'
import { planSyntax, runPlan } from './plan.ts'
import { withAdvice } from './reach-advice.ts'
import { stateCommands } from './state.ts'

const commands: readonly Command[] = [
  { syntax: devSyntax, run: runDev },
  { syntax: planSyntax, run: runPlan },
  { syntax: lockSyntax, run: runLock },
  ...operateCommands,
  ...stateCommands,
  ...deadLetterCommands,
]

const isHelp = (word: string | undefined): boolean => word === 'help' || word === '--help' || word === '-h'

/** Runs what was typed behind `millrace`. Throws a ConfigurationError, with the code `usage` where what was typed is wrong. */
export async function runCommand(typed: readonly string[], say: Say): Promise<number> {
  const [first, ...others] = typed
  if (first === undefined || (isHelp(first) && others.length === 0)) {
    say(overview())
    return first === undefined ? 2 : 0
  }
  const words = isHelp(first) ? others : typed
  const named = commandOf(words)
  if (named === undefined) {
    const group = commands.filter(({ syntax }) => syntax.name.startsWith(`${words[0]} `))
    if (group.length === 0 || !(isHelp(first) || words.some(isHelp))) throw unknownCommand(words)
    say(group.map(({ syntax }) => helpOf(syntax)).join('\n\n'))
    return 0
  }
  const { command, rest } = named
  if (isHelp(first) || rest.includes('--help') || rest.includes('-h')) {
    say(helpOf(command.syntax))
    return 0
  }
  try {
    return await command.run(parseArguments(command.syntax, rest), say)
  } catch (error) {
    if (!(error instanceof ConfigurationError) || error.code !== 'usage') throw withAdvice(error)
    throw usage(`${error.message} \`millrace ${command.syntax.name} --help\` lists what it takes.`)
  }
}

function commandOf(words: readonly string[]): { command: Command; rest: readonly string[] } | undefined {
  for (const command of commands) {
    const name = command.syntax.name.split(' ')
    if (name.every((word, at) => words[at] === word)) return { command, rest: words.slice(name.length) }
  }
  return undefined
}

function unknownCommand(words: readonly string[]): ConfigurationError {
  const [first = '', second] = words
  const names = commands.map(({ syntax }) => syntax.name)
  const inGroup = names.filter((name) => name.startsWith(`${first} `))
  const typed = inGroup.length > 0 && second !== undefined ? `${first} ${second}` : first
  const near = nearest(typed, inGroup.length > 0 ? inGroup : [...names, 'state', 'dead-letters', 'help'])
  const remedy = near === undefined ? '`millrace help` lists the commands.' : `Did you mean \`millrace ${near}\`?`
  if (inGroup.length > 0 && second === undefined) {
    return usage(`\`millrace ${first}\` needs one of ${inGroup.map((name) => name.split(' ')[1]).join(', ')}.`)
  }
  return usage(`There is no command \`millrace ${typed}\`. ${remedy}`)
}

function overview(): string {
  const rows = commands.map(({ syntax }) => [[syntax.name, ...syntax.positionals].join(' '), syntax.summary] as const)
  const width = Math.max(...rows.map(([left]) => left.length))
  return [
    'Runs Millrace topologies on this machine, shows their state and acts on them and their dead letters, here and on AWS.',
    '',
    ...rows.map(([left, summary]) => `  millrace ${left.padEnd(width)}  ${summary.split(/\.( |$)/)[0]}`),
    '',
    '`millrace COMMAND --help` lists the flags of a command; `millrace --version` says which release this is.',
  ].join('\n')
}
