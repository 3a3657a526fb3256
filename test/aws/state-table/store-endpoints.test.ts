/**
 * The conformance suite over the wire: on the embedded DynamoDB, and on an independent one where
 * `MILLRACE_TEST_DYNAMODB_ENDPOINT` names it (LocalStack, MiniStack, DynamoDB Local).
 */

import { CreateTableCommand, DeleteTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { clientSettings } from '../../../lib/aws/clients/settings.ts'
import { type DynamoDBStatePort, DynamoDBStateStore } from '../../../lib/aws/state-table/store.ts'
import { type DynamoService, startDynamoService } from '../../../lib/local/services/dynamodb.ts'
import { type StateStoreUnderTest, stateStoreConformance } from '../../../lib/testing/state-store-conformance.ts'
import { stateTable } from '../../../lib/testing/state-table.ts'
import { InstantClock } from '../sink-worlds.ts'

let tables = 0

/** A table of its own behind the endpoint, deleted afterwards. */
async function endpointWorld(endpoint: string): Promise<StateStoreUnderTest> {
  const client = new DynamoDBClient({
    ...clientSettings({ endpoint, region: 'us-east-1' }),
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  })
  tables += 1
  const TableName = `state-conformance-${process.pid}-${tables}`
  await client.send(new CreateTableCommand({ TableName, ...stateTable }))
  let losing = false
  const send = async (command: Parameters<DynamoDBClient['send']>[0]): Promise<never> => {
    const answer = await client.send(command)
    if (!losing || !/PutItem|TransactWrite/.test(command.constructor.name)) return answer as never
    losing = false
    throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
  }
  return {
    store: new DynamoDBStateStore({
      client: { send } as DynamoDBStatePort,
      tableName: TableName,
      stage: 'by-hotel',
      clock: new InstantClock(),
    }),
    loseNextAnswer: () => {
      losing = true
    },
    async close() {
      await client.send(new DeleteTableCommand({ TableName }))
      client.destroy()
    },
  }
}

describe('on the embedded DynamoDB', () => {
  let service: DynamoService
  beforeAll(async () => {
    service = await startDynamoService()
  })
  afterAll(() => service.close())

  const make = () => endpointWorld(service.url)
  for (const { name, run } of stateStoreConformance('the DynamoDB store', { make })) test(name, run)
})

const endpoint = process.env.MILLRACE_TEST_DYNAMODB_ENDPOINT

describe('on an independent endpoint', () => {
  if (endpoint === undefined || endpoint === '') {
    test.skip('SKIPPED: no endpoint to hold the DynamoDB store to, as MILLRACE_TEST_DYNAMODB_ENDPOINT is not set', () => {})
    return
  }
  const make = () => endpointWorld(endpoint)
  for (const { name, run } of stateStoreConformance('the DynamoDB store', { make })) test(name, run, 60_000)
})
