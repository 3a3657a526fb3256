/**
 * Owns the file that keeps two processes, or two services of one process, from writing to the same directory.
 *
 * The file names the process that holds it by number and start. One left behind by a process that died is taken over.
 */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { ConfigurationError } from '../../core/errors.ts'

/**
 * Takes the lock file, and returns how to give it back.
 *
 * @throws ConfigurationError when a living process holds it.
 * @example
 * const unlock = await takeLock('.millrace/kinesis.lock')
 * await unlock()
 */
export async function takeLock(path: string): Promise<() => Promise<void>> {
  const ours = `${process.pid} ${performance.timeOrigin}`
  for (let attempt = 1; ; attempt += 1) {
    try {
      await writeFile(path, ours, { flag: 'wx' })
      return () => rm(path, { force: true })
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    }
    const holder = await readFile(path, 'utf8').catch(() => '')
    if (holder === ours || isOtherLivingProcess(holder) || attempt === 3) {
      throw new ConfigurationError(
        `The files beside ${path} are in use by process ${holder.split(' ')[0]}: stop it, or give another directory. If no such program of yours runs, delete that file.`,
      )
    }
    await rm(path, { force: true })
  }
}

/** The living process, another than this one, that holds the lock file; undefined where none does. */
export async function lockHolder(path: string): Promise<number | undefined> {
  const holder = await readFile(path, 'utf8').catch(() => '')
  return isOtherLivingProcess(holder) ? Number(holder.split(' ')[0]) : undefined
}

function isOtherLivingProcess(holder: string): boolean {
  const pid = Number(holder.split(' ')[0])
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}
