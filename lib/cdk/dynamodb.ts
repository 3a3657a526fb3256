/** DynamoDB tables as sinks. */
import { CfnGlobalTable, CfnTable, type ITable } from 'aws-cdk-lib/aws-dynamodb'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { ConfigurationError } from '../core/errors.ts'
import type { SinkBinding } from '../plan/stage-bindings.ts'
import type { SinkConnection } from './bind.ts'
import { resourceIdentity } from './resource-identity.ts'

export interface DynamoDbTableSinkOptions {
  /** The partition key attribute: it takes the sink's key. @default what the stack declares; an imported table must say it */
  readonly partitionKey?: string
  /** The sort key attribute: a field of the value. @default what the stack declares; none for an imported table */
  readonly sortKey?: string
}

/**
 * A sink that writes each value as an item of a DynamoDB table, and never an older output over a newer one.
 *
 * Grants: UpdateItem on that table, and use of its key where it has one of its own.
 *
 * @example
 * bind(hotels, new DynamoDbTableSink(table))
 */
export class DynamoDbTableSink implements SinkConnection {
  readonly type = 'sink'
  readonly resource: string
  readonly table: ITable
  readonly #partitionKey: string
  readonly #sortKey: string | undefined

  /** Throws a {@link ConfigurationError} where the key attributes are unknown, or are not those of the table. */
  constructor(table: ITable, options: DynamoDbTableSinkOptions = {}) {
    this.table = table
    this.resource = resourceIdentity(table, table.tableArn)
    const declared = keySchemaOf(table)
    const partitionKey = options.partitionKey ?? declared?.partitionKey
    if (!partitionKey) {
      throw new ConfigurationError(
        `the table ${this.resource} is imported, so its key is not known here: say new DynamoDbTableSink(table, { partitionKey: '...' }), and sortKey where it has one.`,
      )
    }
    this.#partitionKey = partitionKey
    this.#sortKey = options.sortKey ?? declared?.sortKey
    if (declared) this.#refuseOtherKeys(declared)
  }

  bindingFor(name: string): SinkBinding {
    return {
      name,
      kind: 'dynamodb',
      tableName: this.table.tableName,
      partitionKey: this.#partitionKey,
      ...(this.#sortKey === undefined ? {} : { sortKey: this.#sortKey }),
    }
  }

  connect(target: IFunction): void {
    this.table.grant(target, 'dynamodb:UpdateItem')
    this.table.encryptionKey?.grantEncryptDecrypt(target)
  }

  #refuseOtherKeys(declared: KeySchema): void {
    if (declared.partitionKey === this.#partitionKey && declared.sortKey === this.#sortKey) return
    const shown = (schema: KeySchema): string =>
      schema.sortKey ? `"${schema.partitionKey}" and "${schema.sortKey}"` : `"${schema.partitionKey}"`
    throw new ConfigurationError(
      `the table ${this.resource} has the key ${shown(declared)}, not ${shown({ partitionKey: this.#partitionKey, sortKey: this.#sortKey })}: leave partitionKey and sortKey out.`,
    )
  }
}

interface KeySchema {
  readonly partitionKey: string
  readonly sortKey: string | undefined
}

/** The key of a table that this application declares. */
function keySchemaOf(table: ITable): KeySchema | undefined {
  const declared = table.node.defaultChild
  if (!(declared instanceof CfnTable || declared instanceof CfnGlobalTable)) return undefined
  const elements = Array.isArray(declared.keySchema) ? declared.keySchema : []
  const named = (keyType: string): string | undefined =>
    elements
      .map((element) => ('attributeName' in element && element.keyType === keyType ? element.attributeName : undefined))
      .find((name) => name !== undefined)
  const partitionKey = named('HASH')
  return partitionKey === undefined ? undefined : { partitionKey, sortKey: named('RANGE') }
}
