import { ConfigurationError } from '../../core/errors.ts'
import { compilePattern } from './filter-pattern.ts'
import { isList, isObject, type JsonText, type JsonTextObject, parseJsonText } from './json-text.ts'
import type { SourceFormat, SourceRecord } from './ports.ts'

/**
 * Whether a record is delivered: always without filters, else when one of them matches. A record whose content is not JSON is
 * dropped by every filter on content, and still judged by filters on metadata alone.
 *
 * Throws a ConfigurationError for a pattern that AWS refuses at create time.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
 */
export function compileFilters(patterns: readonly string[], format: SourceFormat): (record: SourceRecord) => boolean {
  const filters = patterns.map((pattern) => compileFilter(pattern, format))
  if (filters.length === 0) return () => true
  return (record) => {
    const text = format.filterText(record)
    const content = text === undefined ? undefined : parseJsonText(text)
    const metadata = format.filterMetadata(record)
    const document: JsonTextObject = content === undefined ? metadata : { ...metadata, [format.filterKey]: content }
    return filters.some((filter) => (content !== undefined || !filter.readsContent) && filter.matches(document))
  }
}

function compileFilter(pattern: string, format: SourceFormat) {
  const matches = compilePattern(pattern)
  const contents = contentPatterns(parseJsonText(pattern), format.filterKey)
  if (contents.some((content) => !isObject(content))) {
    throw new ConfigurationError(
      `The filter pattern ${pattern.slice(0, 200)} compares ${format.filterKey} as plain text: only JSON patterns are allowed here, such as {"${format.filterKey}":{"city":["Oslo"]}}.`,
    )
  }
  return { matches, readsContent: contents.length > 0 }
}

/** What a pattern asks of the record's content, also inside the alternatives of a top-level `$or`. */
function contentPatterns(pattern: JsonText | undefined, filterKey: string): readonly JsonText[] {
  if (!isObject(pattern)) return []
  const here = pattern[filterKey]
  const alternatives = isList(pattern.$or) ? pattern.$or : []
  return [...(here === undefined ? [] : [here]), ...alternatives.flatMap((one) => contentPatterns(one, filterKey))]
}
