import { SQSClient } from '@aws-sdk/client-sqs'
import { type ClientOptions, clientSettings } from './settings.ts'

/** A SQS client for our sinks: one attempt per call, as they retry by themselves, over HTTP/1.1. */
export function createSQSClient(options: ClientOptions = {}): SQSClient {
  return new SQSClient(clientSettings(options))
}
