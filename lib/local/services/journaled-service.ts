/**
 * The life of an embedded service, whatever it speaks: a loopback server over a model whose changes go to a journal.
 *
 * 1. The port is taken before the directory, so that a busy port is told before anything is read or dropped.
 * 2. No request is answered before the journal is restored; where that fails, all fail, and port and lock are let go.
 * 3. No answer leaves before everything that it may show is in the journal. When that cannot be written the request fails, and no
 *    change is accepted until the file can be written again; nothing is lost.
 * 4. Closing answers what is in flight, saves, and lets go of port and lock; it may be called again.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { takeLock } from '../files/directory-lock.ts'
import type { EffectJournal } from './effect-journal.ts'
import { type LoopbackAnswer, type LoopbackOptions, type LoopbackRequest, listenOnLoopback } from './loopback-server.ts'

export interface JournaledServiceOptions<Effect> extends Omit<LoopbackOptions, 'answer'> {
  /** Where the journal is kept; undefined keeps none. */
  readonly directory: string | undefined
  /** The lock's and the journal's file name without its ending, such as `kinesis`. */
  readonly name: string
  /** Called once the port is taken, before the directory is looked at. Where it rejects, nothing starts. @default nothing */
  readonly onBound?: (() => Promise<void>) | undefined
  /** Restores the model from a journal, and adds to it from then on. */
  openJournal(path: string): Promise<EffectJournal<Effect>>
  /** Has the model do what is asked. */
  perform(request: LoopbackRequest): LoopbackAnswer
  /** Says what `perform` threw, or why the journal cannot be written. */
  refuse(error: unknown): LoopbackAnswer
}

export interface JournaledService {
  readonly url: string
  /** Idempotent. Rejects when the last changes could not be saved. */
  close(): Promise<void>
}

export async function startJournaledService<Effect>(
  options: JournaledServiceOptions<Effect>,
): Promise<JournaledService> {
  const { directory, name, onBound, openJournal, perform, refuse, ...loopback } = options
  const restoring = Promise.withResolvers<void>()
  // Without a request that waits for it, nobody listens to a failure but the one who started the service.
  restoring.promise.catch(() => {})
  let journal: EffectJournal<Effect> | undefined
  const answer = async (request: LoopbackRequest): Promise<LoopbackAnswer> => {
    await restoring.promise
    try {
      await journal?.saved()
      const performed = perform(request)
      await journal?.saved()
      return performed
    } catch (error) {
      return refuse(error)
    }
  }
  const server = await listenOnLoopback({ ...loopback, answer })
  let release = async () => {}
  try {
    await onBound?.()
    if (directory !== undefined) {
      await mkdir(directory, { recursive: true })
      release = await takeLock(join(directory, `${name}.lock`))
      journal = await openJournal(join(directory, `${name}.journal`))
    }
  } catch (error) {
    restoring.reject(error)
    await server.close()
    await release()
    throw error
  }
  restoring.resolve()
  let closed: Promise<void> | undefined
  return {
    url: server.url,
    close() {
      closed ??= server
        .close()
        .then(() => journal?.close())
        .finally(release)
      return closed
    },
  }
}
