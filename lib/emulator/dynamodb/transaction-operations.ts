/**
 * Transactions: all or nothing over up to 100 actions on different items, of any tables.
 *
 * 1. A cancelled transaction changes nothing, and is charged all the same.
 * 2. Within ten minutes a token that comes again with the same actions succeeds without doing anything; with others it is refused.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
 */
import { hash } from 'node:crypto'
import { readUnits, TRANSACTION_FACTOR, UnitsByTable, writeUnits } from './capacity.ts'
import { TOKEN_LIFE_MS } from './effects.ts'
import { constraintViolated, DynamoError, invalid } from './errors.ts'
import { projectionOf, shown } from './item-operations.ts'
import { keyOfRequest } from './keys.ts'
import type {
  CancellationReason,
  TransactGetItemsInput,
  TransactGetItemsOutput,
  TransactWriteItem,
  TransactWriteItemsInput,
  TransactWriteItemsOutput,
} from './shapes.ts'
import type { Key, Table } from './table.ts'
import { copyItem } from './value.ts'
import { CONFLICT, checkCapacityReport, checkCount, findTable, refusalOf, THROTTLED, type World } from './world.ts'
import {
  CONDITION_FAILED,
  type Decision,
  decide,
  effectOf,
  isValidation,
  type PreparedWrite,
  prepareCheck,
  prepareDelete,
  preparePut,
  prepareUpdate,
} from './write.ts'

const MOST_ACTIONS = 100
const LARGEST_TRANSACTION_BYTES = 4 * 1_048_576
const LONGEST_TOKEN = 36
const none: CancellationReason = { Code: 'None' }

export function transactWriteItems(world: World, input: TransactWriteItemsInput): TransactWriteItemsOutput {
  checkCapacityReport(input.ReturnConsumedCapacity)
  checkCount('transactItems', input.TransactItems.length, MOST_ACTIONS)
  const writes = input.TransactItems.map((action) => prepareAction(world, action))
  checkDistinct(writes)
  const token = tokenOf(input)
  if (token !== undefined && isRepeated(world, token)) return replay(world, input, writes)
  const outcomes = writes.map((write) => outcomeOf(world, write))
  const units = new UnitsByTable()
  outcomes.forEach(({ units: single }, i) => {
    units.add((writes[i] as PreparedWrite).table.name, single * TRANSACTION_FACTOR)
  })
  for (const [table, amount] of units) world.writeMeter.add(table, amount)
  const reasons = outcomes.map(({ reason }) => reason)
  if (reasons.some(({ Code }) => Code !== 'None')) throw cancelled(reasons)
  const decisions = outcomes.flatMap(({ decision }) => (decision?.type === 'written' ? [decision] : []))
  checkSize(decisions.reduce((sum, { bytes }) => sum + bytes, 0))
  const changes = decisions.flatMap((decision, i) => effectOf(writes[i] as PreparedWrite, decision))
  if (changes.length > 0 || token !== undefined) {
    world.commit({
      type: 'items-written',
      atMs: world.nowMs(),
      writes: changes,
      by: 'request',
      ...(token === undefined ? {} : { token }),
    })
  }
  return reported(units.report(input.ReturnConsumedCapacity, 'WriteCapacityUnits'))
}

function reported(ConsumedCapacity: ReturnType<UnitsByTable['report']>) {
  return ConsumedCapacity === undefined ? {} : { ConsumedCapacity }
}

function prepareAction(world: World, { ConditionCheck, Put, Delete, Update }: TransactWriteItem): PreparedWrite {
  if ([ConditionCheck, Put, Delete, Update].filter((action) => action !== undefined).length !== 1) {
    throw invalid('TransactItems can only contain one of Check, Put, Update or Delete')
  }
  if (Put !== undefined) return preparePut(world, Put)
  if (Delete !== undefined) return prepareDelete(world, Delete)
  if (Update !== undefined) return prepareUpdate(world, Update)
  if (ConditionCheck?.ConditionExpression !== undefined) return prepareCheck(world, ConditionCheck)
  throw constraintViolated('transactItems.conditionCheck.conditionExpression', 'null', 'Member must not be null')
}

function checkDistinct(rows: readonly { readonly table: Table; readonly key: Key }[]): void {
  if (new Set(rows.map(({ table, key }) => `${table.name} ${key.id}`)).size < rows.length) {
    throw invalid('Transaction request cannot include multiple operations on one item')
  }
}

function checkSize(bytes: number): void {
  if (bytes > LARGEST_TRANSACTION_BYTES) {
    throw invalid(`The items of one transaction have ${bytes} bytes: their aggregate size cannot exceed 4 MB`)
  }
}

