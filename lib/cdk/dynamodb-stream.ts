/** Streams of DynamoDB tables as sources. */
import { Stack } from 'aws-cdk-lib'
import type { ITable } from 'aws-cdk-lib/aws-dynamodb'
import { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import {
  EventSourceMapping,
  type EventSourceMappingOptions,
  type IFunction,
  StartingPosition,
} from 'aws-cdk-lib/aws-lambda'
import type { Construct } from 'constructs'
import { ConfigurationError } from '../core/errors.ts'
import type { SourceBinding } from '../plan/stage-bindings.ts'
import { acknowledgeWildcard, flattened } from './acknowledge.ts'
import type { MappingSettings, SourceConnection } from './bind.ts'
import { checkPlace } from './place.ts'
import { type RenderedProperties, refuseAtSynth } from './rendered.ts'
import { resourceIdentity } from './resource-identity.ts'

export interface DynamoDbStreamSourceOptions {
  /**
   * 'both' refuses at synth a table whose stream has not the view type NEW_AND_OLD_IMAGES, as `tableChanges()` needs; 'some' takes
   * any, for `tableChanges({ images: 'some' })`.
   * @default 'both'
   */
  readonly images?: 'both' | 'some'
  /** Which changes are read, as `FilterCriteria.filter` makes them. @default all */
  readonly filters?: EventSourceMappingOptions['filters']
}

const readActions = ['dynamodb:DescribeStream', 'dynamodb:GetRecords', 'dynamodb:GetShardIterator']

/**
 * A source that reads the changes of a table, each item's in order, from the oldest that its stream holds: at most 24 hours. Declare
 * the source with `tableChanges()`. It cannot feed a keyed stage, which is refused at synth: Lambda's events name no shard.
 *
 * Grants: to read that stream, and to decrypt with the table's key where it has one of its own. A table in another region is
 * refused; one in another account needs a policy of its own there, which synth names.
 *
 * @example
 * bind(orderChanges, new DynamoDbStreamSource(table))
 */
export class DynamoDbStreamSource implements SourceConnection {
  readonly type = 'source'
  readonly resource: string
  readonly table: ITable
  readonly feedsNoKeyedStage =
    "it is a table's stream, and Lambda's events of it name no shard that event time and progress could be kept by: let the table write its changes to a Kinesis stream (`kinesisStream` of the table) and bind a KinesisSource, tableChanges() reads both; or relay them to one in an application of their own"
  readonly #streamArn: string
  readonly #options: DynamoDbStreamSourceOptions

  /** Throws a {@link ConfigurationError} for a table without a stream. */
  constructor(table: ITable, options: DynamoDbStreamSourceOptions = {}) {
    this.table = table
    // The table's, so that a sink that writes to the table closes a circle.
    this.resource = resourceIdentity(table, table.tableArn)
    this.#options = options
    if (table.tableStreamArn === undefined) {
      throw new ConfigurationError(
        `the table ${this.resource} has no stream: give it one with the view type NEW_AND_OLD_IMAGES (\`dynamoStream\` of TableV2, \`stream\` of Table); an imported table must say its tableStreamArn.`,
      )
    }
    this.#streamArn = table.tableStreamArn
  }

  bindingFor(name: string): SourceBinding {
    return { name, kind: 'dynamodb-stream', streamArn: this.#streamArn }
  }

  connect(scope: Construct, target: IFunction, settings: MappingSettings): EventSourceMapping {
    const { table } = this
    checkPlace(target, { resource: table, arn: this.#streamArn, actions: readActions })
    table.grantStream(target, ...readActions)
    grantListing(table, target)
    table.encryptionKey?.grant(target, 'kms:Decrypt')
    refuseAtSynth(scope, table, (properties) => this.#viewFindings(properties))
    const { filters } = this.#options
    return new EventSourceMapping(scope, 'Mapping', {
      target,
      eventSourceArn: this.#streamArn,
      ...settings,
      startingPosition: StartingPosition.TRIM_HORIZON,
      ...(filters === undefined ? {} : { filters }),
    })
  }

  #viewFindings({ StreamSpecification }: RenderedProperties): string[] {
    const { StreamViewType } = Object(StreamSpecification)
    if (this.#options.images === 'some' || StreamViewType === 'NEW_AND_OLD_IMAGES') return []
    return [
      `the stream of the table ${this.resource} has the view type ${StreamViewType}, in which changes have not both images: set it to NEW_AND_OLD_IMAGES, or say { images: 'some' } to the DynamoDbStreamSource and to tableChanges().`,
    ]
  }
}

/** Lambda lists the streams of the table when the mapping is made. Said at synth, when the ARN has become what the finding says. */
function grantListing({ tableArn }: ITable, target: IFunction): void {
  const streams = `${tableArn}/stream/*`
  target.addToRolePolicy(new PolicyStatement({ actions: ['dynamodb:ListStreams'], resources: [streams] }))
  const scope = target.role ?? target
  scope.node.addValidation({
    validate: () => {
      const resource = flattened(Stack.of(scope).resolve(streams))
      acknowledgeWildcard(scope, resource, 'Lambda lists the streams of the table, of which it reads one.')
      return []
    },
  })
}
