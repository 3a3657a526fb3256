/** How dead letters are shown. Only `show` shows what a record held. */
import { isUtf8 } from 'node:buffer'
import type { DeadLetterEntry } from '../../lib/aws/dead-letters/entry.ts'
import { deadLetterHandle } from '../../lib/aws/dead-letters/reading.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import type { RedriveOutcome } from '../../lib/local/dead-letters/redrive.ts'
import { grouped, table } from '../../lib/local/display/run-display.ts'
import { counted } from './words.ts'

/** One row of the list. */
export interface ListedLetter {
  readonly handle: string
  readonly entry: DeadLetterEntry
  /** When it was redriven, in ms since 1970; undefined while it is open. */
  readonly redrivenAtMs: number | undefined
}

export const reasonOf = ({ reason }: DeadLetterEntry): string => `${reason.code} (${reason.phase})`

/** The furthest that a date goes, in ms since 1970. */
const lastDateMs = 8.64e15

/** A timer may wait for a time that is no date. */
const timeText = (ms: number): string =>
  Math.abs(ms) <= lastDateMs ? `${new Date(ms).toISOString().slice(0, 19)}Z` : `${ms} ms since 1970`

/** Where the record is in its source. */
function placeOf({ source, partition, position, subPosition }: DeadLetterEntry): string {
  return `${source} ${partition} ${position}${subPosition > 0 ? ` #${subPosition}` : ''}`
}

export function listLines(letters: readonly ListedLetter[]): readonly string[] {
  const hasRedriven = letters.some(({ redrivenAtMs }) => redrivenAtMs !== undefined)
  const state = ({ redrivenAtMs }: ListedLetter) =>
    redrivenAtMs === undefined ? 'open' : `redriven ${timeText(redrivenAtMs)}`
  const rows = letters.map((letter) => {
    const { handle, entry } = letter
    const cells = [handle, timeText(entry.failedAtMs), reasonOf(entry), placeOf(entry)]
    return hasRedriven ? [...cells, state(letter)] : cells
  })
  const heads = ['id', 'given up', 'reason', 'source, partition, position', ...(hasRedriven ? ['state'] : [])]
  return table(
    [heads, ...rows],
    heads.map(() => false),
  )
}

/** How many there are of each reason, the most frequent first. */
export function reasonLines(letters: readonly ListedLetter[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const { entry } of letters) counts.set(reasonOf(entry), (counts.get(reasonOf(entry)) ?? 0) + 1)
  const rows = [...counts].sort(([, one], [, other]) => other - one).map(([reason, count]) => [reason, grouped(count)])
  return table(rows, [false, true])
}

/** A letter as one JSON value, without what the record held. */
export function letterJson({ handle, entry, redrivenAtMs }: ListedLetter): string {
  const { payload, key, headers, reason, output, ...coordinates } = entry
  const { code, phase, attempts } = reason
  const refused = output === undefined ? {} : { output: { ...output, value: undefined } }
  const redriven = redrivenAtMs === undefined ? {} : { redrivenAtMs }
  return JSON.stringify({ handle, ...coordinates, reason: { code, phase, attempts }, ...refused, ...redriven })
}

/** Everything about one dead letter, its bytes included. */
export function showLines({ handle, entry, redrivenAtMs }: ListedLetter): readonly string[] {
  const { id, topology, stage, source, partition, position, subPosition, arrivalTimeMs, failedAtMs, reason } = entry
  // Of what a timer put out without a record it tells it from the timers that failed.
  const isInAggregate = subPosition > 0 && (entry.keyed !== undefined || entry.output?.timer === undefined)
  const rows = [
    ['id', `${handle}  ${id}`],
    ['application', `${topology}, stage ${stage}`],
    ['source', `${source} ${partition}`],
    ['position', `${position}${isInAggregate ? `, record ${subPosition} of its aggregate` : ''}`],
    ...keyedRows(entry),
    ...outputRows(entry),
    ['arrived', timeText(arrivalTimeMs)],
    ['given up', `${timeText(failedAtMs)} after ${counted(reason.attempts, 'attempt')}`],
    ['state', redrivenAtMs === undefined ? 'open' : `redriven ${timeText(redrivenAtMs)}`],
    ['reason', reasonOf(entry)],
    ...(reason.step === undefined ? [] : [['step', printable(reason.step)]]),
    ['error', printable(`${reason.name}: ${reason.message}`)],
  ]
  return [...table(rows, [false, false]), ...contentLines(entry)]
}

