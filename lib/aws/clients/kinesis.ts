import { KinesisClient } from '@aws-sdk/client-kinesis'
import { type ClientOptions, clientSettings } from './settings.ts'

/** A Kinesis client for our sinks: one attempt per call, as they retry by themselves, over HTTP/1.1. */
export function createKinesisClient(options: ClientOptions = {}): KinesisClient {
  return new KinesisClient(clientSettings(options))
}