function tokenOf({ ClientRequestToken: token, TransactItems }: TransactWriteItemsInput) {
  if (token === undefined) return undefined
  if (token.length < 1 || token.length > LONGEST_TOKEN) {
    throw constraintViolated(
      'clientRequestToken',
      token,
      `Member must have length between 1 and ${LONGEST_TOKEN}, inclusive`,
    )
  }
  const text = JSON.stringify(TransactItems, (_, value) =>
    value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value,
  )
  return { token, fingerprint: hash('sha256', text, 'hex') }
}

function isRepeated(world: World, { token, fingerprint }: { token: string; fingerprint: string }): boolean {
  const use = world.tokens.get(token)
  if (use === undefined || use.atMs <= world.nowMs() - TOKEN_LIFE_MS) return false
  if (use.fingerprint === fingerprint) return true
  throw new DynamoError(
    'IdempotentParameterMismatchException',
    'ClientRequestToken was used within ten minutes for a transaction with other parameters',
  )
}

/** A repeated transaction reads what it would have written, and pays for that. */
function replay(
  world: World,
  { ReturnConsumedCapacity }: TransactWriteItemsInput,
  writes: readonly PreparedWrite[],
): TransactWriteItemsOutput {
  const units = new UnitsByTable()
  for (const { table, key } of writes) {
    units.add(table.name, TRANSACTION_FACTOR * readUnits(table.get(key)?.bytes ?? 0, true))
  }
  for (const [table, amount] of units) world.readMeter.add(table, amount)
  return reported(units.report(ReturnConsumedCapacity, 'ReadCapacityUnits'))
}

interface Outcome {
  readonly reason: CancellationReason
  readonly units: number
  readonly decision?: Decision
}

function outcomeOf(world: World, write: PreparedWrite): Outcome {
  const { table, key } = write
  const refusal = refusalOf(world, 'TransactWriteItems', table, key)
  if (refusal === 'throttle') return { reason: { Code: 'ThrottlingError', Message: THROTTLED }, units: 0 }
  if (refusal === 'conflict') return { reason: { Code: 'TransactionConflict', Message: CONFLICT }, units: 0 }
  try {
    const decision = decide(write)
    if (decision.type === 'written') return { reason: none, units: decision.units, decision }
    const item = write.showsItemOnFailure ? decision.row?.item : undefined
    const reason = { Code: 'ConditionalCheckFailed' as const, Message: CONDITION_FAILED }
    return { reason: item === undefined ? reason : { ...reason, Item: copyItem(item) }, units: decision.units }
  } catch (error) {
    if (!isValidation(error)) throw error
    const units = writeUnits(table.get(key)?.bytes ?? 0, 0)
    return { reason: { Code: 'ValidationError', Message: error.message }, units }
  }
}

function cancelled(reasons: readonly CancellationReason[]): DynamoError {
  const codes = reasons.map(({ Code }) => Code).join(', ')
  return new DynamoError(
    'TransactionCanceledException',
    `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`,
    { CancellationReasons: reasons },
  )
}

export function transactGetItems(world: World, input: TransactGetItemsInput): TransactGetItemsOutput {
  checkCapacityReport(input.ReturnConsumedCapacity)
  checkCount('transactItems', input.TransactItems.length, MOST_ACTIONS)
  const reads = input.TransactItems.map(({ Get }) => {
    const table = findTable(world, Get.TableName)
    const paths = projectionOf(Get)
    return { table, paths, key: keyOfRequest(table, Get.Key) }
  })
  checkDistinct(reads)
  const reasons = reads.map(({ table, key }): CancellationReason => {
    const refusal = refusalOf(world, 'TransactGetItems', table, key)
    if (refusal === 'throttle') return { Code: 'ThrottlingError', Message: THROTTLED }
    return refusal === 'conflict' ? { Code: 'TransactionConflict', Message: CONFLICT } : none
  })
  if (reasons.some(({ Code }) => Code !== 'None')) throw cancelled(reasons)
  const units = new UnitsByTable()
  const rows = reads.map(({ table, key, paths }) => ({ table, paths, row: table.get(key) }))
  checkSize(rows.reduce((sum, { row }) => sum + (row?.bytes ?? 0), 0))
  for (const { table, row } of rows) units.add(table.name, TRANSACTION_FACTOR * readUnits(row?.bytes ?? 0, true))
  for (const [table, amount] of units) world.readMeter.add(table, amount)
  return {
    Responses: rows.map(({ row, paths }) => (row === undefined ? {} : { Item: shown(row.item, paths) })),
    ...reported(units.report(input.ReturnConsumedCapacity, 'ReadCapacityUnits')),
  }
}
