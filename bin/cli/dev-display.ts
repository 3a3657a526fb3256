/** Shows a `millrace dev` run: a live block on a terminal, else a line for each thing that happens. */
import { isUtf8 } from 'node:buffer'
import { deadLetterHandle, readDeadLetter } from '../../lib/aws/dead-letters/reading.ts'
import type { SourceRecord } from '../../lib/emulator/event-source-mapping/index.ts'
import { type DisplayOutput, LiveDisplay } from '../../lib/local/display/live-display.ts'
import { grouped, table } from '../../lib/local/display/run-display.ts'
import { deadLetterOutput } from '../../lib/local/run/application.ts'
import { printable, reasonOf } from './dead-letter-text.ts'
import type { TableView } from './dev-tables.ts'
import { counted } from './words.ts'

export interface DevView {
  readonly topology: string
  /** Lines sent in this run, by source. */
  readonly sent: ReadonlyMap<string, number>
  /** Records in each output stream, the dead letters last. */
  readonly counts: ReadonlyMap<string, number>
  /** The tables, by the names of their sinks. */
  readonly tables: ReadonlyMap<string, TableView>
  /** What keeps a shard from going on, if anything does. */
  readonly troubles: readonly string[]
}

/** Lines for one output at a time, without a terminal: a reader does not follow more. */
const linesAtOnce = 20
const longestLine = 2_000

export class DevDisplay {
  readonly #live: LiveDisplay<DevView>
  readonly #isLive: boolean
  readonly #last = new Map<string, string>()

  constructor(output: DisplayOutput, nowMs: () => number) {
    this.#isLive = output.isTTY === true
    this.#live = new LiveDisplay(output, nowMs, { block: (view) => this.#block(view), line: () => '' })
  }

  /** Writes a line that stays. */
  readonly say = (line: string): void => this.#live.say(line)

  /** Writes a line where there is no block that shows the same. */
  mention(line: string): void {
    if (!this.#isLive) this.say(line)
  }

  /** What an output received: the last value in the block, or a line each. */
  received(output: string, records: readonly SourceRecord[]): void {
    const shown = records.slice(this.#isLive ? -1 : 0).slice(0, linesAtOnce)
    for (const { data } of shown) {
      const text = output === deadLetterOutput ? deadLetterText(data) : valueText(data)
      this.#last.set(output, text)
      if (!this.#isLive) this.say(`${output}: ${text}`)
    }
    const more = records.length - shown.length
    if (!this.#isLive && more > 0) this.say(`${output}: and ${grouped(more)} more`)
  }

  /** What a table holds now; the block shows it by itself. */
  changed(sink: string, view: TableView): void {
    this.mention([`${sink}: ${rowCount(view)}`, ...view.some.map(shortened)].join('  '))
  }

  /** Paints the block; without a terminal there is none. */
  show(view: () => DevView): void {
    if (this.#isLive) this.#live.show(view)
  }

  /** Lets the block stay where it is. */
  keep(view: () => DevView): void {
    if (this.#isLive) this.#live.show(view, 'now')
    this.#live.keep()
  }

  #block({ topology, sent, counts, tables, troubles }: DevView): readonly string[] {
    const rows = [
      ...[...sent].map(([source, lines]) => ['in', source, grouped(lines), 'sent in this run']),
      ...[...counts].map(([name, count]) => ['out', name, grouped(count), this.#last.get(name) ?? '']),
      ...[...tables].map(([name, view]) => ['table', name, rowCount(view), view.some.map(shortened).join('  ')]),
    ]
    return [
      `── ${topology}`,
      ...table(rows, [false, false, true, false]),
      ...troubles.map((trouble) => `!! ${trouble}`),
    ]
  }
}

/** A value as text that cannot change the terminal. */
function valueText(data: Uint8Array): string {
  if (!isUtf8(data)) return `(${grouped(data.length)} bytes that are not text)`
  return shortened(Buffer.from(data).toString())
}

function shortened(value: string): string {
  const text = printable(value)
  if (text.length <= longestLine) return text
  return `${text.slice(0, longestLine)}… (${grouped(Buffer.byteLength(value))} bytes)`
}

/** How many rows a table has, such as `1 row`; `+` where it has more than were looked at. */
export function rowCount({ rows, isAll }: TableView): string {
  return isAll ? counted(rows, 'row') : `${grouped(rows)}+ rows`
}

/** What was given up and why, without what the record held: of the error its class, where the code does not say more. */
function deadLetterText(data: Uint8Array): string {
  const entry = readDeadLetter(data)
  if ('problem' in entry) return entry.problem
  const { id, source, partition, position, reason } = entry
  const error = reason.name === 'TerminalError' ? '' : `: ${printable(reason.name)}`
  return `${deadLetterHandle(id)}  ${reasonOf(entry)}${error}  ${source} ${partition} ${position}`
}
