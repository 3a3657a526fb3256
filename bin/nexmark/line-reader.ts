/** Reads a file of lines in pieces, so that a file of any size takes little memory. */
import { closeSync, openSync, readSync } from 'node:fs'

/**
 * Small, since what is read together arrives together: where events are far apart in time, one key may come to have a window open for
 * each of them, and an item of its state and the outputs of one firing have their limits.
 */
const pieceBytes = 1 << 17
const newline = 0x0a

/** The lines of a file that are not blank, as bytes and without line ends, some at a time. */
export function* linesInPieces(path: string): Generator<readonly Buffer[]> {
  const file = openSync(path, 'r')
  try {
    let rest: Buffer = Buffer.alloc(0)
    for (;;) {
      // A piece of its own each time: the lines are parts of it.
      const piece = Buffer.allocUnsafeSlow(pieceBytes)
      const bytesRead = readSync(file, piece)
      if (bytesRead === 0) break
      const bytes = rest.length > 0 ? Buffer.concat([rest, piece.subarray(0, bytesRead)]) : piece.subarray(0, bytesRead)
      const end = bytes.lastIndexOf(newline) + 1
      if (end > 0) yield linesOf(bytes.subarray(0, end))
      rest = bytes.subarray(end)
    }
    if (!isBlank(rest)) yield [rest]
  } finally {
    closeSync(file)
  }
}

/** The lines of whole text. */
function linesOf(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = []
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(newline, from)
    const line = bytes.subarray(from, end)
    if (!isBlank(line)) lines.push(line)
    from = end + 1
  }
  return lines
}

/** Whether there is nothing in a line but spaces, tabs, and the other half of a line end. */
const isBlank = (line: Buffer): boolean => line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)
