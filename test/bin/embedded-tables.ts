import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DynamoDBStateStore } from '../../lib/aws/state-table/store.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ensureStateTable, localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { type DynamoServiceOptions, startDynamoService } from '../../lib/local/services/dynamodb.ts'

export interface EmbeddedTables {
  readonly url: string
  readonly client: DynamoDBClient
  close(): Promise<void>
}

/** The embedded DynamoDB, and a client of it. */
export async function startTables(options: DynamoServiceOptions = {}): Promise<EmbeddedTables> {
  const service = await startDynamoService(options)
  const client = localDynamoDBClient(service.url)
  return {
    url: service.url,
    client,
    close() {
      client.destroy()
      return service.close()
    },
  }
}

/** The store of a stage on a state table, which is made where it is missing. */
export async function stateStore(
  client: DynamoDBClient,
  stage: string,
  tableName = `${stage}-table`,
): Promise<DynamoDBStateStore> {
  await ensureStateTable(client, systemClock, tableName)
  return new DynamoDBStateStore({ client, tableName, stage, clock: systemClock })
}
