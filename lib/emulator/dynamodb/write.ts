/**
 * One write of one item, from its request to what it would change: the same for single operations and for transactions.
 *
 * `prepare...` checks all of a request that can be refused without looking at the item; `decide` looks at it.
 */
import { writeUnits } from './capacity.ts'
import type { ItemWrite } from './effects.ts'
import { type DynamoError, invalid } from './errors.ts'
import { type Condition, readCondition } from './expressions/condition.ts'
import { meets } from './expressions/evaluate.ts'
import { ExpressionReader, type Path } from './expressions/reader.ts'
import { References } from './expressions/references.ts'
import { applyUpdate, readUpdate, type Update } from './expressions/update.ts'
import { keyNames, keyOfItem, keyOfRequest } from './keys.ts'
import type { AttributeValue, ConditionOption, DeleteAction, Item, PutAction, UpdateAction } from './shapes.ts'
import type { Key, Row, Table } from './table.ts'
import { emptyRecord, itemBytes, LARGEST_ITEM_BYTES, parseItem } from './value.ts'
import { checkChoice, findTable, type World } from './world.ts'

export interface PreparedWrite {
  readonly table: Table
  readonly key: Key
  readonly condition: Condition | undefined
  readonly showsItemOnFailure: boolean
  /** The attributes that an update names. */
  readonly paths: readonly Path[]
  /** What is there after the write; undefined for nothing. Throws ValidationException where the write does not fit the item. */
  change(item: Item | undefined): Item | undefined
}

/** What a write does to the item that is there. */
export type Decision =
  | { readonly type: 'failed'; readonly row: Row | undefined; readonly units: number }
  | {
      readonly type: 'written'
      readonly before: Item | undefined
      readonly after: Item | undefined
      /** The larger of the item's sizes. */
      readonly bytes: number
      readonly units: number
    }

interface ReadExpressions {
  readonly condition: Condition | undefined
  readonly update: Update
}

function readExpressions(
  input: ConditionOption & { readonly UpdateExpression?: string | undefined },
  table: Table,
): ReadExpressions {
  const { ConditionExpression, UpdateExpression } = input
  checkChoice('returnValuesOnConditionCheckFailure', input.ReturnValuesOnConditionCheckFailure, ['ALL_OLD', 'NONE'])
  const references = new References(
    input,
    'UpdateExpression' in input ? { UpdateExpression, ConditionExpression } : { ConditionExpression },
  )
  const update: Update =
    UpdateExpression === undefined
      ? { actions: [] }
      : readUpdate(new ExpressionReader('UpdateExpression', UpdateExpression, references), keyNames(table.keys))
  const condition =
    ConditionExpression === undefined
      ? undefined
      : readCondition(new ExpressionReader('ConditionExpression', ConditionExpression, references))
  references.checkAllUsed()
  return { condition, update }
}

export function preparePut(world: World, input: PutAction): PreparedWrite {
  const table = findTable(world, input.TableName)
  const { condition } = readExpressions(input, table)
  const item = parseItem(input.Item)
  const key = keyOfItem(table, item)
  checkSize(item, 'Item size has exceeded the maximum allowed size')
  return { table, key, condition, showsItemOnFailure: showsItem(input), paths: [], change: () => item }
}

export function prepareDelete(world: World, input: DeleteAction): PreparedWrite {
  return { ...prepareCheck(world, input), change: () => undefined }
}

/** A condition on an item that stays as it is. */
export function prepareCheck(world: World, input: DeleteAction): PreparedWrite {
  const table = findTable(world, input.TableName)
  const { condition } = readExpressions(input, table)
  const key = keyOfRequest(table, input.Key)
  return { table, key, condition, showsItemOnFailure: showsItem(input), paths: [], change: (item) => item }
}

export function prepareUpdate(world: World, input: UpdateAction): PreparedWrite {
  const table = findTable(world, input.TableName)
  const { condition, update } = readExpressions({ UpdateExpression: undefined, ...input }, table)
  const key = keyOfRequest(table, input.Key)
  return {
    table,
    key,
    condition,
    showsItemOnFailure: showsItem(input),
    paths: update.actions.map(({ path }) => path),
    change(item) {
      const after = applyUpdate(item ?? key.attributes, update)
      checkSize(after, 'Item size to update has exceeded the maximum allowed size')
      return after
    },
  }
}

const showsItem = (input: ConditionOption): boolean => input.ReturnValuesOnConditionCheckFailure === 'ALL_OLD'

function checkSize(item: Item, message: string): void {
  if (itemBytes(item) > LARGEST_ITEM_BYTES) throw invalid(message)
}

const nothing: Item = emptyRecord<AttributeValue>()

/** Looks at the item and says what the write does. Throws ValidationException where it does not fit the item. */
export function decide({ table, key, condition, change }: PreparedWrite): Decision {
  const row = table.get(key)
  const bytesBefore = row?.bytes ?? 0
  if (condition !== undefined && !meets(row?.item ?? nothing, condition)) {
    return { type: 'failed', row, units: writeUnits(bytesBefore, 0) }
  }
  const after = change(row?.item)
  const bytesAfter = after === undefined ? 0 : after === row?.item ? bytesBefore : itemBytes(after)
  const bytes = Math.max(bytesBefore, bytesAfter)
  return { type: 'written', before: row?.item, after, bytes, units: writeUnits(bytesBefore, bytesAfter) }
}

/** The decision as an effect, or none where there is nothing to change. */
export function effectOf(
  { table, key }: PreparedWrite,
  { before, after }: Extract<Decision, { type: 'written' }>,
): ItemWrite[] {
  if (before === after) return []
  return [after === undefined ? { table: table.name, deleted: key.attributes } : { table: table.name, item: after }]
}

export const CONDITION_FAILED = 'The conditional request failed'

/** Whether an error is about what the request says of the item, rather than ours. */
export function isValidation(error: unknown): error is DynamoError {
  return (error as Error).name === 'ValidationException'
}
