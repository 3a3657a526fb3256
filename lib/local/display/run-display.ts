/** Shows a local run while it goes on: a live block on a terminal, else a line each second. */
import type { LocalStatus } from '../run/application.ts'
import { type DisplayOutput, LiveDisplay } from './live-display.ts'

/** What is shown at one moment. */
export interface RunView {
  /** How much of the input has been sent. */
  readonly sent: number
  readonly total: number
  /** Records that the function has taken, done or in flight; each once. What is sent beyond them is behind. */
  readonly taken: number
  /** Outputs that came more than once. */
  readonly repeats: number
  /** Over the last few seconds. */
  readonly recordsPerSecond: number
  /** Records by output, each once, in the order to be shown. */
  readonly outputs: readonly { readonly name: string; readonly records: number }[]
  readonly shards: readonly ShardView[]
  /** What else goes on, a line each. @default nothing */
  readonly notes?: readonly string[]
  /** What else a person must hear, of {@link stageTroubles}. */
  readonly troubles: readonly string[]
}

export interface ShardView {
  /** Whose shard it is, where several stages run: their streams call their shards alike. */
  readonly stage?: string
  readonly shardId: string
  /** The last sequence number that is done and saved; undefined before the first. */
  readonly position: string | undefined
  /** Records done since this run began. */
  readonly done: number
  /** Records that were read from the stream and are not yet done. What is still to be read is not among them. */
  readonly waiting: number
  /** How long the oldest record waits, or how far the last read was behind. */
  readonly lagMs: number
  /** `running`, or why it is not. */
  readonly state: string
}

/** The shards of every stage of an application. */
export function shardViews(status: Pick<LocalStatus, 'stages'>): readonly ShardView[] {
  const isAlone = status.stages.length === 1
  return status.stages.flatMap(({ name, mapping, recordsDone }) =>
    mapping.shards.map((shard) => ({
      ...(isAlone ? {} : { stage: name }),
      shardId: shard.shardId,
      position: shard.position,
      done: recordsDone.get(shard.shardId) ?? 0,
      waiting: shard.unfinished,
      lagMs: Math.max(shard.millisBehindLatest ?? 0, shard.oldestUnfinishedAgeMs),
      state: shard.reason === undefined ? shard.state : `${shard.state}: ${shard.reason}`,
    })),
  )
}

/**
 * What a person must hear of the stages beside their shards' states: shards that cannot be listed, and records that were given up or
 * may be lost. One line each, none when all is well.
 */
export function stageTroubles(status: Pick<LocalStatus, 'stages'>): readonly string[] {
  return status.stages.flatMap(({ name, failureFile, mapping: { reason, counters } }) => {
    const { unrecognisedAnswers, onFailureDeliveredEvents, droppedEvents, lastDeliveryFailure } = counters
    const lines: string[] = []
    if (reason !== undefined) lines.push(reason)
    if (unrecognisedAnswers > 0) {
      lines.push(
        `${grouped(unrecognisedAnswers)} answers of no known shape count as success, as on AWS, and their records may be lost; the last: ${counters.lastUnrecognisedAnswer}`,
      )
    }
    if (onFailureDeliveredEvents > 0) {
      lines.push(
        `${recordsWere(onFailureDeliveredEvents)} given up and reported to ${failureFile ?? 'the on-failure destination'}`,
      )
    }
    if (droppedEvents > 0) {
      const why = lastDeliveryFailure === undefined ? '' : `; the destination failed: ${lastDeliveryFailure}`
      lines.push(`${recordsWere(droppedEvents)} given up and reported nowhere${why}`)
    }
    return lines.map((line) => `${name}: ${line}`)
  })
}

const recordsWere = (count: number): string => (count === 1 ? '1 record was' : `${grouped(count)} records were`)

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

const withStage = (stage: string | undefined, text: string): string => (stage === undefined ? text : `${stage} ${text}`)

/** Why shards are not running, one line for all that have the same reason. */
function shardTroubles(shards: readonly ShardView[]): readonly string[] {
  const troubled = shards.filter(({ state }) => state.includes(': '))
  return [...Map.groupBy(troubled, ({ state }) => state)].map(([state, [first, ...more]]) =>
    more.length === 0
      ? `${withStage(first?.stage, first?.shardId ?? '')} ${state}`
      : `${more.length + 1} shards ${state}`,
  )
}

