/** SQS queues as sources and sinks. */
import { Annotations } from 'aws-cdk-lib'
import { Alias, EventSourceMapping, type EventSourceMappingOptions, type IFunction } from 'aws-cdk-lib/aws-lambda'
import type { IQueue } from 'aws-cdk-lib/aws-sqs'
import type { Construct } from 'constructs'
import { ConfigurationError } from '../core/errors.ts'
import type { SinkBinding, SourceBinding } from '../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { MappingSettings, SinkConnection, SourceConnection } from './bind.ts'
import { checkPlace } from './place.ts'
import { refuseAtSynth, renderedProperties } from './rendered.ts'
import { resourceIdentity } from './resource-identity.ts'

export interface SqsSourceOptions {
  /** The most invocations at a time, 2 to 1,000. @default what the account's concurrency leaves */
  readonly maxConcurrency?: number
  /** Which messages are read, as `FilterCriteria.filter` makes them. Lambda deletes those that match none. @default all */
  readonly filters?: EventSourceMappingOptions['filters']
}

const readActions = ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes']
/** Lambda takes at most so many messages of a FIFO queue, and of a standard one without a batching window. */
const smallBatch = 10
/** @see https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html */
const timeoutsOfVisibility = 6
const fewestReceives = 5

/**
 * A source that reads an SQS queue. A standard queue has no order and no partitions, a FIFO queue order by group; neither can
 * feed a keyed stage, which is refused at synth, and so is a visibility timeout below six times the function's timeout and the
 * batching window, as AWS advises. Of a FIFO queue a batch has at most 10 messages, whatever `batchSize` is, and no window.
 *
 * Grants: to receive and delete messages of that queue, and to decrypt with its key where it has one of its own. A queue in
 * another region is refused; one in another account needs a policy of its own there, which synth names.
 *
 * @example
 * bind(orders, new SqsSource(queue, { maxConcurrency: 20 }))
 */
export class SqsSource implements SourceConnection {
  readonly type = 'source'
  readonly resource: string
  readonly queue: IQueue
  readonly feedsNoKeyedStage =
    'it is an SQS queue, which has no partitions that event time and progress could be kept by, and takes a repeat of a message for a new one: send its records to a Kinesis stream in an application of their own, and bind the source to that'
  readonly #options: SqsSourceOptions

  /** Throws a {@link ConfigurationError} for a `maxConcurrency` that Lambda does not take. */
  constructor(queue: IQueue, options: SqsSourceOptions = {}) {
    this.queue = queue
    this.resource = resourceIdentity(queue, queue.queueArn)
    this.#options = options
    const { maxConcurrency = 2 } = options
    if (Number.isInteger(maxConcurrency) && maxConcurrency >= 2 && maxConcurrency <= 1_000) return
    throw new ConfigurationError(
      `the source on ${this.resource} has the maxConcurrency ${maxConcurrency}: give a whole number from 2 to 1,000, or leave it out.`,
    )
  }

  bindingFor(name: string): SourceBinding {
    return { name, kind: 'sqs', queueArn: this.queue.queueArn }
  }

  connect(scope: Construct, target: IFunction, settings: MappingSettings): EventSourceMapping {
    const { queue } = this
    checkPlace(target, { resource: queue, arn: queue.queueArn, actions: readActions })
    queue.grant(target, ...readActions)
    queue.encryptionMasterKey?.grant(target, 'kms:Decrypt')
    this.#checkSettings(settings)
    const windowSeconds = queue.fifo ? 0 : settings.maxBatchingWindow.toSeconds()
    refuseAtSynth(scope, queue, (properties) => this.#visibilityFindings(properties, target, windowSeconds))
    this.#hint(scope)
    const { enabled, reportBatchItemFailures, maxBatchingWindow } = settings
    return new EventSourceMapping(scope, 'Mapping', {
      target,
      eventSourceArn: queue.queueArn,
      enabled,
      reportBatchItemFailures,
      batchSize: queue.fifo ? Math.min(settings.batchSize, smallBatch) : settings.batchSize,
      ...(queue.fifo ? {} : { maxBatchingWindow }),
      ...this.#options,
    })
  }

  #checkSettings({ parallelizationFactor, batchSize, maxBatchingWindow }: MappingSettings): void {
    if (parallelizationFactor > 1) {
      throw new ConfigurationError(
        `the source on ${this.resource} has the parallelization factor ${parallelizationFactor}, which Lambda has for shards only: leave it at 1, and say maxConcurrency to the SqsSource.`,
      )
    }
    if (this.queue.fifo || batchSize <= smallBatch || maxBatchingWindow.toSeconds() > 0) return
    throw new ConfigurationError(
      `the source on ${this.resource} has batchSize ${batchSize} and no batching window, and Lambda takes more than ${smallBatch} messages of a queue only with one of a second or more: set maxBatchingWindow to 1 s, or batchSize to ${smallBatch}.`,
    )
  }

