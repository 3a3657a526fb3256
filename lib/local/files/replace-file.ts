/** How the files of a run are replaced, and what is said while they cannot be. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describeError } from '../../core/errors.ts'

/** Puts a text in the place of a file, whole or not at all, or rejects. A port, so that tests can fill the disk. */
export type ReplaceFile = (path: string, text: string) => Promise<void>

/** No fsync: the rename survives a crash of the process, and after one of the machine an older position only repeats records. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`
  try {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(temporary, text)
    await rename(temporary, path)
  } catch (thrown) {
    await rm(temporary, { force: true }).catch(() => {})
    throw thrown
  }
}

/**
 * Says why something cannot be written, and what to do. An embedded service has only the message of its answer to tell of a full disk.
 *
 * @param what the path of the file, or `The stream flights`.
 */
export function writeProblem(what: string, thrown: unknown): string {
  const { code, message } = describeError(thrown)
  const isFull = code === 'ENOSPC' || /\bENOSPC\b/.test(message)
  return `${what} cannot be written: ${isFull ? 'the disk is full; free some space and the run goes on' : message}`
}

/** True for the answer of an embedded service that could not save what it was asked for, or of AWS where it has failed. */
export const isUnsaved = (thrown: unknown): boolean => describeError(thrown).name === 'InternalFailure'

const firstPauseMs = 100
const longestPauseMs = 3_200

/** How long to wait before the next attempt: it doubles with each failure, and a person who has freed space does not wait long. */
export const writePauseMs = (failures: number): number => Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1))
