/** `millrace lock`: records in millrace.lock.json what topologies keep, and refuses what would lose or misread it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { compareLock, lockOf, sameLock, type TopologyLock } from '../../lib/plan/lock.ts'
import { defaultLockFile, type Lock, type LockedTopology, lockText, parseLock } from '../../lib/plan/lock-file.ts'
import { plan } from '../../lib/plan/plan.ts'
import { type Arguments, type CommandSyntax, usage } from './arguments.ts'
import type { Say } from './command.ts'
import { loadUserCode } from './user-code.ts'
import { counted } from './words.ts'

export const lockSyntax: CommandSyntax = {
  name: 'lock',
  positionals: ['[TOPOLOGY]'],
  summary:
    'Records what a topology keeps, so that a change which would lose it is refused. Without TOPOLOGY, all that are known.',
  flags: {
    check: { help: 'writes nothing; fails where the file does not say what the topology keeps' },
    accept: { value: 'NAME', many: true, help: 'a stage, operator, state or sink that may be lost; repeatable' },
    stack: { value: 'NAME', help: 'with --check: compares with what that CloudFormation stack runs and keeps, too' },
    endpoint: { value: 'URL', help: 'with --stack: where it is (default: AWS, as the environment says)' },
    lock: { value: 'FILE', help: `the file (default: ${defaultLockFile})` },
  },
}

/** Throws a ConfigurationError that names all that would be lost or misread; the file is then as it was. */
export async function runLock(args: Arguments, say: Say): Promise<number> {
  if (args.has('stack') && !args.has('check'))
    throw usage('--stack goes with --check: it compares, and records nothing.')
  if (args.has('endpoint') && !args.has('stack')) throw usage('--endpoint goes with --stack.')
  const path = args.text('lock') ?? defaultLockFile
  const lock = new Map(existsSync(path) ? parseLock(readFileSync(path, 'utf8'), path) : [])
  const before = lockText(lock)
  const accepted = new Set(args.texts('accept'))
  const lines: string[] = []
  for (const file of filesOf(args, lock, path)) lines.push(await record(file, path, lock, accepted))
  for (const line of lines) say(line)
  const isCurrent = existsSync(path) && before === lockText(lock)
  if (args.has('check') && !isCurrent) {
    throw new ConfigurationError(`${path} does not say what is kept now: run \`millrace lock\`, and commit it.`)
  }
  const stack = args.text('stack')
  if (stack !== undefined) {
    const { compareWithStack } = await import('./lock-stack.ts')
    const needed = await compareWithStack({ stack, endpoint: args.text('endpoint') }, lock, accepted, say)
    for (const name of needed) accepted.delete(name)
  }
  const [unused] = accepted
  if (unused !== undefined) throw usage(`--accept ${unused} names nothing that would be lost or misread.`)
  if (!isCurrent) writeFileSync(path, lockText(lock))
  return 0
}

/** The file that was named, or those of all topologies that are known. */
function filesOf(args: Arguments, lock: Lock, path: string): readonly string[] {
  const [named] = args.positionals
  if (named !== undefined) return [named]
  if (lock.size === 0) throw usage(`\`millrace lock\` needs TOPOLOGY: ${path} knows none yet.`)
  return [...lock.values()].map(({ file }) => relative('.', resolve(dirname(path), file)))
}

/** Puts what a topology keeps in the lock; says what became of it. Accepted names that were needed are taken out. */
async function record(
  file: string,
  path: string,
  lock: Map<string, LockedTopology>,
  accepted: Set<string>,
): Promise<string> {
  const { topology } = await loadUserCode(file)
  const planned = plan(topology)
  const place = relative(dirname(resolve(path)), resolve(file))
    .split(sep)
    .join('/')
  const current = lockOf(planned)
  const locked = lock.get(planned.topology)
  const problems = [
    ...renamedTopologies(planned.topology, place, lock),
    ...(locked === undefined ? [] : compareLock(locked, current)),
  ]
  const refused = problems.filter(({ name }) => !accepted.has(name))
  if (refused.length > 0) {
    throw new ConfigurationError(
      [
        `topology "${planned.topology}" would lose or misread what ${path} says that it keeps:`,
        ...refused.map(({ message }) => `- ${message}`),
      ].join('\n'),
    )
  }
  for (const { name } of problems) {
    accepted.delete(name)
    if (lock.get(name)?.file === place) lock.delete(name)
  }
  lock.set(planned.topology, { file: place, ...current })
  const kept = `${planned.topology}: ${contentsOf(current)}`
  if (locked === undefined) return `${kept}, recorded for the first time`
  return sameLock(locked, current) ? `${kept}, as before` : `${kept}, changed`
}

/** A topology that the same file declared under another name: all that it keeps has that name. */
function renamedTopologies(name: string, place: string, lock: Lock) {
  return [...lock]
    .filter(([other, { file }]) => other !== name && file === place)
    .map(([other]) => ({
      name: other,
      message: `topology "${other}" of ${place} is called "${name}" now: tables of the old name are refused by the stages of the new one. Keep its name; where nothing of it is deployed, \`millrace lock --accept ${other}\`.`,
    }))
}

function contentsOf({ stages, sinks }: TopologyLock): string {
  const keyed = Object.values(stages).flatMap((stage) => (stage.kind === 'keyed' ? Object.values(stage.operators) : []))
  const states = keyed.reduce((sum, operator) => sum + Object.keys(operator.states).length, 0)
  return [
    counted(Object.keys(stages).length, 'stage'),
    counted(states, 'state'),
    counted(Object.keys(sinks).length, 'sink'),
  ].join(', ')
}
