import type { SourceFormat, SourceRecord, Verdict } from './ports.ts'

export interface ResponseRules {
  readonly reportsItemFailures: boolean
  readonly unrecognisedAnswer: 'success' | 'failure'
}

/**
 * Reads an answer as the mapping of a stream does. Only with ReportBatchItemFailures does it mean anything at all; then
 * nothing (`null`, `""`, `[]`, `{}`, no failures) is success, valid identifiers put the checkpoint at the lowest of them, and
 * any identifier that is empty, missing, no string or not of this batch fails the whole batch. An answer of an unknown shape is a
 * success as far as is known: the records are lost in silence, so the verdict says what was strange. What a list of failures means
 * is the source's own where its format says so.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html
 */
export function readResponse(
  payload: unknown,
  records: readonly SourceRecord[],
  rules: ResponseRules,
  { failuresIn = lowestFailure }: Pick<SourceFormat, 'failuresIn'> = {},
): Verdict {
  if (!rules.reportsItemFailures || isNothing(payload)) return { kind: 'success' }
  if (typeof payload !== 'object' || payload === null || !Object.hasOwn(payload, 'batchItemFailures')) {
    return unrecognised(payload, rules)
  }
  const failures: unknown = (payload as { batchItemFailures: unknown }).batchItemFailures
  if (failures === null || failures === undefined) return { kind: 'success' }
  if (!Array.isArray(failures)) return { kind: 'failure', reason: 'batchItemFailures is not a list' }
  return failures.length === 0 ? { kind: 'success' } : failuresIn(failures, records)
}

function lowestFailure(failures: readonly unknown[], records: readonly SourceRecord[]): Verdict {
  const indexOf = new Map(records.map((record, index) => [record.sequenceNumber, index]))
  let lowest: number | undefined
  for (const failure of failures) {
    const identifier: unknown = (failure as { itemIdentifier?: unknown } | null | undefined)?.itemIdentifier
    const index = typeof identifier === 'string' ? indexOf.get(identifier) : undefined
    if (index === undefined)
      return { kind: 'failure', reason: `itemIdentifier ${shown(identifier)} is not in the batch` }
    if (lowest === undefined || isBefore(records[index], records[lowest])) lowest = index
  }
  const first = lowest ?? 0
  return {
    kind: 'partial',
    left: Array.from({ length: records.length - first }, (_, i) => first + i),
    reason: `the function reported ${records[first]?.sequenceNumber} as failed; its log says why`,
  }
}

/** Sequence numbers are integers of differing length: as text `9900` would come after `10000`. */
function isBefore(one: SourceRecord | undefined, other: SourceRecord | undefined): boolean {
  return BigInt(one?.sequenceNumber ?? 0) < BigInt(other?.sequenceNumber ?? 0)
}

function isNothing(payload: unknown): boolean {
  if (payload === null || payload === undefined || payload === '') return true
  return typeof payload === 'object' && Object.keys(payload).length === 0
}

function unrecognised(payload: unknown, rules: ResponseRules): Verdict {
  const shape =
    typeof payload === 'object' && payload !== null ? `keys ${Object.keys(payload).join(', ')}` : typeof payload
  const reason = `the answer (${shape}) has no batchItemFailures`
  return rules.unrecognisedAnswer === 'success'
    ? { kind: 'success', unrecognised: reason }
    : { kind: 'failure', reason }
}

export function shown(identifier: unknown): string {
  return identifier === undefined ? '(missing)' : JSON.stringify(identifier).slice(0, 80)
}
