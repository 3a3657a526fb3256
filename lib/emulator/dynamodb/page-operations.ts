/** Query and Scan: pages of items, each of at most 1 MB before its filter. */
import { readUnits, reportUnits } from './capacity.ts'
import { invalid } from './errors.ts'
import { type Condition, readCondition } from './expressions/condition.ts'
import { meets } from './expressions/evaluate.ts'
import { type KeyCondition, keyConditionOf } from './expressions/key-condition.ts'
import { ExpressionReader, type Path } from './expressions/reader.ts'
import { References } from './expressions/references.ts'
import { readPaths, shown } from './item-operations.ts'
import { keyNames, keyOfRequest, keyText } from './keys.ts'
import type { Item, PageOutput, QueryInput, ScanInput } from './shapes.ts'
import { compareSort, firstIndex, type Key, type Row, type Table } from './table.ts'
import { checkCapacityReport, checkChoice, checkRange, checkRefusal, findTable, readRow, type World } from './world.ts'

const PAGE_BYTES = 1_048_576
const MOST_SEGMENTS = 1_000_000

interface PageRequest {
  readonly operation: 'Query' | 'Scan'
  readonly table: Table
  readonly filter: Condition | undefined
  readonly paths: readonly Path[] | undefined
}

export function query(world: World, input: QueryInput): PageOutput {
  const table = findTable(world, input.TableName)
  const { KeyConditionExpression, FilterExpression, ProjectionExpression } = input
  if (KeyConditionExpression === undefined) {
    throw invalid('Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.')
  }
  const references = new References(input, { KeyConditionExpression, FilterExpression, ProjectionExpression })
  const reader = new ExpressionReader('KeyConditionExpression', KeyConditionExpression, references)
  const keys = keyConditionOf(readCondition(reader), table.keys)
  const request: PageRequest = { operation: 'Query', table, ...readFilter(input, references) }
  if (request.filter !== undefined) checkFilter(request.filter, table)
  references.checkAllUsed()
  checkPage(input)
  const rows = queried(table, keys, input.ScanIndexForward !== false, startKey(table, input.ExclusiveStartKey, keys))
  checkRefusal(world, 'Query', table)
  return page(world, request, input, rows)
}

export function scan(world: World, input: ScanInput): PageOutput {
  const table = findTable(world, input.TableName)
  const { FilterExpression, ProjectionExpression } = input
  const references = new References(input, { FilterExpression, ProjectionExpression })
  const request: PageRequest = { operation: 'Scan', table, ...readFilter(input, references) }
  references.checkAllUsed()
  checkPage(input)
  const { Segment, TotalSegments } = input
  if ((Segment === undefined) !== (TotalSegments === undefined)) {
    throw invalid('Segment and TotalSegments must be given together')
  }
  checkRange('totalSegments', TotalSegments, 1, MOST_SEGMENTS)
  checkRange('segment', Segment, 0, (TotalSegments ?? 1) - 1)
  const rows = table.scan(startKey(table, input.ExclusiveStartKey), Segment, TotalSegments)
  checkRefusal(world, 'Scan', table)
  return page(world, request, input, rows)
}

function readFilter({ FilterExpression, ProjectionExpression }: QueryInput | ScanInput, references: References) {
  return {
    filter:
      FilterExpression === undefined
        ? undefined
        : readCondition(new ExpressionReader('FilterExpression', FilterExpression, references)),
    paths: ProjectionExpression === undefined ? undefined : readPaths(ProjectionExpression, references),
  }
}

/** The filter of a query sees what the key condition left; it may not be about the key. */
function checkFilter(condition: Condition, table: Table): void {
  const names = keyNames(table.keys)
  for (const [first] of pathsOf(condition)) {
    if (names.includes(first)) {
      throw invalid(`Filter Expression can only contain non-primary key attributes: Primary key attribute: ${first}`)
    }
  }
}

function pathsOf(condition: Condition): Path[] {
  switch (condition.type) {
    case 'or':
    case 'and':
      return [...pathsOf(condition.left), ...pathsOf(condition.right)]
    case 'not':
      return pathsOf(condition.condition)
    case 'exists':
    case 'attribute-type':
      return [condition.path]
    default:
      return Object.values(condition)
        .flat()
        .flatMap((operand) => (typeof operand === 'object' && 'path' in operand ? [operand.path] : []))
  }
}

function checkPage({ Limit, Select, ProjectionExpression, ReturnConsumedCapacity }: QueryInput | ScanInput): void {
  checkCapacityReport(ReturnConsumedCapacity)
  checkRange('limit', Limit, 1, Number.MAX_SAFE_INTEGER)
  checkChoice('select', Select, ['SPECIFIC_ATTRIBUTES', 'COUNT', 'ALL_ATTRIBUTES'])
  if (ProjectionExpression === undefined && Select === 'SPECIFIC_ATTRIBUTES') {
    throw invalid('Must specify the ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES')
  }
  if (ProjectionExpression !== undefined && Select !== undefined && Select !== 'SPECIFIC_ATTRIBUTES') {
    throw invalid(`Cannot specify the ProjectionExpression when choosing to get ${Select}`)
  }
}

function startKey(table: Table, start: Item | undefined, condition?: KeyCondition): Key | undefined {
  if (start === undefined) return undefined
  try {
    const key = keyOfRequest(table, start)
    if (condition === undefined || key.hash === keyText(condition.hash)) return key
  } catch {
    // The message below is the one that AWS gives for any of it.
  }
  throw invalid('The provided starting key is invalid')
}

/** The rows of the partition in the range of the condition, behind the start key, in the order asked for. */
function queried(table: Table, condition: KeyCondition, forward: boolean, start: Key | undefined): readonly Row[] {
  const rows = table.rows(keyText(condition.hash))
  const holds = (test: (row: Row) => boolean) => firstIndex(rows, test)
  let from = holds(({ key }) => key.sort === undefined || !condition.before(key.sort))
  let to = holds(({ key }) => key.sort !== undefined && condition.beyond(key.sort))
  if (start !== undefined && forward)
    from = Math.max(
      from,
      holds(({ key }) => compareSort(key.sort, start.sort) > 0),
    )
  if (start !== undefined && !forward)
    to = Math.min(
      to,
      holds(({ key }) => compareSort(key.sort, start.sort) >= 0),
    )
  const found = rows.slice(from, Math.max(from, to))
  return forward ? found : found.reverse()
}

function page(
  world: World,
  { operation, table, filter, paths }: PageRequest,
  input: QueryInput | ScanInput,
  rows: Iterable<Row>,
): PageOutput {
  const consistent = input.ConsistentRead === true
  const limit = input.Limit ?? Number.POSITIVE_INFINITY
  const items: Item[] = []
  let [scanned, bytes] = [0, 0]
  let last: Key | undefined
  for (const { key } of rows) {
    const row = readRow(world, operation, table, key, consistent)
    if (row === undefined) continue
    scanned += 1
    bytes += row.bytes
    if (filter === undefined || meets(row.item, filter)) items.push(row.item)
    if (scanned < limit && bytes < PAGE_BYTES) continue
    last = key
    break
  }
  const units = readUnits(bytes, consistent)
  world.readMeter.add(table.name, units)
  return {
    ...(input.Select === 'COUNT' ? {} : { Items: items.map((item) => shown(item, paths)) }),
    Count: items.length,
    ScannedCount: scanned,
    ...(last === undefined ? {} : { LastEvaluatedKey: shown(last.attributes, undefined) }),
    ...reportUnits(input.ReturnConsumedCapacity, table.name, units),
  }
}
