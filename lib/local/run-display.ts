/** Shows a local run while it goes on: a live block on a terminal, else a line each second. */
import type { LocalStatus } from './local-application.ts'

/** What is shown at one moment. */
export interface RunView {
  /** How much of the input has been sent. */
  readonly sent: number
  readonly total: number
  /** Records that the function has taken, done or in flight. */
  readonly taken: number
  readonly recordsPerSecond: number
  /** Records by output, in the order to be shown. */
  readonly outputs: readonly { readonly name: string; readonly records: number }[]
  readonly shards: readonly ShardView[]
}

export interface ShardView {
  readonly shardId: string
  /** The last sequence number that is done and saved; undefined before the first. */
  readonly position: string | undefined
  /** Records done since this run began. */
  readonly done: number
  /** Records read and not yet done. */
  readonly waiting: number
  /** How long the oldest record waits, or how far the last read was behind. */
  readonly lagMs: number
  /** `running`, or why it is not. */
  readonly state: string
}

/** The shards of every stage of an application. */
export function shardViews(status: LocalStatus): readonly ShardView[] {
  return status.stages.flatMap(({ mapping, recordsDone }) =>
    mapping.shards.map((shard) => ({
      shardId: shard.shardId,
      position: shard.position,
      done: recordsDone.get(shard.shardId) ?? 0,
      waiting: shard.unfinished,
      lagMs: Math.max(shard.millisBehindLatest ?? 0, shard.oldestUnfinishedAgeMs),
      state: shard.reason === undefined ? shard.state : `${shard.state}: ${shard.reason}`,
    })),
  )
}

/** A number with thousands separators, the same on every machine. */
export const grouped = (value: number): string => Math.round(value).toLocaleString('en-US')

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
const percent = ({ sent, total }: RunView): number => (total === 0 ? 100 : Math.floor((sent / total) * 100))
const shownDigits = 10
const barWidth = 28

/** Sequence numbers have 56 digits; the last ones tell them apart well enough to see that they move. */
const shortPosition = (position: string | undefined): string =>
  position === undefined ? '-' : `…${position.slice(-shownDigits)}`

/** Pads every column to its widest cell: text to the left, numbers to the right. */
export function table(rows: readonly (readonly string[])[], numeric: readonly boolean[]): readonly string[] {
  const widths = numeric.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows.map((row) =>
    row
      .map((cell, column) => (numeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

/** The live block for a terminal. */
export function renderBlock(view: RunView): readonly string[] {
  const { sent, total, taken, recordsPerSecond, outputs, shards } = view
  const filled = Math.round((percent(view) / 100) * barWidth)
  const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled)
  const out = outputs.reduce((sum, { records }) => sum + records, 0)
  const rows = shards.map(({ shardId, position, done, waiting, lagMs, state }) => [
    shardId,
    shortPosition(position),
    grouped(done),
    grouped(waiting),
    seconds(lagMs),
    state === 'running' ? '' : state,
  ])
  return [
    `sent  ${bar}  ${percent(view)} %   ${grouped(sent)} of ${grouped(total)} records`,
    `in ${grouped(taken)}   out ${grouped(out)}   ${grouped(recordsPerSecond)} records/s`,
    outputs.map(({ name, records }) => `${name} ${grouped(records)}`).join('   '),
    ...table(
      [['shard', 'position', 'done this run', 'waiting', 'lag', ''], ...rows],
      [false, false, true, true, true, false],
    ),
  ]
}

/** The line for logs and pipes, at a time in ms since 1970. */
export function renderLine(view: RunView, nowMs: number): string {
  const { sent, total, taken, recordsPerSecond, outputs, shards } = view
  const out = outputs.reduce((sum, { records }) => sum + records, 0)
  const byOutput = outputs.map(({ name, records }) => `${name} ${grouped(records)}`).join(', ')
  const byShard = shards.map(({ shardId, position, lagMs, state }) => {
    const troubled = state === 'running' ? '' : ` ${state}`
    return `${Number(shardId.slice(-12))} at ${shortPosition(position)} lag ${seconds(lagMs)}${troubled}`
  })
  return [
    `${new Date(nowMs).toISOString().slice(0, 19)}Z`,
    `sent ${grouped(sent)} of ${grouped(total)} (${percent(view)} %)`,
    `in ${grouped(taken)}, out ${grouped(out)} (${byOutput})`,
    `${grouped(recordsPerSecond)} records/s`,
    `shards: ${byShard.join('; ')}`,
  ].join(' | ')
}

/** What is needed of a terminal or a file to write to. */
export interface DisplayOutput {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

const liveEveryMs = 150
const lineEveryMs = 1_000

/**
 * Shows views on an output.
 *
 * @example
 * const display = new RunDisplay(process.stdout, systemClock.nowMs)
 * display.show(view)
 * display.close()
 */
export class RunDisplay {
  readonly #output: DisplayOutput
  readonly #nowMs: () => number
  readonly #isLive: boolean
  #shownAtMs = Number.NEGATIVE_INFINITY
  #linesUp = 0

  constructor(output: DisplayOutput, nowMs: () => number) {
    this.#output = output
    this.#nowMs = nowMs
    this.#isLive = output.isTTY === true
  }

  /** Shows a view; with 'if due' not sooner after the last one than a reader could follow. */
  show(view: () => RunView, when: 'if due' | 'now' = 'if due'): void {
    const nowMs = this.#nowMs()
    if (when === 'if due' && nowMs - this.#shownAtMs < (this.#isLive ? liveEveryMs : lineEveryMs)) return
    this.#shownAtMs = nowMs
    if (this.#isLive) this.#paint(renderBlock(view()))
    else this.#output.write(`${renderLine(view(), nowMs)}\n`)
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
