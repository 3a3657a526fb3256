/** Reads a file of lines in pieces, so that a file of any size takes little memory. */
import { closeSync, openSync, readSync } from 'node:fs'

const pieceBytes = 1 << 20
const newline = 0x0a

/** The lines of a file that are not empty, as bytes and without line ends, some at a time. */
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
    if (rest.length > 0) yield [rest]
  } finally {
    closeSync(file)
  }
}

/** The lines of whole text. */
function linesOf(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = []
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(newline, from)
    if (end > from) lines.push(bytes.subarray(from, end))
    from = end + 1
  }
  return lines
}
