/**
 * Owns a file in which an embedded service keeps the effects of its model between runs.
 *
 * 1. A line is the CRC-32 of its text in eight hexadecimal digits, a space, one effect as JSON, a line feed. The first line states
 *    the format and its version.
 * 2. Effects are written in the order in which they happened; what waits is written in one piece.
 * 3. `saved()` resolves only when every effect that was added before it is in the file: an answer that waits for it shows nothing
 *    that a restart forgets. (It outlives this process, not a failing machine: the file is not synced to the disk.)
 * 4. A failed write loses nothing and keeps the order: the same bytes are written again at the same place, before anything new.
 * 5. A last line without its line feed was never saved: it is cut off. Any other damage stops the start.
 */
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { ConfigurationError, describeError } from '../../core/errors.ts'

const LINE_FEED = 0x0a

/** Writes all the bytes at a place in the file, or throws. A port, so that tests can fill the disk. */
export type WriteAt = (file: FileHandle, bytes: Buffer, position: number) => Promise<void>

export interface EffectJournal<Effect> {
  /** Takes an effect at once, and copies what it keeps of it. */
  add(effect: Effect): void
  /** Resolves when everything added so far is in the file; rejects when that could not be written. Calling again tries again. */
  saved(): Promise<void>
  /** Saves what is left and closes the file. Rejects, with the file closed, when something could not be saved. */
  close(): Promise<void>
}

/** Whose effects a journal holds, and how they are written. */
export interface JournalFormat<Effect> {
  /** The service, as messages name it: `Kinesis`. */
  readonly service: string
  /** What is lost with the file: `streams`. */
  readonly contents: string
  readonly header: { readonly format: string; readonly version: number }
  /** To what JSON can hold, and back. */
  toJson(effect: Effect): unknown
  fromJson(json: unknown): Effect
}

/**
 * Opens a journal, or makes one in a directory that exists, and hands every effect in it to `restore`.
 *
 * @throws ConfigurationError naming the file and the line, when the file is damaged or was written by a newer release.
 */
export async function openEffectJournal<Effect>(
  format: JournalFormat<Effect>,
  path: string,
  restore: (effect: Effect) => void,
  writeAt: WriteAt = writeFully,
): Promise<EffectJournal<Effect>> {
  const file = await open(path, 'a+').then(async (created) => {
    await created.close()
    return open(path, 'r+')
  })
  try {
    const savedBytes = await replay(format, path, restore)
    await file.truncate(savedBytes)
    const journal = new Journal(format, file, savedBytes, writeAt)
    if (savedBytes === 0) journal.addText(JSON.stringify(format.header))
    await journal.saved()
    return journal
  } catch (error) {
    await file.close()
    throw error
  }
}

class Journal<Effect> implements EffectJournal<Effect> {
  readonly #format: JournalFormat<Effect>
  readonly #file: FileHandle
  readonly #writeAt: WriteAt
  #savedBytes: number
  /** What is being written, kept until it is saved. */
  #inFlight = Buffer.alloc(0)
  #waiting: Buffer[] = []
  #writing: Promise<void> | undefined

  constructor(format: JournalFormat<Effect>, file: FileHandle, savedBytes: number, writeAt: WriteAt) {
    this.#format = format
    this.#file = file
    this.#savedBytes = savedBytes
    this.#writeAt = writeAt
  }

  add(effect: Effect): void {
    this.addText(JSON.stringify(this.#format.toJson(effect)))
  }

  addText(text: string): void {
    this.#waiting.push(Buffer.from(`${checksum(text)} ${text}\n`))
  }

  async saved(): Promise<void> {
    // What waits now is in the write that is under way or in the one after it.
    if (this.#writing !== undefined) await this.#writing
    if (this.#inFlight.length > 0 || this.#waiting.length > 0) {
      this.#writing ??= this.#write().finally(() => {
        this.#writing = undefined
      })
      await this.#writing
    }
  }

  async #write(): Promise<void> {
    if (this.#inFlight.length > 0) await this.#writeInFlight()
    if (this.#waiting.length === 0) return
    this.#inFlight = Buffer.concat(this.#waiting)
    this.#waiting = []
    await this.#writeInFlight()
  }

  async #writeInFlight(): Promise<void> {
    await this.#writeAt(this.#file, this.#inFlight, this.#savedBytes)
    this.#savedBytes += this.#inFlight.length
    this.#inFlight = Buffer.alloc(0)
  }

  async close(): Promise<void> {
    try {
      await this.saved()
    } finally {
      await this.#file.close()
    }
  }
}

async function writeFully(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten
  }
}

/** Reads the journal line by line and returns how many of its bytes are whole lines. */
async function replay<Effect>(
  format: JournalFormat<Effect>,
  path: string,
  restore: (effect: Effect) => void,
): Promise<number> {
  let rest: Buffer = Buffer.alloc(0)
  let savedBytes = 0
  let lineNumber = 0
  for await (const chunk of createReadStream(path, { highWaterMark: 1_048_576 })) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let start = 0
    for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED, start)) {
      lineNumber += 1
      replayLine(format, path, lineNumber, rest.toString('utf8', start, end), restore)
      savedBytes += end + 1 - start
      start = end + 1
    }
    rest = rest.subarray(start)
  }
  return savedBytes
}

function replayLine<Effect>(
  format: JournalFormat<Effect>,
  path: string,
  lineNumber: number,
  line: string,
  restore: (effect: Effect) => void,
): void {
  const text = line.slice(9)
  if (line.slice(0, 9) !== `${checksum(text)} `) {
    throw damaged(format, path, lineNumber, 'its checksum does not match')
  }
  if (lineNumber === 1) {
    if (text !== JSON.stringify(format.header)) throw foreign(format, path, text)
    return
  }
  try {
    restore(format.fromJson(JSON.parse(text)))
  } catch (error) {
    throw damaged(format, path, lineNumber, describeError(error).message)
  }
}

type Owner = Pick<JournalFormat<unknown>, 'service' | 'contents'>

function damaged({ service, contents }: Owner, path: string, lineNumber: number, reason: string): ConfigurationError {
  return new ConfigurationError(
    `The journal of the embedded ${service} is damaged at ${path}:${lineNumber}: ${reason}. Restore the file, or delete it to begin with no ${contents}.`,
  )
}

function foreign({ contents }: Owner, path: string, header: string): ConfigurationError {
  return new ConfigurationError(
    `The file ${path} begins with ${header.slice(0, 100)}, which this release does not read: use the release that wrote it, or delete the file to begin with no ${contents}.`,
  )
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}
