/** Clients of the services that the commands talk to: AWS as the environment says, or an endpoint. */
import { CloudFormationClient } from '@aws-sdk/client-cloudformation'
import { LambdaClient } from '@aws-sdk/client-lambda'
import { S3Client } from '@aws-sdk/client-s3'
import { SQSClient } from '@aws-sdk/client-sqs'
import { createKinesisClient } from '../../lib/aws/clients/kinesis.ts'
import { clientSettings } from '../../lib/aws/clients/settings.ts'
import { localIdentity, localKinesisClient } from '../../lib/local/run/streams.ts'

export const kinesisClient = (endpoint: string | undefined) =>
  endpoint === undefined ? createKinesisClient() : localKinesisClient(endpoint)

export const sqsClient = (endpoint: string | undefined): SQSClient =>
  new SQSClient({ ...settings(endpoint), ...(endpoint === undefined ? {} : { useQueueUrlAsEndpoint: false }) })

/** With one attempt a call: what is invoked twice is to be so by whoever asks. */
export const lambdaClient = (endpoint: string | undefined, maxAttempts = 1): LambdaClient =>
  new LambdaClient({ ...settings(endpoint), maxAttempts })

export const cloudFormationClient = (endpoint: string | undefined): CloudFormationClient =>
  new CloudFormationClient(settings(endpoint))

export const s3Client = (endpoint: string | undefined): S3Client =>
  new S3Client({ ...settings(endpoint), forcePathStyle: endpoint !== undefined })

function settings(endpoint: string | undefined) {
  if (endpoint === undefined) return clientSettings({})
  const { region, accessKeyId, secretAccessKey } = localIdentity
  return { ...clientSettings({ endpoint, region }), credentials: { accessKeyId, secretAccessKey } }
}
