/** Clients of a service on this machine that stands for AWS: LocalStack, MiniStack. */
import { CloudFormationClient } from '@aws-sdk/client-cloudformation'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { EventBridgeClient } from '@aws-sdk/client-eventbridge'
import { KinesisClient } from '@aws-sdk/client-kinesis'
import { LambdaClient } from '@aws-sdk/client-lambda'
import { SQSClient } from '@aws-sdk/client-sqs'
import { NodeHttpHandler } from '@smithy/node-http-handler'

/** What such a service takes: it has one account, and nothing here is a secret. MiniStack takes this key for the account's root. */
export const standInIdentity = { region: 'us-east-1', accessKeyId: 'test', secretAccessKey: 'test' } as const
export const standInAccount = '000000000000'

export type StandInClients = ReturnType<typeof standInClients>

export function standInClients(endpoint: string) {
  const { region, ...credentials } = standInIdentity
  // HTTP/1.1, as the emulators speak nothing else well. The first call of a service loads it, which takes its time.
  const requestHandler = new NodeHttpHandler({ requestTimeout: 60_000, throwOnRequestTimeout: true })
  const settings = { endpoint, region, credentials, requestHandler }
  const clients = {
    cloudFormation: new CloudFormationClient(settings),
    dynamodb: new DynamoDBClient(settings),
    eventBridge: new EventBridgeClient(settings),
    kinesis: new KinesisClient(settings),
    lambda: new LambdaClient(settings),
    sqs: new SQSClient(settings),
  }
  const destroy = () => {
    for (const client of Object.values(clients)) client.destroy()
  }
  return { ...clients, destroy }
}
