/** Writes a file line by line, in large pieces. */
import { closeSync, openSync, writeSync } from 'node:fs'

const pieceLength = 1 << 20

export class LineFile {
  readonly #file: number
  #waiting = ''

  /** Makes the file, or empties it. */
  constructor(path: string) {
    this.#file = openSync(path, 'w')
  }

  write(line: string): void {
    this.#waiting += `${line}\n`
    if (this.#waiting.length >= pieceLength) this.#flush()
  }

  close(): void {
    this.#flush()
    closeSync(this.#file)
  }

  #flush(): void {
    let bytes = Buffer.from(this.#waiting)
    this.#waiting = ''
    while (bytes.length > 0) bytes = bytes.subarray(writeSync(this.#file, bytes))
  }
}
