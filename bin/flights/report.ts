/** Compares what the output streams hold with what the batch scan says, for people and as figures. */
import { grouped, table } from '../../lib/local/display/run-display.ts'
import { type Outcome, type Outcomes, outcomeKinds, outcomeLabels } from './outcomes.ts'
import type { Example } from './read-outputs.ts'

export interface Comparison {
  /** Counts side by side, the kinds with their reasons below them. */
  readonly rows: readonly {
    readonly label: string
    readonly depth: 0 | 1
    readonly found: number
    readonly expected: number
  }[]
  /** One line for each outcome that is missing, unexpected or has another content. */
  readonly differences: readonly string[]
  readonly isEqual: boolean
}

/** Compares outcome by outcome, not only the counts. */
export function compare(found: Outcomes, expected: Outcomes): Comparison {
  const rows: Comparison['rows'][number][] = [
    { label: 'records', depth: 0, found: found.total, expected: expected.total },
  ]
  const differences = found.contradictions.map((outcome) => `${nameOf(outcome)} came twice with different content`)
  for (const kind of outcomeKinds) {
    rows.push({ label: outcomeLabels[kind], depth: 0, found: found.of(kind).size, expected: expected.of(kind).size })
    const [foundBy, expectedBy] = [found.countsByReason(kind), expected.countsByReason(kind)]
    for (const reason of [...new Set([...foundBy.keys(), ...expectedBy.keys()])].sort()) {
      if (reason === '') continue
      rows.push({
        label: reason,
        depth: 1,
        found: foundBy.get(reason) ?? 0,
        expected: expectedBy.get(reason) ?? 0,
      })
    }
    differences.push(...differencesOf(found.of(kind), expected.of(kind)))
  }
  return { rows, differences, isEqual: differences.length === 0 }
}

function differencesOf(found: ReadonlyMap<string, Outcome>, expected: ReadonlyMap<string, Outcome>): string[] {
  const differences: string[] = []
  for (const [identity, outcome] of expected) {
    const other = found.get(identity)
    if (other === undefined) differences.push(`${nameOf(outcome)} is missing from the output streams`)
    else if (other.reason !== outcome.reason || other.content !== outcome.content) {
      differences.push(`${nameOf(outcome)} has another content or reason: ${other.reason} ${other.content}`)
    }
  }
  for (const [identity, outcome] of found) {
    if (!expected.has(identity)) differences.push(`${nameOf(outcome)} is in the output streams and should not be`)
  }
  return differences
}

function nameOf({ kind, identity, reason }: Outcome): string {
  const name = kind === 'dead letter' ? printable(Buffer.from(identity, 'base64')) : identity
  return `${kind} ${name}${reason === '' ? '' : ` (${reason})`}`
}

const longestPayload = 200

/** Bytes for a terminal: whatever is not printable ASCII as \xNN. */
export function printable(bytes: Buffer): string {
  const text = bytes
    .toString('latin1')
    .replace(/[^\x20-\x7e]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)
  return text.length <= longestPayload ? text : `${text.slice(0, longestPayload)}…`
}

/** The counts as an aligned table. */
export function comparisonTable(
  { rows }: Comparison,
  heads: readonly [found: string, expected: string] = ['output streams', 'batch scan'],
): readonly string[] {
  const lines = rows.map(({ label, depth, found, expected }) => [
    `  ${'  '.repeat(depth)}${label}`,
    grouped(found),
    grouped(expected),
    found === expected ? 'equal' : 'DIFFERENT',
  ])
  return table([['', ...heads, ''], ...lines], [false, true, true, false])
}

/** One example of each reason: what the output says, and below it the record. */
export function exampleLines(examples: readonly Example[]): readonly string[] {
  return examples.flatMap(({ kind, reason, message, payload }) => [
    `  ${kind}, ${reason}: ${message}`,
    `    ${printable(payload)}`,
  ])
}

const mostDifferences = 10

export function differenceLines({ differences }: Comparison): readonly string[] {
  const more = differences.length - mostDifferences
  return [
    ...differences.slice(0, mostDifferences).map((difference) => `  ${difference}`),
    ...(more > 0 ? [`  and ${grouped(more)} more`] : []),
  ]
}

export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** What the value must be. */
  readonly goal?: number
}

/** The report's numbers; the goal of a count is what the batch computation counted. */
export function figures(
  comparisons: readonly Comparison[],
  repeats: number,
  session: { records: number; ms: number },
): Figure[] {
  let kind = ''
  const counts = comparisons.flatMap(({ rows }) =>
    rows.map(({ label, depth, found, expected }) => {
      if (depth === 0) kind = label
      const name = depth === 0 ? label : `${kind}: ${label}`
      return { name, value: found, unit: 'records', goal: expected }
    }),
  )
  const differences = comparisons.reduce((sum, comparison) => sum + comparison.differences.length, 0)
  return [
    ...counts,
    { name: 'differences', value: differences, unit: 'records', goal: 0 },
    { name: 'repeats absorbed', value: repeats, unit: 'records' },
    { name: 'processed in this run', value: session.records, unit: 'records' },
    { name: 'processing time of this run', value: Math.round(session.ms), unit: 'ms' },
    {
      name: 'throughput of this run',
      value: session.ms > 0 ? Math.round((session.records / session.ms) * 1_000) : 0,
      unit: 'records/s',
    },
  ]
}
