/**
 * The life of an embedded service, whatever it speaks: a loopback server over a model whose changes go to a journal.
 *
 * 1. The port is taken before the directory, so that a busy port is told before anything is read.
 * 2. No request is answered before the journal is restored; where that fails, all fail, and port and lock are let go.
 * 3. Closing answers what is in flight, saves, and lets go of port and lock; it may be called again.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { takeLock } from './directory-lock.ts'
import type { EffectJournal } from './effect-journal.ts'
import { type LoopbackOptions, listenOnLoopback } from './loopback-server.ts'

export interface JournaledServiceOptions<Effect> extends LoopbackOptions {
  /** Where the journal is kept; undefined keeps none. */
  readonly directory: string | undefined
  /** The lock's and the journal's file name without its ending, such as `kinesis`. */
  readonly name: string
  /** Restores the model from a journal, and adds to it from then on. */
  openJournal(path: string): Promise<EffectJournal<Effect>>
}

export interface JournaledService {
  readonly url: string
  /** Idempotent. Rejects when the last changes could not be saved. */
  close(): Promise<void>
}

export async function startJournaledService<Effect>(
  options: JournaledServiceOptions<Effect>,
): Promise<JournaledService> {
  const { directory, name, openJournal, answer, ...loopback } = options
  const restoring = Promise.withResolvers<void>()
  // Without a request that waits for it, nobody listens to a failure but the one who started the service.
  restoring.promise.catch(() => {})
  const server = await listenOnLoopback({
    ...loopback,
    answer: (request) => restoring.promise.then(() => answer(request)),
  })
  let journal: EffectJournal<Effect> | undefined
  let release = async () => {}
  try {
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