const foldedWidth = 100

/** A text in lines, cut between words; a terminal shows no more of a line than fits. */
function folded(text: string): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > foldedWidth) {
      lines.push(line)
      line = `  ${word}`
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** What has come in and gone out, in the same words on a terminal and elsewhere. */
function flowOf({ sent, taken, repeats, outputs, recordsPerSecond }: RunView) {
  const out = outputs.reduce((sum, { records }) => sum + records, 0)
  return {
    taken: `in ${grouped(taken)}`,
    behind: `behind ${grouped(sent - taken)}`,
    out: `out ${grouped(out)}`,
    repeated: repeats === 0 ? [] : [`${grouped(repeats)} repeated`],
    rate: `${grouped(recordsPerSecond)} records/s now`,
  }
}

/** The live block for a terminal. */
export function renderBlock(view: RunView): readonly string[] {
  const { sent, total, outputs, shards } = view
  const filled = Math.round((percent(view) / 100) * barWidth)
  const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled)
  const { taken, behind, out, repeated, rate } = flowOf(view)
  const rows = shards.map(({ stage, shardId, position, done, waiting, lagMs, state }) => [
    withStage(stage, shardId),
    shortPosition(position),
    grouped(done),
    grouped(waiting),
    seconds(lagMs),
    state === 'running' ? '' : (state.split(':')[0] ?? ''),
  ])
  return [
    `sent  ${bar}  ${percent(view)} %   ${grouped(sent)} of ${grouped(total)} records`,
    [taken, behind, out, ...repeated, rate].join('   '),
    outputs.map(({ name, records }) => `${name} ${grouped(records)}`).join('   '),
    ...(view.notes ?? []),
    ...table(
      [['shard', 'position', 'done this run', 'read, not done', 'lag', ''], ...rows],
      [false, false, true, true, true, false],
    ),
    ...[...shardTroubles(shards), ...view.troubles].flatMap(folded),
  ]
}

/** The line for logs and pipes, at a time in ms since 1970. */
export function renderLine(view: RunView, nowMs: number): string {
  const { sent, total, outputs, shards } = view
  const { taken, behind, out, repeated, rate } = flowOf(view)
  const byOutput = outputs.map(({ name, records }) => `${name} ${grouped(records)}`).join(', ')
  const byShard = shards.map(({ stage, shardId, position, lagMs, state }) => {
    const troubled = state === 'running' ? '' : ` ${state}`
    return `${withStage(stage, String(Number(shardId.slice(-12))))} at ${shortPosition(position)} lag ${seconds(lagMs)}${troubled}`
  })
  return [
    `${new Date(nowMs).toISOString().slice(0, 19)}Z`,
    `sent ${grouped(sent)} of ${grouped(total)} (${percent(view)} %)`,
    [taken, behind, `${out} (${byOutput})`, ...repeated].join(', '),
    rate,
    ...(view.notes ?? []),
    ...(byShard.length === 0 ? [] : [`shards: ${byShard.join('; ')}`]),
    ...view.troubles,
  ].join(' | ')
}

const runRenderer = { block: renderBlock, line: renderLine }

/**
 * Shows views of a run on an output.
 *
 * @example
 * const display = new RunDisplay(process.stdout, systemClock.nowMs)
 * display.show(() => view)
 * display.keep()
 */
export class RunDisplay {
  readonly #live: LiveDisplay<RunView>

  constructor(output: DisplayOutput, nowMs: () => number) {
    this.#live = new LiveDisplay(output, nowMs, runRenderer)
  }

  /** Shows a view; with 'if due' not sooner after the last one than a reader could follow. */
  show(view: () => RunView, when: 'if due' | 'now' = 'if due'): void {
    this.#live.show(view, when)
  }

  /** Writes a line that stays, above what is live. */
  say(text: string): void {
    this.#live.say(text)
  }

  /** Lets what is live stay where it is. */
  keep(): void {
    this.#live.keep()
  }
}
