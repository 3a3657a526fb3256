/**
 * What synth does with the lock: it compares, and refuses what would lose or misread state. It never writes: a synth in CI would
 * write where nobody commits.
 */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Annotations } from 'aws-cdk-lib'
import type { IConstruct } from 'constructs'
import { ConfigurationError } from '../core/errors.ts'
import { compareLock, lockOf, sameLock } from '../plan/lock.ts'
import { defaultLockFile, parseLock } from '../plan/lock-file.ts'
import type { Plan } from '../plan/plan.ts'

/** The name of the warning, to be acknowledged by whoever wants no lock. */
const warning = 'millrace:lock'

/**
 * Compares a topology with what is locked of it. Throws a {@link ConfigurationError} that names every state, stage and sink that
 * would be lost or misread, and what to do; warns where the file does not know all of the topology yet.
 */
export function checkLock(scope: IConstruct, planned: Plan, path = defaultLockFile): void {
  const file = resolve(path)
  const lock = existsSync(file) ? parseLock(readFileSync(file, 'utf8'), path) : undefined
  const locked = lock?.get(planned.topology)
  const flag = path === defaultLockFile ? '' : ` --lock ${path}`
  if (locked === undefined) {
    const why = lock === undefined ? `there is no ${path}` : `${path} does not know topology "${planned.topology}"`
    Annotations.of(scope).addWarningV2(
      warning,
      `${why}, so nothing keeps a later change from losing its state: run \`millrace lock TOPOLOGY${flag}\`, TOPOLOGY being the file that exports it, and commit ${path}.`,
    )
    return
  }
  const current = lockOf(planned)
  const problems = compareLock(locked, current)
  if (problems.length > 0) {
    throw new ConfigurationError(
      [
        `topology "${planned.topology}" would lose or misread what ${path} says that it keeps:`,
        ...problems.map(({ message }) => `- ${message}`),
      ].join('\n'),
      { code: 'lock-refused' },
    )
  }
  if (sameLock(locked, current)) return
  Annotations.of(scope).addWarningV2(
    warning,
    `${path} does not know all that topology "${planned.topology}" keeps now: run \`millrace lock ${locked.file}${flag}\`, and commit it.`,
  )
}
