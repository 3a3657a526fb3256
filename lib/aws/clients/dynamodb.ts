import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { type ClientOptions, clientSettings } from './settings.ts'

/** A DynamoDB client for our sinks: one attempt per call, as they retry by themselves, over HTTP/1.1. */
export function createDynamoDBClient(options: ClientOptions = {}): DynamoDBClient {
  return new DynamoDBClient(clientSettings(options))
}