  #visibilityFindings(
    { VisibilityTimeout = 30 }: { readonly VisibilityTimeout?: unknown },
    target: IFunction,
    windowSeconds: number,
  ) {
    const { Timeout = 3 } = renderedProperties(functionOf(target)) ?? {}
    if (typeof VisibilityTimeout !== 'number' || typeof Timeout !== 'number') return []
    const advised = timeoutsOfVisibility * Timeout + windowSeconds
    if (VisibilityTimeout >= advised) return []
    return [
      `the queue ${this.resource} has a visibility timeout of ${VisibilityTimeout} s, and its function a timeout of ${Timeout} s: messages would come again while they are still worked on or wait for a throttled function; set visibilityTimeout to ${advised} s or more (six times the timeout, and the batching window), or lower the stage's \`timeout\`.`,
    ]
  }

  /** What the user should know of a queue that this application declares. */
  #hint(scope: Construct): void {
    const properties = renderedProperties(this.queue)
    if (properties === undefined) return
    const { maxReceiveCount } = Object(properties.RedrivePolicy)
    if (maxReceiveCount === undefined) {
      Annotations.of(scope).addInfoV2(
        'millrace:no-redrive-policy',
        `the queue ${this.resource} has no dead-letter queue of its own: a message that kills its function takes its batch with it until SQS drops it when its retention ends; give the queue a deadLetterQueue with a maxReceiveCount of ${fewestReceives} or more.`,
      )
    } else if (maxReceiveCount < fewestReceives) {
      Annotations.of(scope).addWarningV2(
        'millrace:few-receives',
        `the queue ${this.resource} gives a message up after ${maxReceiveCount} receives, and a throttled function uses up some: set maxReceiveCount to ${fewestReceives} or more.`,
      )
    }
  }
}

const functionOf = (target: IFunction): IFunction => (target instanceof Alias ? target.version.lambda : target)

export interface SqsSinkOptions {
  /**
   * 'per-key' keeps what is sent of one key in order, one unacknowledged at a time, although a standard queue promises no order;
   * 'none' fills every request, which pays where few keys have many outputs. A FIFO queue refuses 'none'.
   * @default 'per-key'
   */
  readonly ordering?: 'per-key' | 'none'
}

/**
 * A sink that sends each value as a JSON message, which carries the identity of its output as the attribute `millrace-output`. A
 * FIFO queue needs a sink with a key, which becomes the group.
 *
 * Grants: SendMessage on that queue, and use of its key where it has one of its own. A queue in another region is refused; one in
 * another account needs a policy of its own there, which synth names.
 *
 * @example
 * bind(paidOrders, new SqsSink(queue))
 */
export class SqsSink implements SinkConnection {
  readonly type = 'sink'
  readonly resource: string
  readonly queue: IQueue

  readonly #ordering: 'per-key' | 'none'

  /** Throws a {@link ConfigurationError} for a FIFO queue without order. */
  constructor(queue: IQueue, { ordering = 'per-key' }: SqsSinkOptions = {}) {
    this.queue = queue
    this.resource = resourceIdentity(queue, queue.queueArn)
    this.#ordering = ordering
    if (!queue.fifo || ordering === 'per-key') return
    throw new ConfigurationError(
      `the sink on ${this.resource} has the ordering 'none', and a FIFO queue is there to keep order: leave \`ordering\` out, or bind a standard queue.`,
    )
  }

  bindingFor({ name, key }: SinkDeclaration): SinkBinding {
    const { queueUrl, fifo } = this.queue
    if (fifo && !key) {
      throw new ConfigurationError(
        `the sink "${name}" is bound to the FIFO queue ${this.resource} and has no key function, whose text would be the group of each message: declare it with \`key\`, or bind a standard queue.`,
      )
    }
    const { MaximumMessageSize: maxMessageBytes } = renderedProperties(this.queue) ?? {}
    const ordering = this.#ordering
    return {
      name,
      kind: 'sqs',
      queueUrl,
      fifo,
      ordering,
      ...(typeof maxMessageBytes === 'number' ? { maxMessageBytes } : {}),
    }
  }

  connect(target: IFunction): void {
    grantSendMessage(this.queue, target)
  }
}

/** What sending to a queue takes, and no more. */
export function grantSendMessage(queue: IQueue, target: IFunction): void {
  const actions = ['sqs:SendMessage']
  checkPlace(target, { resource: queue, arn: queue.queueArn, actions })
  queue.grant(target, ...actions)
  // SQS makes a data key for each message and checks it by decrypting.
  queue.encryptionMasterKey?.grant(target, 'kms:GenerateDataKey', 'kms:Decrypt')
}
