/**
 * What a stream must be that a stage reads in order, and a table that a stage keeps its state in, whether we make them or the
 * user brings them. Kinesis and the CDK take anything else without a word.
 */
import type { RenderedProperties } from './rendered.ts'

/** Lambda hands over at most 6 MB as JSON, in which a record takes a third more. */
const mostKiB = 4_096

/** Whether Kinesis places records as it likes, whatever their partition key and hash key are. */
export const placesByItself = ({ RecordDistributionStrategy }: RenderedProperties): boolean =>
  RecordDistributionStrategy === 'AUTO'

/** What is refused of a stream whose order counts; `what` names it with its stage. */
export function streamFindings(what: string, stream: RenderedProperties): string[] {
  const findings: string[] = []
  if (placesByItself(stream)) {
    findings.push(
      `${what} has the record distribution AUTO, under which Kinesis ignores partition keys and ExplicitHashKey, and the records of a key lose their order and their owner: leave it at USER_PARTITION_KEY.`,
    )
  }
  const { MaxRecordSizeInKiB: kib } = stream
  if (typeof kib === 'number' && kib > mostKiB) {
    findings.push(
      `${what} takes records of ${kib} KiB, and Lambda hands over batches of at most 6 MB, in which one of more than ${mostKiB} KiB has no place and blocks its shard: set maxRecordSizeInKiB to ${mostKiB} or less.`,
    )
  }
  return findings
}

/** What is refused of a table of a stage; `what` names it with its stage. */
export function tableFindings(what: string, table: RenderedProperties): string[] {
  return [...keyFindings(what, table), ...ttlFindings(what, table)]
}

interface KeyElement {
  readonly AttributeName?: string
  readonly KeyType?: string
}

function keyFindings(what: string, { KeySchema, AttributeDefinitions }: RenderedProperties): string[] {
  const typeOf = (name: unknown): string =>
    Array.from<{ AttributeName?: string; AttributeType?: string }>(Object(AttributeDefinitions)).find(
      ({ AttributeName }) => AttributeName === name,
    )?.AttributeType ?? '?'
  const keys = Array.from<KeyElement>(Object(KeySchema))
  const shown = keys.map(({ AttributeName }) => `${AttributeName} (${typeOf(AttributeName)})`).join(', ')
  if (shown === 'pk (S), sk (S)') return []
  return [
    `${what} has the key ${shown || '(none)'}: its partition key must be "pk" and its sort key "sk", both of type S; give a table of that key, or leave it out to get one.`,
  ]
}

function ttlFindings(what: string, { TimeToLiveSpecification }: RenderedProperties): string[] {
  const { AttributeName, Enabled } = Object(TimeToLiveSpecification)
  if (AttributeName === 'ttl' && Enabled !== false) return []
  return [
    `${what} has ${AttributeName === undefined ? 'no time to live' : `its time to live in "${AttributeName}"${Enabled === false ? ', switched off' : ''}`}, so that nothing that expires would ever be deleted: set timeToLiveAttribute to "ttl".`,
  ]
}
