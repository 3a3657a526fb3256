/** Where records go that cannot be processed: their original bytes, their coordinates and the error. */
import { Duration, RemovalPolicy, Stack } from 'aws-cdk-lib'
import { Grant } from 'aws-cdk-lib/aws-iam'
import type { IStream } from 'aws-cdk-lib/aws-kinesis'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { BlockPublicAccess, Bucket, BucketEncryption, type IBucket } from 'aws-cdk-lib/aws-s3'
import { type IQueue, Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs'
import type { Construct } from 'constructs'
import { ConfigurationError } from '../core/errors.ts'
import type { BoundName } from '../plan/bindings.ts'
import type { DeadLetterBinding } from '../plan/stage-bindings.ts'
import { acknowledge, acknowledgeWildcard, flattened } from './acknowledge.ts'
import type { ClusterConnection } from './kafka/cluster.ts'
import { checkedTopic, topicIdentity } from './kafka/topic-name.ts'
import { grantPutRecords } from './kinesis.ts'
import { checkPlace } from './place.ts'
import { resourceIdentity } from './resource-identity.ts'
import { grantSendMessage } from './sqs.ts'

/** Where dead letters go, as deployed. */
export type DeadLetterTarget =
  | { readonly kind: 'sqs'; readonly queue: IQueue; readonly offloadBucket: IBucket }
  | { readonly kind: 'kinesis'; readonly stream: IStream; readonly offloadBucket: IBucket }
  | {
      readonly kind: 'kafka'
      readonly cluster: ClusterConnection
      readonly topic: string
      readonly offloadBucket: IBucket
    }
  | { readonly kind: 's3'; readonly bucket: IBucket }

/** A choice of target. What the choice leaves open is made below the application. */
export type DeadLetters = (application: Construct) => DeadLetterTarget

export interface DeadLetterOptions {
  /**
   * Takes payloads that are too large for the queue, the stream or the topic.
   * @default a new encrypted bucket that stays when the stack is deleted, and whose objects expire after 30 days
   */
  readonly offloadBucket?: IBucket
}

const offloadBucketFor = (application: Construct, { offloadBucket }: DeadLetterOptions): IBucket =>
  offloadBucket ?? newBucket(application, 'DeadLetterPayloads', Duration.days(30))

/** The choices. Functions are granted to write there, and neither to read nor to delete. */
export const DeadLetters = {
  /**
   * A standard SQS queue; a FIFO queue is refused with a {@link ConfigurationError}. The default queue is encrypted,
   * keeps messages for 14 days, the most that SQS offers, and stays when the stack is deleted.
   *
   * @example
   * new StreamApplication(stack, 'Orders', { topology, entry, bind, deadLetters: DeadLetters.queue(operationsQueue) })
   */
  queue(queue?: IQueue, options: DeadLetterOptions = {}): DeadLetters {
    if (queue?.fifo) {
      throw new ConfigurationError(
        `dead letters cannot go to the FIFO queue ${queue.node.path}: give a standard queue, or leave it out to get one.`,
      )
    }
    return (application) => ({
      kind: 'sqs',
      queue: queue ?? newQueue(application),
      offloadBucket: offloadBucketFor(application, options),
    })
  },

  /**
   * A Kinesis stream, which must not be a source of the same application.
   *
   * @example
   * new StreamApplication(stack, 'Orders', { topology, entry, bind, deadLetters: DeadLetters.stream(failures) })
   */
  stream(stream: IStream, options: DeadLetterOptions = {}): DeadLetters {
    return (application) => ({ kind: 'kinesis', stream, offloadBucket: offloadBucketFor(application, options) })
  },

  /**
   * A topic of Kafka, which must not be a source of the same application. Every stage stands in the cluster's `network` then, unless its
   * settings say a VPC.
   *
   * @example
   * new StreamApplication(stack, 'Orders', { topology, entry, bind, deadLetters: DeadLetters.topic(cluster, 'orders-failed') })
   */
  topic(cluster: ClusterConnection, topic: string, options: DeadLetterOptions = {}): DeadLetters {
    const checked = checkedTopic(topic, cluster.identity)
    return (application) => ({
      kind: 'kafka',
      cluster,
      topic: checked,
      offloadBucket: offloadBucketFor(application, options),
    })
  },

  /**
   * An S3 bucket, one object per dead letter. The default bucket is encrypted, keeps its objects until they are deleted,
   * and stays when the stack is deleted.
   *
   * @example
   * new StreamApplication(stack, 'Orders', { topology, entry, bind, deadLetters: DeadLetters.bucket() })
   */
  bucket(bucket?: IBucket): DeadLetters {
    return (application) => ({ kind: 's3', bucket: bucket ?? newBucket(application, 'DeadLetters') })
  },
}

/** What a function is told of its dead letters. */
export function deadLetterBinding(target: DeadLetterTarget): DeadLetterBinding {
  switch (target.kind) {
    case 'sqs':
      return { kind: 'sqs', queueUrl: target.queue.queueUrl, offloadBucket: target.offloadBucket.bucketName }
    case 'kinesis':
      return { kind: 'kinesis', streamArn: target.stream.streamArn, offloadBucket: target.offloadBucket.bucketName }
    case 'kafka': {
      const { topic, cluster, offloadBucket } = target
      return { kind: 'kafka', topic, cluster: cluster.cluster, offloadBucket: offloadBucket.bucketName }
    }
    case 's3':
      return { kind: 's3', bucket: target.bucket.bucketName }
  }
}

/** A stage that read its own dead letters would never end. */
export function refuseDeadLettersAsSource(target: DeadLetterTarget, sources: readonly BoundName[]): void {
  const own = identityOf(target)
  const source = own && sources.find(({ resource }) => resource === own.identity)
  if (!source) return
  throw new ConfigurationError(
    `dead letters go to ${source.resource}, which is also source "${source.name}": they would come back for ever; give them a ${own.what} of their own.`,
  )
}

function identityOf(target: DeadLetterTarget): { readonly what: string; readonly identity: string } | undefined {
  switch (target.kind) {
    case 'kinesis':
      return { what: 'stream', identity: resourceIdentity(target.stream, target.stream.streamArn) }
    case 'sqs':
      return { what: 'queue', identity: resourceIdentity(target.queue, target.queue.queueArn) }
    case 'kafka':
      return { what: 'topic', identity: topicIdentity(target.cluster, target.topic) }
    case 's3':
      return undefined
  }
}

/** Grants a function to write dead letters, and no more. */
export function grantDeadLetters(target: DeadLetterTarget, grantee: IFunction): void {
  if (target.kind === 's3') {
    grantPutObject(target.bucket, grantee)
    return
  }
  grantPutObject(target.offloadBucket, grantee)
  if (target.kind === 'kinesis') {
    grantPutRecords(target.stream, grantee)
    return
  }
  if (target.kind === 'kafka') {
    target.cluster.grant(grantee, 'produce', target.topic)
    return
  }
  grantSendMessage(target.queue, grantee)
}

function grantPutObject(bucket: IBucket, target: IFunction): void {
  const actions = ['s3:PutObject']
  checkPlace(target, { resource: bucket, arn: bucket.bucketArn, actions })
  Grant.addToPrincipalOrResource({
    grantee: target,
    actions,
    resourceArns: [bucket.arnForObjects('*')],
    resource: bucket,
  })
  acknowledgeObjects(bucket, target)
  bucket.encryptionKey?.grant(target, 'kms:GenerateDataKey')
}

/** Each dead letter is an object of its own. Said at synth, when the name of a bucket of another stack has become what the finding says. */
function acknowledgeObjects(bucket: IBucket, target: IFunction): void {
  const scope = target.role ?? target
  scope.node.addValidation({
    validate: () => {
      const objects = flattened(Stack.of(scope).resolve(bucket.arnForObjects('*')))
      acknowledgeWildcard(scope, objects, 'Each dead letter is an object of its own, whose name is its identity.')
      return []
    },
  })
}

function newQueue(scope: Construct): Queue {
  const queue = new Queue(scope, 'DeadLetters', {
    encryption: QueueEncryption.SQS_MANAGED,
    enforceSSL: true,
    retentionPeriod: Duration.days(14),
    removalPolicy: RemovalPolicy.RETAIN,
  })
  acknowledge(queue, 'AwsSolutions-SQS3', 'It is the place of dead letters itself: nothing consumes it but a redrive.')
  return queue
}

function newBucket(scope: Construct, id: string, expiration?: Duration): Bucket {
  const bucket = new Bucket(scope, id, {
    encryption: BucketEncryption.S3_MANAGED,
    blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
    enforceSSL: true,
    removalPolicy: RemovalPolicy.RETAIN,
    ...(expiration ? { lifecycleRules: [{ expiration }] } : {}),
  })
  acknowledge(
    bucket,
    'AwsSolutions-S1',
    'An access log needs a bucket of its own, which only the account knows: who must have one brings a bucket that has.',
  )
  return bucket
}
