/**
 * Sends NDJSON files to the source streams of a local run.
 *
 * Invariants:
 * 1. A line is sent as it is, bytes that are no JSON included: what becomes of it is the topology's affair. Empty lines are skipped.
 * 2. Lines keep their order. What was acknowledged is remembered, so the next run sends only what was added to the file since.
 * 3. While the disk is full nothing is sent, and what could not be saved is tried again until the signal.
 * 4. A file whose sent lines have changed since is sent from its beginning.
 */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { type KinesisItem, kinesisDestination, kinesisRecordLimitBytes } from '../../lib/aws/kinesis/destination.ts'
import { type Destination, deliverInOrder } from '../../lib/aws/ordered-delivery.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import type { Clock } from '../../lib/core/clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import { grouped } from '../../lib/local/display/run-display.ts'
import { ProgressFile, type SaveOptions } from '../../lib/local/files/progress-file.ts'
import { isUnsaved, type ReplaceFile, writeProblem } from '../../lib/local/files/replace-file.ts'
import { usage } from './arguments.ts'
import { counted } from './words.ts'

/** A file, or `-` for the standard input, and the source that it is for. */
export interface DevInput {
  readonly source: string
  readonly file: string
}

interface Sent {
  readonly lines: number
  /** SHA-256 of the lines. */
  readonly digest: string
}

/** Reads the flags `input` and `source`. Throws a ConfigurationError where a source or a file is not there. */
export async function devInputs(
  given: readonly string[],
  named: string | undefined,
  sources: readonly string[],
): Promise<readonly DevInput[]> {
  const listed = sources.join(', ')
  if (named !== undefined && !sources.includes(named)) {
    throw usage(`--source ${named} is no source of the topology: it has ${listed}.`)
  }
  const inputs = given.map((text): DevInput => {
    const [, source = '', file = ''] = /^([a-z][a-z0-9-]*)=(.+)$/s.exec(text) ?? []
    if (sources.includes(source)) return { source, file }
    if (source !== '' && !existsSync(text)) {
      throw usage(
        `--input ${text}: the topology has no source "${source}", it has ${listed}; and there is no file ${text}.`,
      )
    }
    const only = named ?? (sources.length === 1 ? sources[0] : undefined)
    if (only === undefined)
      throw usage(`--input ${text} does not say for which source: write SOURCE=${text} (${listed}).`)
    return { source: only, file: text }
  })
  if (inputs.filter(({ file }) => file === '-').length > 1) throw usage('Only one input can be -, the standard input.')
  for (const { file } of inputs) if (file !== '-') await checkFile(file)
  return inputs
}

async function checkFile(file: string): Promise<void> {
  const found = await stat(file).catch((error) => {
    const { code, message } = describeError(error)
    if (code === 'ENOENT') throw new ConfigurationError(`There is no input file ${file}: check its path.`)
    throw new ConfigurationError(`The input ${file} cannot be read: ${message}.`)
  })
  if (!found.isFile()) throw new ConfigurationError(`The input ${file} is not a file.`)
}

/** The signal ends the sending. */
export interface SendOptions extends SaveOptions {
  readonly input: DevInput
  readonly client: KinesisClient
  readonly streamName: string
  readonly progress: InputProgress
  readonly say: (line: string) => void
  /** Hears of every acknowledged request. */
  readonly onSent: (lines: number) => void
}

const linesPerRequest = 500
const bytesPerPiece = 1_048_576

/** Sends what was not sent yet. Resolves at the end of the file or with the signal; rejects where the stream does not take it. */
export async function sendInput(options: SendOptions): Promise<void> {
  const { input, progress, say } = options
  if (input.file === '-') return sendFrom(options, 0)
  const sent = progress.of(input)
  if (sent === undefined) return sendFrom(options, 0)
  if ((await digestOf(input.file, sent.lines)) === sent.digest) {
    say(`${input.file}: earlier runs have sent ${counted(sent.lines, 'line')}; --fresh sends all again.`)
    return sendFrom(options, sent.lines)
  }
  say(`${input.file} has changed since it was sent, so all of it is sent.`)
  return sendFrom(options, 0)
}

async function sendFrom(options: SendOptions, from: number): Promise<void> {
  const { input, progress, signal, say } = options
  const hash = createHash('sha256')
  let lines = 0
  const send = async (items: readonly KinesisItem[]): Promise<void> => {
    const isSent = await put(options, items)
    if (isSent && input.file !== '-') await progress.save(input, { lines, digest: hash.copy().digest('hex') }, options)
  }
  for await (const piece of piecesOf(input.file, signal)) {
    let waiting: KinesisItem[] = []
    for (const line of piece) {
      hash.update(line).update('\n')
      lines += 1
      const item = { Data: line, PartitionKey: `${input.source}-${lines}` }
      if (lines <= from || line.length === 0) continue
      if (line.length + item.PartitionKey.length <= kinesisRecordLimitBytes) waiting.push(item)
      else
        say(
          `Line ${lines} of ${input.file} is not sent: it has ${grouped(line.length)} bytes, and a record of Kinesis holds 1 MiB.`,
        )
      if (waiting.length < linesPerRequest) continue
      await send(waiting)
      if (signal.aborted) return
      waiting = []
    }
    if (lines > from) await send(waiting)
    if (signal.aborted) return
  }
}

