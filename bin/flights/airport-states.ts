/** Reads what the table of the stage `by-origin` holds of every airport, as any reader of the table would. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { ScanCommand } from '@aws-sdk/client-dynamodb'
import { airportState, flightsApp } from '../../functions/flights/topology.ts'
import { readState, stateView } from '../../lib/aws/state-table/reader.ts'
import { tableNameOf } from '../../lib/plan/plan.ts'
import type { AirportTotals } from './batch-airports.ts'

export const airportStage = 'by-origin'
/** The state of each airport, by its code. An airport whose state is not whole is told as undefined. */
export async function readAirportStates(
  client: DynamoDBClient,
  tableName = tableNameOf(flightsApp.name, airportStage),
): Promise<ReadonlyMap<string, AirportTotals | undefined>> {
  const view = stateView(flightsApp, airportStage, { airport: airportState })
  const reader = readState({ client, tableName, view })
  const states = new Map<string, AirportTotals | undefined>()
  for (const code of await airportsIn(client, tableName)) {
    const { recent = [], flights, delayed = 0, worst } = (await reader.get(code))?.states.airport ?? {}
    states.set(code, flights === undefined || worst === undefined ? undefined : { recent, flights, delayed, worst })
  }
  return states
}

async function airportsIn(client: DynamoDBClient, tableName: string): Promise<readonly string[]> {
  const codes: string[] = []
  let start: ScanCommand['input']['ExclusiveStartKey']
  do {
    const scan = new ScanCommand({
      TableName: tableName,
      ConsistentRead: true,
      FilterExpression: 'sk = :key',
      ExpressionAttributeValues: { ':key': { S: 'key' } },
      ProjectionExpression: 'pk',
      ExclusiveStartKey: start,
    })
    const { Items = [], LastEvaluatedKey } = await client.send(scan)
    for (const { pk } of Items) codes.push(String(pk?.S).slice('key#'.length))
    start = LastEvaluatedKey
  } while (start !== undefined)
  return codes
}
