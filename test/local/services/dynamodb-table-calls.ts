/** Short forms of calls on one table with the keys `p` (text) and `s` (a number), each noted with what came of it. */
import {
  type AttributeValue,
  DeleteItemCommand,
  type DeleteItemCommandInput,
  type DynamoDBClient,
  GetItemCommand,
  type GetItemCommandInput,
  PutItemCommand,
  type PutItemCommandInput,
  QueryCommand,
  type QueryCommandInput,
  TransactWriteItemsCommand,
  type TransactWriteItemsCommandInput,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb'

export type Item = Record<string, AttributeValue>
export type Note = (call: string, run: () => Promise<unknown>) => Promise<void>

export class TableCalls {
  readonly client: DynamoDBClient
  readonly TableName: string
  readonly note: Note

  constructor(client: DynamoDBClient, TableName: string, note: Note) {
    this.client = client
    this.TableName = TableName
    this.note = note
  }

  key(p: string, s = '1'): Item {
    return { p: { S: p }, s: { N: s } }
  }

  put(call: string, Item: Item, more: Partial<PutItemCommandInput> = {}) {
    return this.note(call, async () => {
      const { Attributes } = await this.client.send(new PutItemCommand({ TableName: this.TableName, Item, ...more }))
      return Attributes ?? 'done'
    })
  }

  update(call: string, Key: Item, UpdateExpression: string | undefined, more: Partial<UpdateItemCommandInput> = {}) {
    return this.note(call, async () => {
      const input = { TableName: this.TableName, Key, UpdateExpression, ReturnValues: 'ALL_NEW' as const, ...more }
      const { Attributes } = await this.client.send(new UpdateItemCommand(input))
      return Attributes ?? 'done'
    })
  }

  delete(call: string, Key: Item, more: Partial<DeleteItemCommandInput> = {}) {
    return this.note(call, async () => {
      const { Attributes } = await this.client.send(new DeleteItemCommand({ TableName: this.TableName, Key, ...more }))
      return Attributes ?? 'done'
    })
  }

  get(call: string, Key: Item, more: Partial<GetItemCommandInput> = {}) {
    return this.note(call, async () => {
      const input = { TableName: this.TableName, Key, ConsistentRead: true, ...more }
      const { Item, ConsumedCapacity } = await this.client.send(new GetItemCommand(input))
      return { Item, units: ConsumedCapacity?.CapacityUnits }
    })
  }

  query(call: string, KeyConditionExpression: string, values: Item, more: Partial<QueryCommandInput> = {}) {
    return this.note(call, async () => {
      const input = {
        TableName: this.TableName,
        KeyConditionExpression,
        ExpressionAttributeValues: values,
        ...more,
      }
      const { Items, Count, ScannedCount, LastEvaluatedKey } = await this.client.send(new QueryCommand(input))
      return { found: Items?.map(({ s }) => s?.N), Count, ScannedCount, LastEvaluatedKey }
    })
  }

  transact(call: string, TransactItems: TransactWriteItemsCommandInput['TransactItems'], token?: string) {
    return this.note(call, async () => {
      const input = { TransactItems, ...(token === undefined ? {} : { ClientRequestToken: token }) }
      await this.client.send(new TransactWriteItemsCommand(input))
      return 'done'
    })
  }
}
