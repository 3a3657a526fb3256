/** Firehose streams as sinks. */
import { Stack, Token, TokenComparison } from 'aws-cdk-lib'
import type { IDeliveryStream } from 'aws-cdk-lib/aws-kinesisfirehose'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { ConfigurationError } from '../core/errors.ts'
import type { SinkBinding } from '../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { SinkConnection } from './bind.ts'
import { checkPlace } from './place.ts'
import { type RenderedProperties, refuseAtSynth } from './rendered.ts'
import { resourceIdentity } from './resource-identity.ts'

export interface FirehoseSinkOptions {
  /** What stands behind each record, so that what Firehose joins can be taken apart. @default a new line */
  readonly delimiter?: string
  /**
   * 'per-key' keeps what is sent of one key in order, one unacknowledged at a time, although Firehose promises no order; 'none' fills
   * every request, which pays where few keys have many outputs.
   * @default 'per-key'
   */
  readonly ordering?: 'per-key' | 'none'
}

/**
 * A sink that puts each value as JSON into a Firehose stream. A record of Firehose has no place for the identity of its output:
 * whoever must tell repeats apart puts one into the value.
 *
 * Grants: PutRecordBatch on that stream. Its KMS key, where it has one, is used by Firehose itself, so the function needs none. A
 * stream in another region or account is refused, as Firehose knows streams by their name; one that reads a Kinesis stream is
 * refused at synth.
 *
 * @example
 * bind(paidOrders, new FirehoseSink(deliveryStream))
 */
export class FirehoseSink implements SinkConnection {
  readonly type = 'sink'
  readonly resource: string
  readonly deliveryStream: IDeliveryStream
  readonly #options: Required<FirehoseSinkOptions>

  constructor(deliveryStream: IDeliveryStream, options: FirehoseSinkOptions = {}) {
    this.deliveryStream = deliveryStream
    this.resource = resourceIdentity(deliveryStream, deliveryStream.deliveryStreamArn)
    this.#options = { delimiter: options.delimiter ?? '\n', ordering: options.ordering ?? 'per-key' }
  }

  bindingFor({ name }: SinkDeclaration): SinkBinding {
    const { deliveryStreamName } = this.deliveryStream
    return { name, kind: 'firehose', deliveryStreamName, ...this.#options }
  }

  connect(target: IFunction): void {
    const { deliveryStream } = this
    const actions = ['firehose:PutRecordBatch']
    const arn = deliveryStream.deliveryStreamArn
    checkPlace(target, { resource: deliveryStream, arn, actions })
    this.#refuseOtherAccount(target, arn)
    deliveryStream.grant(target, ...actions)
    refuseAtSynth(target, deliveryStream, (properties) => this.#findings(properties))
  }

  #refuseOtherAccount(target: IFunction, arn: string): void {
    const account = Token.isUnresolved(arn) ? this.deliveryStream.env.account : (arn.split(':')[4] ?? '')
    const own = Stack.of(target).account
    if (Token.compareStrings(account, own) !== TokenComparison.DIFFERENT) return
    throw new ConfigurationError(
      `${this.resource} is in the account ${account}, and the function ${target.node.path} in ${own}: Firehose takes records for the streams of one's own account only; bind a stream there.`,
    )
  }

  #findings({ DeliveryStreamType = 'DirectPut' }: RenderedProperties): string[] {
    if (DeliveryStreamType === 'DirectPut') return []
    return [
      `the Firehose stream ${this.resource} has the type ${DeliveryStreamType}, so that it takes no records but those of its own source: bind a stream of the type DirectPut, or write to its source.`,
    ]
  }
}
