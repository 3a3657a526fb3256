/**
 * Owns the file that remembers which dead letters were redriven.
 *
 * Invariants:
 * 1. A line is one redriven dead letter: its id and the places in the dead-letter stream that the redrive settled. An entry that comes to
 *    the stream later is not settled by it.
 * 2. `settle` resolves once its line is on the disk. A line is written only after the application has acknowledged the record.
 * 3. A last line that was cut off was never acknowledged, so it counts for nothing: that record is redriven again, which an idempotent sink
 *    absorbs. Only a writer removes it, of which there is one at a time; to a reader it may be a line that is being written.
 */
import { mkdir, open, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigurationError } from '../../core/errors.ts'
import type { LoggedDeadLetter } from './log.ts'

/** When a dead letter was redriven, in ms since 1970. */
export interface Settlement {
  readonly id: string
  readonly places: readonly string[]
  readonly redrivenAtMs: number
}

/** A file that is only ever added to. Injected, so that a test sees the order of writing, syncing and answering. */
export interface AppendableFile {
  truncate(lengthBytes: number): Promise<void>
  writeFile(text: string): Promise<void>
  /** Resolves once everything written is on the disk. */
  sync(): Promise<void>
  close(): Promise<void>
}

export type OpenToAppend = (path: string) => Promise<AppendableFile>

const openToAppend: OpenToAppend = async (path) => {
  await mkdir(dirname(path), { recursive: true })
  return open(path, 'a')
}

export class SettlementFile {
  readonly #path: string
  readonly #open: OpenToAppend
  readonly #byPlace = new Map<string, Settlement>()
  /** Where whole lines end, while something else follows them. */
  #cutAtBytes: number | undefined

  private constructor(path: string, openFile: OpenToAppend) {
    this.#path = path
    this.#open = openFile
  }

  /** Reads the file, where there is one. Rejects with a ConfigurationError that names a damaged line. */
  static async open(path: string, openFile: OpenToAppend = openToAppend): Promise<SettlementFile> {
    const file = new SettlementFile(path, openFile)
    const text = await readFile(path, 'utf8').catch((error: { code?: string }) => {
      if (error.code === 'ENOENT') return ''
      throw error
    })
    const lines = text.split('\n')
    const cut = lines.pop() ?? ''
    if (cut !== '') file.#cutAtBytes = Buffer.byteLength(text) - Buffer.byteLength(cut)
    for (const [index, line] of lines.entries()) file.#remember(parsed(line, `${path}:${index + 1}`))
    return file
  }

  /** False while an entry of the dead letter waits for a redrive. */
  isSettled({ places }: LoggedDeadLetter): boolean {
    return places.every((place) => this.#byPlace.has(place))
  }

  /** The last redrive of a dead letter. */
  settlementOf({ places }: LoggedDeadLetter): Settlement | undefined {
    return places.map((place) => this.#byPlace.get(place)).findLast((settlement) => settlement !== undefined)
  }

  async settle(letters: readonly LoggedDeadLetter[], redrivenAtMs: number): Promise<void> {
    if (letters.length === 0) return
    const settlements = letters.map(({ entry, places }) => ({ id: entry.id, places, redrivenAtMs }))
    const handle = await this.#open(this.#path)
    try {
      if (this.#cutAtBytes !== undefined) await handle.truncate(this.#cutAtBytes)
      this.#cutAtBytes = undefined
      await handle.writeFile(settlements.map((settlement) => `${JSON.stringify(settlement)}\n`).join(''))
      await handle.sync()
    } finally {
      await handle.close()
    }
    for (const settlement of settlements) this.#remember(settlement)
  }

  #remember(settlement: Settlement): void {
    for (const place of settlement.places) this.#byPlace.set(place, settlement)
  }
}

function parsed(line: string, where: string): Settlement {
  try {
    const { id, places, redrivenAtMs } = JSON.parse(line)
    if (typeof id === 'string' && Array.isArray(places) && Number.isFinite(redrivenAtMs))
      return { id, places, redrivenAtMs }
  } catch {}
  throw new ConfigurationError(
    `${where} is damaged, so it is unknown which dead letters were redriven: restore the file, or delete it to have all of them open again.`,
  )
}
