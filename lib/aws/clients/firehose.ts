import { FirehoseClient } from '@aws-sdk/client-firehose'
import { type ClientOptions, clientSettings } from './settings.ts'

/** A Firehose client for our sinks: one attempt per call, as they retry by themselves, over HTTP/1.1. */
export function createFirehoseClient(options: ClientOptions = {}): FirehoseClient {
  return new FirehoseClient(clientSettings(options))
}
