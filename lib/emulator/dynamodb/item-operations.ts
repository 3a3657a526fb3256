/** Operations on one item. */
import { readUnits, reportUnits } from './capacity.ts'
import { DynamoError, invalid } from './errors.ts'
import { project, readProjection } from './expressions/projection.ts'
import { ExpressionReader, type Path } from './expressions/reader.ts'
import { References } from './expressions/references.ts'
import { keyOfRequest } from './keys.ts'
import type {
  DeleteItemInput,
  GetItemInput,
  GetItemOutput,
  Item,
  ProjectionOption,
  PutItemInput,
  ReturnValues,
  UpdateItemInput,
  WriteOutput,
} from './shapes.ts'
import { copyItem } from './value.ts'
import { checkCapacityReport, checkChoice, checkRefusal, findTable, readRow, type World } from './world.ts'
import {
  CONDITION_FAILED,
  decide,
  effectOf,
  type PreparedWrite,
  prepareDelete,
  preparePut,
  prepareUpdate,
} from './write.ts'

type WriteInput = PutItemInput | DeleteItemInput | UpdateItemInput

export function putItem(world: World, input: PutItemInput): WriteOutput {
  checkOldValuesOnly(input)
  return write(world, 'PutItem', input, preparePut(world, input))
}

export function deleteItem(world: World, input: DeleteItemInput): WriteOutput {
  checkOldValuesOnly(input)
  return write(world, 'DeleteItem', input, prepareDelete(world, input))
}

export function updateItem(world: World, input: UpdateItemInput): WriteOutput {
  checkChoice('returnValues', input.ReturnValues, ['ALL_NEW', 'UPDATED_OLD', 'ALL_OLD', 'NONE', 'UPDATED_NEW'])
  return write(world, 'UpdateItem', input, prepareUpdate(world, input))
}

function checkOldValuesOnly({ ReturnValues }: WriteInput): void {
  if (ReturnValues === undefined || ReturnValues === 'NONE' || ReturnValues === 'ALL_OLD') return
  throw invalid('Return values set to invalid value')
}

function write(world: World, operation: string, input: WriteInput, prepared: PreparedWrite): WriteOutput {
  checkCapacityReport(input.ReturnConsumedCapacity)
  const { table, key } = prepared
  checkRefusal(world, operation, table, key)
  const decision = decide(prepared)
  world.writeMeter.add(table.name, decision.units)
  if (decision.type === 'failed') {
    const shown = prepared.showsItemOnFailure && decision.row !== undefined
    throw new DynamoError('ConditionalCheckFailedException', CONDITION_FAILED, {
      Item: shown ? copyItem(decision.row.item) : undefined,
    })
  }
  const writes = effectOf(prepared, decision)
  if (writes.length > 0) world.commit({ type: 'items-written', atMs: world.nowMs(), writes, by: 'request' })
  const attributes = returned(input.ReturnValues, decision.before, decision.after, prepared.paths)
  return {
    ...(attributes === undefined ? {} : { Attributes: copyItem(attributes) }),
    ...reportUnits(input.ReturnConsumedCapacity, table.name, decision.units),
  }
}

function returned(
  asked: ReturnValues | undefined,
  before: Item | undefined,
  after: Item | undefined,
  paths: readonly Path[],
): Item | undefined {
  switch (asked) {
    case 'ALL_OLD':
      return before
    case 'ALL_NEW':
      return after
    case 'UPDATED_OLD':
      return updated(before, paths)
    case 'UPDATED_NEW':
      return updated(after, paths)
    default:
      return undefined
  }
}

function updated(item: Item | undefined, paths: readonly Path[]): Item | undefined {
  const shown = item === undefined ? {} : project(item, paths)
  return Object.keys(shown).length === 0 ? undefined : shown
}

export function getItem(world: World, input: GetItemInput): GetItemOutput {
  checkCapacityReport(input.ReturnConsumedCapacity)
  const table = findTable(world, input.TableName)
  const paths = projectionOf(input)
  const key = keyOfRequest(table, input.Key)
  checkRefusal(world, 'GetItem', table, key)
  const consistent = input.ConsistentRead === true
  const row = readRow(world, 'GetItem', table, key, consistent)
  const units = readUnits(row?.bytes ?? 0, consistent)
  world.readMeter.add(table.name, units)
  return {
    ...(row === undefined ? {} : { Item: shown(row.item, paths) }),
    ...reportUnits(input.ReturnConsumedCapacity, table.name, units),
  }
}

/** The paths of a request whose only expression is a projection. */
export function projectionOf(input: ProjectionOption): readonly Path[] | undefined {
  const { ProjectionExpression } = input
  const references = new References(
    { ExpressionAttributeNames: input.ExpressionAttributeNames },
    { ProjectionExpression },
  )
  const paths = ProjectionExpression === undefined ? undefined : readPaths(ProjectionExpression, references)
  references.checkAllUsed()
  return paths
}

export function readPaths(expression: string, references: References): readonly Path[] {
  return readProjection(new ExpressionReader('ProjectionExpression', expression, references))
}

/** A copy of what was asked for of an item. */
export function shown(item: Item, paths: readonly Path[] | undefined): Item {
  return copyItem(paths === undefined ? item : project(item, paths))
}
