/** Shows something while it goes on: a live block on a terminal, else a line each second. */

/** What is needed of a terminal or a file to write to. */
export interface DisplayOutput {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** How a view is shown: as a block of lines on a terminal, and as one line, at a time in ms since 1970, elsewhere. */
export interface Renderer<View> {
  block(view: View): readonly string[]
  line(view: View, nowMs: number): string
}

const liveEveryMs = 150
const lineEveryMs = 1_000

/**
 * Shows views on an output.
 *
 * @example
 * const display = new LiveDisplay(process.stdout, systemClock.nowMs, { block: (n) => [`${n}`], line: (n) => `${n} records` })
 * display.show(() => 3)
 */
export class LiveDisplay<View> {
  readonly #output: DisplayOutput
  readonly #nowMs: () => number
  readonly #renderer: Renderer<View>
  readonly #isLive: boolean
  #shownAtMs = Number.NEGATIVE_INFINITY
  #linesUp = 0

  constructor(output: DisplayOutput, nowMs: () => number, renderer: Renderer<View>) {
    this.#output = output
    this.#nowMs = nowMs
    this.#renderer = renderer
    this.#isLive = output.isTTY === true
  }

  /** Shows a view; with 'if due' not sooner after the last one than a reader could follow. */
  show(view: () => View, when: 'if due' | 'now' = 'if due'): void {
    const nowMs = this.#nowMs()
    if (when === 'if due' && nowMs - this.#shownAtMs < (this.#isLive ? liveEveryMs : lineEveryMs)) return
    this.#shownAtMs = nowMs
    if (this.#isLive) this.#paint(this.#renderer.block(view()))
    else this.#output.write(`${this.#renderer.line(view(), nowMs)}\n`)
  }

  /** Writes a line that stays, above what is live. */
  say(text: string): void {
    this.#erase()
    this.#output.write(`${text}\n`)
  }

  /** Lets what is live stay where it is. */
  keep(): void {
    this.#linesUp = 0
  }

  #paint(lines: readonly string[]): void {
    const columns = this.#output.columns ?? 120
    this.#erase()
    // A line that wraps would break the count of lines to go up.
    this.#output.write(lines.map((line) => `${line.slice(0, columns - 1)}\n`).join(''))
    this.#linesUp = lines.length
  }

  #erase(): void {
    if (this.#linesUp > 0) this.#output.write(`\u001b[${this.#linesUp}A\u001b[0J`)
    this.#linesUp = 0
  }
}
