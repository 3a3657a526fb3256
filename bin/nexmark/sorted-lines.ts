/**
 * Sorts the lines of a file by event time on disk, so that a file of any size takes little memory: parts of it are sorted in
 * memory and written, and then read side by side.
 *
 * Lines of one time keep their order. Those without a time come first.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { EventTimes } from './event-times.ts'
import { linesInPieces } from './line-reader.ts'

/** What is sorted in memory at a time. */
const defaultPartBytes = 1 << 27
/** Lines that are handed on at a time. */
const pieceLines = 4_000

interface Timed {
  readonly timeMs: number
  readonly line: Buffer
}

export interface SortOptions {
  /** Where the sorted parts are written; they stay there. */
  readonly directory: string
  readonly timeOf: EventTimes
  /** @default 128 MiB */
  readonly partBytes?: number
}

/** The lines in the order of their times, some at a time. */
export function* sortedLines(pieces: Iterable<readonly Buffer[]>, options: SortOptions): Generator<readonly Buffer[]> {
  const { timeOf } = options
  const parts = writeParts(pieces, options).map((path) => timedLines(path, timeOf))
  const heads = parts.map((part) => part.next().value)
  let piece: Buffer[] = []
  for (;;) {
    let least = -1
    for (const [i, head] of heads.entries()) {
      if (head && (least < 0 || head.timeMs < (heads[least] as Timed).timeMs)) least = i
    }
    if (least < 0) break
    piece.push((heads[least] as Timed).line)
    heads[least] = parts[least]?.next().value
    if (piece.length < pieceLines) continue
    yield piece
    piece = []
  }
  if (piece.length > 0) yield piece
}

const timed = (line: Buffer, timeOf: EventTimes): Timed => ({ timeMs: timeOf(line) ?? Number.NEGATIVE_INFINITY, line })

function* timedLines(path: string, timeOf: EventTimes): Generator<Timed, undefined> {
  for (const lines of linesInPieces(path)) for (const line of lines) yield timed(line, timeOf)
}

/** Writes parts of the lines, each sorted, and answers their paths. */
function writeParts(
  pieces: Iterable<readonly Buffer[]>,
  { directory, timeOf, partBytes }: SortOptions,
): readonly string[] {
  const paths: string[] = []
  let part: Timed[] = []
  let bytes = 0
  const write = (): void => {
    const path = join(directory, `part-${paths.length}`)
    writeSorted(path, part)
    paths.push(path)
    part = []
    bytes = 0
  }
  for (const lines of pieces) {
    for (const line of lines) {
      part.push(timed(line, timeOf))
      bytes += line.length
    }
    if (bytes >= (partBytes ?? defaultPartBytes)) write()
  }
  if (part.length > 0) write()
  return paths
}

function writeSorted(path: string, lines: Timed[]): void {
  lines.sort((a, b) => (a.timeMs === b.timeMs ? 0 : a.timeMs - b.timeMs))
  const file = openSync(path, 'wx')
  try {
    for (let from = 0; from < lines.length; from += pieceLines) {
      const piece = lines.slice(from, from + pieceLines).flatMap(({ line }) => [line, lineEnd])
      let bytes = Buffer.concat(piece)
      while (bytes.length > 0) bytes = bytes.subarray(writeSync(file, bytes))
    }
  } finally {
    closeSync(file)
  }
}

const lineEnd = Buffer.from('\n')
