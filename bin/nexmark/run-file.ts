/** Runs a query over an event file. */
import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { MakeQuery } from '../../functions/nexmark/query.ts'
import { milliseconds, minutes } from '../../lib/core/duration.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { disorderOf, eventTimesOf } from './event-times.ts'
import { LineFile } from './line-file.ts'
import { linesInPieces } from './line-reader.ts'
import { QueryRun } from './query-run.ts'
import { sortedLines } from './sorted-lines.ts'

export interface FileRun {
  readonly events: number
  readonly results: number
  /** By how much an event trails the newest one before it, at most. */
  readonly disorderMs: number
  /** Whether that was too much for windows that are all kept open, so that the lines were sorted first. */
  readonly isSorted: boolean
  /** Bids that came later than the first look at the file had said: they are in no result. */
  readonly late: number
  /** Lines that are in no result, and why the first of them is not. */
  readonly refused: number
  readonly firstRefusal: string | undefined
}

/**
 * As much disorder is allowed for in windows: beyond it a key that is busy all the time would have more of them open than an
 * item of the state table holds.
 */
const mostDisorder = minutes(10)

/**
 * Reads events from one file and writes the results to another, both one JSON object a line. The end of the file is the end
 * of the input. `onProgress` is told how many events were read, now and then.
 *
 * The file is read twice: first to see how much its events are out of order, so that none is late. What cannot be read twice,
 * such as a pipe, is copied to a temporary file.
 */
export async function runFile(
  make: MakeQuery,
  files: { readonly from: string; readonly to: string },
  onProgress: (events: number) => void = () => undefined,
): Promise<FileRun> {
  refuseSameFile(files)
  const scratch = mkdtempSync(join(tmpdir(), 'millrace-nexmark-'))
  try {
    const from = await readableTwice(files.from, scratch)
    const timeOf = eventTimesOf(make(milliseconds(0)))
    const disorder = disorderOf(timeOf, linesInPieces(from))
    const isSorted = disorder.ms > mostDisorder.ms
    const pieces = isSorted ? sortedLines(linesInPieces(from), { directory: scratch, timeOf }) : linesInPieces(from)
    // Only now: what cannot be read must not cost the results of an earlier run.
    const counts = await runPieces(make(isSorted ? milliseconds(0) : disorder), pieces, files.to, onProgress)
    return { ...counts, disorderMs: disorder.ms, isSorted }
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

async function runPieces(
  app: ReturnType<MakeQuery>,
  pieces: Iterable<readonly Buffer[]>,
  to: string,
  onProgress: (events: number) => void,
): Promise<Omit<FileRun, 'disorderMs' | 'isSorted'>> {
  const output = new LineFile(to)
  try {
    let [events, results, late, refused] = [0, 0, 0, 0]
    let firstRefusal: string | undefined
    const run = new QueryRun({
      app,
      take(sink, line) {
        if (sink === 'late') late++
        else {
          results++
          output.write(line)
        }
      },
      refuse(reason) {
        refused++
        firstRefusal ??= reason
      },
    })
    for (const lines of pieces) {
      await run.add(lines)
      events += lines.length
      onProgress(events)
    }
    await run.end()
    return { events, results, late, refused, firstRefusal }
  } finally {
    output.close()
  }
}

/** The file itself, or a copy of what can be read only once. */
async function readableTwice(path: string, scratch: string): Promise<string> {
  if (statSync(path).isFile()) return path
  const copy = join(scratch, 'input')
  await pipeline(createReadStream(path), createWriteStream(copy))
  return copy
}

function refuseSameFile({ from, to }: { readonly from: string; readonly to: string }): void {
  const [read, written] = [statSync(from), statSync(to, { throwIfNoEntry: false })]
  if (!read.isFile() || read.dev !== written?.dev || read.ino !== written.ino) return
  throw new ConfigurationError(`${to} is the file of the events itself: write the results to another one.`)
}
