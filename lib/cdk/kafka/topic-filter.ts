/**
 * What a mapping of Kafka may filter by. What comes of a filter by anything else, AWS does not say.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/kafka-filtering.html
 */
import { Token } from 'aws-cdk-lib'

export const onlyByValue = 'Lambda filters records of a topic by their `value` only: filter by that'

/** What is wrong with the pattern of a filter; undefined where nothing is. What only the deployment knows passes. */
export function wrongFilter(pattern: unknown): string | undefined {
  if (typeof pattern !== 'string') return undefined
  try {
    const key = otherKeyOf(JSON.parse(pattern))
    return key === undefined ? undefined : `a filter by "${key}", and ${onlyByValue}`
  } catch {
    if (Token.isUnresolved(pattern)) return undefined
    return `the filter ${JSON.stringify(pattern)}, which is no JSON: make it with FilterCriteria.filter({ value: ... })`
  }
}

function otherKeyOf(filter: unknown): string | undefined {
  for (const [key, rule] of Object.entries(Object(filter))) {
    const other = key === '$or' ? Array.from<unknown>(Object(rule)).map(otherKeyOf).find(Boolean) : key
    if (other !== undefined && other !== 'value') return other
  }
  return undefined
}
