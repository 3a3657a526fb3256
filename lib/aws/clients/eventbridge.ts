import { EventBridgeClient } from '@aws-sdk/client-eventbridge'
import { type ClientOptions, clientSettings } from './settings.ts'

/** An EventBridge client for our sinks: one attempt per call, as they retry by themselves, over HTTP/1.1. */
export function createEventBridgeClient(options: ClientOptions = {}): EventBridgeClient {
  return new EventBridgeClient(clientSettings(options))
}
