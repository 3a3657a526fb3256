/** DynamoDB tables as sinks. */
import { Stack } from 'aws-cdk-lib'
import { CfnGlobalTable, CfnTable, type ITable } from 'aws-cdk-lib/aws-dynamodb'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { ConfigurationError } from '../core/errors.ts'
import type { KeyType, SinkBinding } from '../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { SinkConnection } from './bind.ts'
import { grantTableKey } from './keyed-resources.ts'
import { checkPlace } from './place.ts'
import { resourceIdentity } from './resource-identity.ts'

export interface DynamoDbTableSinkOptions {
  /**
   * The partition key attribute. It takes what the sink's key function says, and a value that has the attribute too must
   * have the same text there, else it is a dead letter; without a key function it is the value's own attribute.
   * @default what the stack declares; an imported table must say it
   */
  readonly partitionKey?: string
  /** The sort key attribute: a field of the value. @default what the stack declares; none for an imported table */
  readonly sortKey?: string
}

/**
 * A sink that writes each value as an item of a DynamoDB table, and never an older output over a newer one.
 *
 * Grants: UpdateItem on that table, and use of its key where it has one of its own. A table in another region is refused;
 * one in another account needs a policy of its own there, which synth names.
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
  readonly #declared: KeySchema | undefined

  /** Throws a {@link ConfigurationError} where the key attributes are unknown, or are not those of the table. */
  constructor(table: ITable, options: DynamoDbTableSinkOptions = {}) {
    this.table = table
    this.resource = resourceIdentity(table, table.tableArn)
    const declared = keySchemaOf(table)
    const partitionKey = options.partitionKey ?? declared?.partition.name
    if (!partitionKey) {
      throw new ConfigurationError(
        `the table ${this.resource} is imported, so its key is not known here: say new DynamoDbTableSink(table, { partitionKey: '...' }), and sortKey where it has one.`,
      )
    }
    this.#partitionKey = partitionKey
    this.#sortKey = options.sortKey ?? declared?.sort?.name
    this.#declared = declared
    if (declared) this.#refuseOtherKeys(declared)
  }

  bindingFor({ name, key }: SinkDeclaration): SinkBinding {
    const partitionKeyType = this.#declared?.partition.type
    const sortKeyType = this.#declared?.sort?.type
    if (key && partitionKeyType !== undefined && partitionKeyType !== 'S') {
      throw new ConfigurationError(
        `the sink "${name}" has a key function, whose text is the partition key, and the partition key "${this.#partitionKey}" of the table ${this.resource} has the type ${partitionKeyType}: declare the sink without \`key\` to take the value's own attribute, or give the table a key of type S.`,
      )
    }
    return {
      name,
      kind: 'dynamodb',
      // Not the name: a table of the same name in the function's own account would be taken for it.
      tableName: this.table.tableArn,
      partitionKey: this.#partitionKey,
      ...(partitionKeyType === undefined ? {} : { partitionKeyType }),
      ...(this.#sortKey === undefined ? {} : { sortKey: this.#sortKey }),
      ...(sortKeyType === undefined ? {} : { sortKeyType }),
    }
  }

  connect(target: IFunction): void {
    const actions = ['dynamodb:UpdateItem']
    checkPlace(target, { resource: this.table, arn: this.table.tableArn, actions })
    this.table.grant(target, ...actions)
    grantTableKey(this.table, target)
  }

  #refuseOtherKeys({ partition, sort }: KeySchema): void {
    if (partition.name === this.#partitionKey && sort?.name === this.#sortKey) return
    const shown = (partitionKey: string, sortKey: string | undefined): string =>
      sortKey ? `"${partitionKey}" and "${sortKey}"` : `"${partitionKey}"`
    throw new ConfigurationError(
      `the table ${this.resource} has the key ${shown(partition.name, sort?.name)}, not ${shown(this.#partitionKey, this.#sortKey)}: leave partitionKey and sortKey out.`,
    )
  }
}

interface KeyAttribute {
  readonly name: string
  readonly type: KeyType
}

interface KeySchema {
  readonly partition: KeyAttribute
  readonly sort: KeyAttribute | undefined
}

/** The key of a table that this application declares. */
function keySchemaOf(table: ITable): KeySchema | undefined {
  const declared = table.node.defaultChild
  if (!(declared instanceof CfnTable || declared instanceof CfnGlobalTable)) return undefined
  const stack = Stack.of(declared)
  const elements: CfnTable.KeySchemaProperty[] = stack.resolve(declared.keySchema)
  const attributes: CfnTable.AttributeDefinitionProperty[] = stack.resolve(declared.attributeDefinitions)
  const keyOf = (keyType: string): KeyAttribute | undefined => {
    const name = elements.find((element) => element.keyType === keyType)?.attributeName
    const type = attributes.find(({ attributeName }) => attributeName === name)?.attributeType
    return name === undefined || type === undefined ? undefined : { name, type: type as KeyType }
  }
  const partition = keyOf('HASH')
  return partition && { partition, sort: keyOf('RANGE') }
}
