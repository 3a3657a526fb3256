/** The same running count by other means. Both send each of their requests when the one before is answered, as order demands. */
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency'
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb'
import { type DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb'
import { lambdaContext } from '../../lib/testing/index.ts'
import { type Click, clickOf } from './counting.ts'
import { type BenchClient, countTable, idempotencyTable } from './tables.ts'

/** Counts a batch of clicks, given by their users. */
export type Peer = (users: readonly string[]) => Promise<void>

interface Numbered extends Click {
  readonly eventID: string
}

/** One ADD per record. A batch that comes again is counted again. */
export function addPerRecord(client: BenchClient): Peer {
  return async (users) => {
    for (const user of users) await add(client, clickOf(user))
  }
}

async function add(client: BenchClient, { user }: Click): Promise<void> {
  await client.send(
    new UpdateItemCommand({
      TableName: countTable,
      Key: { user: { S: user } },
      UpdateExpression: 'ADD #count :one',
      ExpressionAttributeNames: { '#count': 'count' },
      ExpressionAttributeValues: { ':one': { N: '1' } },
    }),
  )
}

/** The same ADD inside `makeIdempotent` of Powertools, by the record's event id. */
export function powertoolsIdempotency(client: BenchClient): Peer {
  const awsSdkV3Client = client as unknown as DynamoDBClient
  const persistenceStore = new DynamoDBPersistenceLayer({ tableName: idempotencyTable, awsSdkV3Client })
  const config = new IdempotencyConfig({ eventKeyJmesPath: 'eventID' })
  config.registerLambdaContext(lambdaContext())
  const count = makeIdempotent((click: Numbered) => add(client, click), { persistenceStore, config })
  let records = 0
  return async (users) => {
    for (const user of users) await count({ ...clickOf(user), eventID: `shardId-000000000000:${records++}` })
  }
}