/** What the keyed stage knew of a record that failed there. */
function keyedRows({ keyed }: DeadLetterEntry): readonly (readonly string[])[] {
  if (keyed === undefined) return []
  const { side, slot, number, eventTimeMs } = keyed
  return [
    ['in the stage', `number ${grouped(number)} of slot ${slot}, by ${side}`],
    ['event time', timeText(eventTimeMs)],
  ]
}

/** Which output a sink refused. */
function outputRows({ output }: DeadLetterEntry): readonly (readonly string[])[] {
  if (output === undefined) return []
  const { sink, index, timer } = output
  const rows = [['output', `number ${grouped(index + 1)} to sink ${sink}`]]
  if (timer !== undefined) rows.push(['timer', `${timer.name} (${timer.domain}), due ${timeText(timer.timeMs)}`])
  return rows
}

function contentLines(entry: DeadLetterEntry): readonly string[] {
  const { key, payload, headers, output, offloaded, omitted, recordIn } = entry
  const refused = output === undefined ? [] : bytesLines('refused output', output.value)
  const record =
    recordIn === undefined ? [] : [`The record is in the dead letter ${deadLetterHandle(recordIn)}: ${recordIn}.`]
  if (offloaded) return ['', ...record, `The whole entry is in s3://${offloaded.bucket}/${offloaded.key}.`]
  if (recordIn !== undefined) return ['', ...record, ...refused]
  if (omitted) return ['', `${grouped(omitted.bytes)} bytes are only at the source: ${omitted.because}.`]
  return [
    '',
    ...bytesLines('key', key),
    ...headers.flatMap(({ name, value }) => bytesLines(`header ${printable(name)}`, value)),
    ...bytesLines('payload', payload),
    ...refused,
  ]
}

const bytesPerLine = 16

function bytesLines(what: string, base64: string | null): readonly string[] {
  if (base64 === null) return [`${what}: none`]
  const bytes = Buffer.from(base64, 'base64')
  const kind = isUtf8(bytes) ? 'UTF-8' : 'not UTF-8'
  return [
    `${what}: ${counted(bytes.length, 'byte')}, ${kind}`,
    `  ${printable(bytes.toString('utf8'))}`,
    ...Array.from({ length: Math.ceil(bytes.length / bytesPerLine) }, (_, line) => hexLine(bytes, line * bytesPerLine)),
  ]
}

/** As `hexdump -C` writes it. */
function hexLine(bytes: Buffer, from: number): string {
  const part = bytes.subarray(from, from + bytesPerLine)
  const hex = [...part].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
  const text = [...part].map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
  return `  ${from.toString(16).padStart(8, '0')}  ${hex.padEnd(bytesPerLine * 3 - 1)}  |${text}|`
}

/** Text that cannot move the cursor or change the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1).replace('\u007f', '\\u007f'))
}

/** What became of a redriven letter, in words. */
export function outcomeText(outcome: RedriveOutcome): string {
  switch (outcome.kind) {
    case 'done':
      return 'done'
    case 'dead-letter':
      return `dead letter again: ${outcome.code} (${outcome.phase})`
    default:
      return `${outcome.kind}: ${printable(outcome.reason)}`
  }
}

/** By its id, or by its handle or the beginning of that. */
export function theLetter<L extends Pick<ListedLetter, 'handle' | 'entry'>>(
  letters: readonly L[],
  typed: string,
  title: string,
): L {
  const [found, ...others] = letters.filter(({ handle, entry }) => entry.id === typed || handle.startsWith(typed))
  if (found !== undefined && others.length === 0) return found
  const problem = found === undefined ? 'no dead letter' : `${others.length + 1} dead letters`
  throw new ConfigurationError(`There ${found ? 'are' : 'is'} ${problem} ${typed} of ${title}: take an id of the list.`)
}