/** Resolves with true once the stream holds all records, or with false where the signal came before. */
async function put(options: SendOptions, items: readonly KinesisItem[]): Promise<boolean> {
  if (items.length === 0) return true
  const { streamName, signal, onSent } = options
  const outcomes = await deliverInOrder(items, destinationOf(options), delivery, signal)
  onSent(outcomes.filter(({ status }) => status === 'delivered').length)
  const failed = outcomes.find((outcome) => outcome.status !== 'delivered')
  if (failed === undefined) return true
  if (signal.aborted) return false
  throw new ConfigurationError(`The stream ${streamName} does not take the input: ${failed.error.message}`)
}

/** The stream, which says so while its service cannot save. The delivery sends the same items again until it can. */
function destinationOf({ client, streamName, onBlocked }: SendOptions): Destination<KinesisItem> {
  const destination = kinesisDestination(client, { streamName }, 'none')
  return {
    ...destination,
    async send(items) {
      try {
        const answers = await destination.send(items)
        onBlocked(undefined)
        return answers
      } catch (error) {
        if (isUnsaved(error)) onBlocked(writeProblem(`The stream ${streamName}`, error))
        throw error
      }
    },
  }
}

const silent = () => undefined
const delivery = { clock: systemClock, logger: { info: silent, warn: silent, error: silent } }

/**
 * The lines of a file, as many at a time as are there: somebody who types does not wait for a full request. They are bytes, so that what is
 * not UTF-8 reaches the topology as it is.
 */
async function* piecesOf(file: string, signal: AbortSignal): AsyncGenerator<readonly Buffer[]> {
  const stream: Readable = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: bytesPerPiece })
  const stop = () => void stream.destroy()
  signal.addEventListener('abort', stop, { once: true })
  let rest: Buffer[] = []
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const lines: Buffer[] = []
      let start = 0
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
        lines.push(withoutReturn(Buffer.concat([...rest, chunk.subarray(start, end)])))
        rest = []
        start = end + 1
      }
      rest.push(chunk.subarray(start))
      yield lines
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
  const last = Buffer.concat(rest)
  if (last.length > 0 && !signal.aborted) yield [withoutReturn(last)]
}

const withoutReturn = (line: Buffer): Buffer => (line.at(-1) === 13 ? line.subarray(0, -1) : line)

/** The digest of the first lines of a file; undefined where it has fewer. */
async function digestOf(file: string, lines: number): Promise<string | undefined> {
  const hash = createHash('sha256')
  let left = lines
  if (left === 0) return hash.digest('hex')
  for await (const piece of piecesOf(file, new AbortController().signal)) {
    for (const line of piece) {
      hash.update(line).update('\n')
      left -= 1
      if (left === 0) return hash.digest('hex')
    }
  }
  return undefined
}

/** The file that remembers how much of each input was sent. */
export class InputProgress {
  readonly #file: ProgressFile<Readonly<Record<string, Sent>>>
  readonly #sent: Map<string, Sent>

  private constructor(file: ProgressFile<Readonly<Record<string, Sent>>>, sent: Map<string, Sent>) {
    this.#file = file
    this.#sent = sent
  }

  /**
   * Rejects with a ConfigurationError for a file that is damaged.
   *
   * @param replace how the file is written; by itself on the disk.
   */
  static async open(path: string, clock: Clock = systemClock, replace?: ReplaceFile): Promise<InputProgress> {
    const text = await readFile(path, 'utf8').catch(() => '{}')
    try {
      return new InputProgress(
        new ProgressFile(path, clock, replace),
        new Map(Object.entries(JSON.parse(text) as Record<string, Sent>)),
      )
    } catch (error) {
      throw new ConfigurationError(`${path} is damaged: delete it to have all input sent again.`, { cause: error })
    }
  }

  of({ source, file }: DevInput): Sent | undefined {
    return this.#sent.get(`${source}=${file}`)
  }

  /** Resolves with false where the signal came before the file could be written. */
  save({ source, file }: DevInput, sent: Sent, options: SaveOptions): Promise<boolean> {
    this.#sent.set(`${source}=${file}`, sent)
    return this.#file.save(Object.fromEntries(this.#sent), options)
  }
}
