/**
 * The requests and answers of the operations that the model has, field by field as in the DynamoDB API, with `Date` and bytes where
 * the wire has seconds and base64. An SDK answer has the same shape.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/Welcome.html
 */

/** A value of exactly one type. The SDK's type is assignable to it, and the other way round. */
export interface AttributeValue {
  readonly S?: string | undefined
  readonly N?: string | undefined
  readonly B?: Uint8Array | undefined
  readonly BOOL?: boolean | undefined
  readonly NULL?: boolean | undefined
  readonly SS?: readonly string[] | undefined
  readonly NS?: readonly string[] | undefined
  readonly BS?: readonly Uint8Array[] | undefined
  readonly L?: readonly AttributeValue[] | undefined
  readonly M?: Item | undefined
}
export type Item = Readonly<Record<string, AttributeValue>>

export type CapacityReport = 'NONE' | 'TOTAL' | 'INDEXES'
export type StreamView = 'KEYS_ONLY' | 'NEW_IMAGE' | 'OLD_IMAGE' | 'NEW_AND_OLD_IMAGES'
export type KeyAttributeType = 'S' | 'N' | 'B'

export interface AttributeDefinition {
  readonly AttributeName: string
  readonly AttributeType: KeyAttributeType
}
export interface KeySchemaElement {
  readonly AttributeName: string
  readonly KeyType: 'HASH' | 'RANGE'
}
export interface StreamSpecification {
  readonly StreamEnabled: boolean
  readonly StreamViewType?: StreamView | undefined
}

export interface TableReference {
  readonly TableName: string
}
export interface CreateTableInput extends TableReference {
  readonly AttributeDefinitions: readonly AttributeDefinition[]
  readonly KeySchema: readonly KeySchemaElement[]
  /** Only PAY_PER_REQUEST: the model has no provisioned throughput. */
  readonly BillingMode?: string | undefined
  readonly StreamSpecification?: StreamSpecification | undefined
}
export interface TableDescription {
  readonly TableName: string
  readonly TableArn: string
  readonly TableId: string
  readonly TableStatus: 'ACTIVE' | 'DELETING'
  readonly AttributeDefinitions: readonly AttributeDefinition[]
  readonly KeySchema: readonly KeySchemaElement[]
  readonly CreationDateTime: Date
  readonly ItemCount: number
  readonly TableSizeBytes: number
  readonly BillingModeSummary: { readonly BillingMode: 'PAY_PER_REQUEST' }
  readonly StreamSpecification?: StreamSpecification
  readonly LatestStreamArn?: string
  readonly LatestStreamLabel?: string
}
export interface ListTablesInput {
  readonly ExclusiveStartTableName?: string | undefined
  /** 1 to 100. @default 100 */
  readonly Limit?: number | undefined
}
export interface ListTablesOutput {
  readonly TableNames: readonly string[]
  readonly LastEvaluatedTableName?: string
}
export interface TimeToLiveSpecification {
  readonly AttributeName: string
  readonly Enabled: boolean
}
export interface UpdateTimeToLiveInput extends TableReference {
  readonly TimeToLiveSpecification: TimeToLiveSpecification
}

export interface Capacity {
  readonly CapacityUnits: number
  readonly ReadCapacityUnits?: number
  readonly WriteCapacityUnits?: number
}
export interface ConsumedCapacity extends Capacity {
  readonly TableName: string
  readonly Table?: Capacity
}
export interface CapacityOption {
  readonly ReturnConsumedCapacity?: CapacityReport | undefined
}
export interface ConditionOption {
  readonly ConditionExpression?: string | undefined
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>> | undefined
  readonly ExpressionAttributeValues?: Item | undefined
  readonly ReturnValuesOnConditionCheckFailure?: 'NONE' | 'ALL_OLD' | undefined
}
export interface ProjectionOption {
  readonly ProjectionExpression?: string | undefined
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>> | undefined
}

export type ReturnValues = 'NONE' | 'ALL_OLD' | 'ALL_NEW' | 'UPDATED_OLD' | 'UPDATED_NEW'
export interface PutAction extends TableReference, ConditionOption {
  readonly Item: Item
}
export interface DeleteAction extends TableReference, ConditionOption {
  readonly Key: Item
}
export interface UpdateAction extends TableReference, ConditionOption {
  readonly Key: Item
  readonly UpdateExpression?: string | undefined
}
interface WriteOptions extends CapacityOption {
  readonly ReturnValues?: ReturnValues | undefined
}
export interface PutItemInput extends PutAction, WriteOptions {}
export interface DeleteItemInput extends DeleteAction, WriteOptions {}
export interface UpdateItemInput extends UpdateAction, WriteOptions {}
export interface WriteOutput {
  readonly Attributes?: Item
  readonly ConsumedCapacity?: ConsumedCapacity
}

export interface GetAction extends TableReference, ProjectionOption {
  readonly Key: Item
}
export interface GetItemInput extends GetAction, CapacityOption {
  readonly ConsistentRead?: boolean | undefined
}
export interface GetItemOutput {
  readonly Item?: Item
  readonly ConsumedCapacity?: ConsumedCapacity
}

