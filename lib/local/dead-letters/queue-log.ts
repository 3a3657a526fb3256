/**
 * The dead letters of an SQS queue during a redrive.
 *
 * Invariants:
 * 1. Every message is held, so hidden from others, until it is deleted or given back.
 * 2. A message is deleted only when its place is settled on the disk. One that is settled and still there is deleted by the next redrive.
 */
import type { DeadLetterEntry } from '../../aws/dead-letters/entry.ts'
import type { HeldQueue, QueuedMessage } from '../../aws/dead-letters/queue.ts'
import { deadLetterHandle, readDeadLetter } from '../../aws/dead-letters/reading.ts'
import type { LoggedDeadLetter } from './log.ts'
import type { LetterLog } from './redrive.ts'

export class QueueLetters implements LetterLog {
  readonly #queue: HeldQueue
  readonly #letters = new Map<string, LoggedDeadLetter>()
  /** What is in the queue and is no dead letter: it is given back. */
  readonly unreadable: { readonly place: string; readonly problem: string }[] = []
  /** Settled messages that could not be deleted. */
  undeleted = 0

  constructor(queue: HeldQueue) {
    this.#queue = queue
  }

  get letters(): readonly LoggedDeadLetter[] {
    return [...this.#letters.values()]
  }

  get(id: string): LoggedDeadLetter | undefined {
    return this.#letters.get(id)
  }

  async refresh(): Promise<readonly DeadLetterEntry[]> {
    const messages = await this.#queue.receive()
    return messages.flatMap((message) => this.#take(message) ?? [])
  }

  async discard(letters: readonly LoggedDeadLetter[]): Promise<void> {
    const places = letters.flatMap((letter) => letter.places)
    this.undeleted += await this.#queue.delete(places).catch(() => places.length)
  }

  #take({ messageId, body }: QueuedMessage): DeadLetterEntry | undefined {
    const entry = readDeadLetter(body)
    if ('problem' in entry) {
      this.unreadable.push({ place: messageId, problem: entry.problem })
      return undefined
    }
    const known = this.#letters.get(entry.id)
    const places = [...(known?.places ?? []), messageId]
    this.#letters.set(entry.id, { handle: deadLetterHandle(entry.id), entry: later(known?.entry, entry), places })
    return entry
  }
}

/** A queue keeps no order: what was given up last speaks for the letter. */
function later(one: DeadLetterEntry | undefined, other: DeadLetterEntry): DeadLetterEntry {
  return one !== undefined && one.failedAtMs > other.failedAtMs ? one : other
}
