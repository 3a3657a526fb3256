import { S3Client } from '@aws-sdk/client-s3'
import { type ClientOptions, clientSettings } from './settings.ts'

/** An S3 client for our sinks: one attempt per call, as they retry by themselves; path-style where an endpoint is given. */
export function createS3Client(options: ClientOptions = {}): S3Client {
  return new S3Client({ ...clientSettings(options), forcePathStyle: options.endpoint !== undefined })
}