interface PageInput extends TableReference, ProjectionOption, CapacityOption {
  readonly ConsistentRead?: boolean | undefined
  readonly ExclusiveStartKey?: Item | undefined
  readonly ExpressionAttributeValues?: Item | undefined
  readonly FilterExpression?: string | undefined
  readonly Limit?: number | undefined
  readonly Select?: 'ALL_ATTRIBUTES' | 'SPECIFIC_ATTRIBUTES' | 'COUNT' | undefined
}
export interface QueryInput extends PageInput {
  readonly KeyConditionExpression: string
  /** @default true */
  readonly ScanIndexForward?: boolean | undefined
}
export interface ScanInput extends PageInput {
  readonly Segment?: number | undefined
  readonly TotalSegments?: number | undefined
}
export interface PageOutput {
  readonly Items?: readonly Item[]
  readonly Count: number
  readonly ScannedCount: number
  readonly LastEvaluatedKey?: Item
  readonly ConsumedCapacity?: ConsumedCapacity
}

export interface KeysAndAttributes extends ProjectionOption {
  readonly Keys: readonly Item[]
  readonly ConsistentRead?: boolean | undefined
}
export interface BatchGetItemInput extends CapacityOption {
  readonly RequestItems: Readonly<Record<string, KeysAndAttributes>>
}
export interface BatchGetItemOutput {
  readonly Responses: Readonly<Record<string, readonly Item[]>>
  readonly UnprocessedKeys: Readonly<Record<string, KeysAndAttributes>>
  readonly ConsumedCapacity?: readonly ConsumedCapacity[]
}
export interface WriteRequest {
  readonly PutRequest?: { readonly Item: Item } | undefined
  readonly DeleteRequest?: { readonly Key: Item } | undefined
}
export interface BatchWriteItemInput extends CapacityOption {
  readonly RequestItems: Readonly<Record<string, readonly WriteRequest[]>>
}
export interface BatchWriteItemOutput {
  readonly UnprocessedItems: Readonly<Record<string, readonly WriteRequest[]>>
  readonly ConsumedCapacity?: readonly ConsumedCapacity[]
}

export interface TransactWriteItem {
  readonly ConditionCheck?: (DeleteAction & { readonly ConditionExpression: string }) | undefined
  readonly Put?: PutAction | undefined
  readonly Delete?: DeleteAction | undefined
  readonly Update?: (UpdateAction & { readonly UpdateExpression: string }) | undefined
}
export interface TransactWriteItemsInput extends CapacityOption {
  readonly TransactItems: readonly TransactWriteItem[]
  /** 1 to 36 characters, remembered for ten minutes. */
  readonly ClientRequestToken?: string | undefined
}
export interface TransactWriteItemsOutput {
  readonly ConsumedCapacity?: readonly ConsumedCapacity[]
}
export interface TransactGetItemsInput extends CapacityOption {
  readonly TransactItems: readonly { readonly Get: GetAction }[]
}
export interface TransactGetItemsOutput {
  readonly Responses: readonly { readonly Item?: Item }[]
  readonly ConsumedCapacity?: readonly ConsumedCapacity[]
}
export interface CancellationReason {
  readonly Code: 'None' | 'ConditionalCheckFailed' | 'ThrottlingError' | 'TransactionConflict' | 'ValidationError'
  readonly Message?: string
  readonly Item?: Item
}

export interface ListStreamsInput {
  readonly TableName?: string | undefined
  /** 1 to 100. @default 100 */
  readonly Limit?: number | undefined
  readonly ExclusiveStartStreamArn?: string | undefined
}
export interface StreamSummary {
  readonly StreamArn: string
  readonly StreamLabel: string
  readonly TableName: string
}
export interface ListStreamsOutput {
  readonly Streams: readonly StreamSummary[]
  readonly LastEvaluatedStreamArn?: string
}
export interface DescribeStreamInput {
  readonly StreamArn: string
  readonly Limit?: number | undefined
  readonly ExclusiveStartShardId?: string | undefined
}
export interface StreamDescription extends StreamSummary {
  readonly StreamStatus: 'ENABLED' | 'DISABLED'
  readonly StreamViewType: StreamView
  readonly CreationRequestDateTime: Date
  readonly KeySchema: readonly KeySchemaElement[]
  readonly Shards: readonly {
    readonly ShardId: string
    readonly SequenceNumberRange: {
      readonly StartingSequenceNumber: string
      readonly EndingSequenceNumber?: string
    }
  }[]
}
export interface GetShardIteratorInput {
  readonly StreamArn: string
  readonly ShardId: string
  readonly ShardIteratorType: 'TRIM_HORIZON' | 'LATEST' | 'AT_SEQUENCE_NUMBER' | 'AFTER_SEQUENCE_NUMBER'
  readonly SequenceNumber?: string | undefined
}
export interface GetRecordsInput {
  readonly ShardIterator: string
  /** 1 to 1,000. @default 1000 */
  readonly Limit?: number | undefined
}
export interface StreamRecord {
  readonly eventID: string
  readonly eventName: 'INSERT' | 'MODIFY' | 'REMOVE'
  readonly eventVersion: '1.1'
  readonly eventSource: 'aws:dynamodb'
  readonly awsRegion: string
  readonly dynamodb: {
    /** Whole seconds. */
    readonly ApproximateCreationDateTime: Date
    readonly Keys: Item
    readonly NewImage?: Item
    readonly OldImage?: Item
    readonly SequenceNumber: string
    readonly SizeBytes: number
    readonly StreamViewType: StreamView
  }
  /** Of what TTL deleted. */
  readonly userIdentity?: { readonly Type: 'Service'; readonly PrincipalId: 'dynamodb.amazonaws.com' }
}
export interface GetRecordsOutput {
  readonly Records: readonly StreamRecord[]
  /** Absent at the end of a closed shard. */
  readonly NextShardIterator?: string
}
