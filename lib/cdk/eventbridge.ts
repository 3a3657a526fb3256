/** EventBridge buses as sinks. */
import { Token } from 'aws-cdk-lib'
import type { IEventBus } from 'aws-cdk-lib/aws-events'
import { Grant } from 'aws-cdk-lib/aws-iam'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { ConfigurationError } from '../core/errors.ts'
import type { SinkBinding } from '../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { SinkConnection } from './bind.ts'
import { checkPlace } from './place.ts'
import { resourceIdentity } from './resource-identity.ts'

export interface EventBridgeSinkOptions {
  /** The `source` of every event, 1 to 256 characters. It must not begin with "aws.", which is for AWS's own. */
  readonly source: string
  /** The `detail-type` of every event, 1 to 128 characters. @default the name of the sink */
  readonly detailType?: string
  /**
   * 'per-key' keeps what is sent of one key in order, one unacknowledged at a time, although EventBridge promises no order; 'none'
   * fills every request, which pays where few keys have many outputs.
   * @default 'per-key'
   */
  readonly ordering?: 'per-key' | 'none'
}

/**
 * A sink that puts each value, an object, on a bus as the detail of an event. The event's only resource is the identity of its
 * output, and its time is the event time of the record that the output was made of.
 *
 * Grants: PutEvents on that bus. Its KMS key, where it has one, is used by EventBridge itself, so the function needs none. A bus in
 * another region is refused; one in another account needs a policy of its own there, which synth names.
 *
 * @example
 * bind(paidOrders, new EventBridgeSink(bus, { source: 'shop.orders', detailType: 'order-paid' }))
 */
export class EventBridgeSink implements SinkConnection {
  readonly type = 'sink'
  readonly resource: string
  readonly bus: IEventBus
  readonly #options: EventBridgeSinkOptions

  /** Throws a {@link ConfigurationError} for a source or a detail type that EventBridge does not take. */
  constructor(bus: IEventBus, options: EventBridgeSinkOptions) {
    this.bus = bus
    this.resource = resourceIdentity(bus, bus.eventBusArn)
    this.#options = options
    const { source, detailType = source } = options
    this.#check('source', source, 256)
    this.#check('detailType', detailType, 128)
    if (!source.startsWith('aws.')) return
    throw new ConfigurationError(
      `the sink on ${this.resource} has the source "${source}": EventBridge keeps "aws." for the services of AWS; give a name of your own, such as "shop.orders".`,
    )
  }

  bindingFor({ name }: SinkDeclaration): SinkBinding {
    const { source, detailType = name, ordering = 'per-key' } = this.#options
    // Not the name: a bus of the same name in the function's own account would be taken for it.
    return { name, kind: 'eventbridge', eventBusName: this.bus.eventBusArn, source, detailType, ordering }
  }

  connect(target: IFunction): void {
    const actions = ['events:PutEvents']
    checkPlace(target, { resource: this.bus, arn: this.bus.eventBusArn, actions })
    Grant.addToPrincipal({ grantee: target, actions, resourceArns: [this.bus.eventBusArn] })
  }

  #check(option: string, value: string, most: number): void {
    if (Token.isUnresolved(value) || (typeof value === 'string' && value.length > 0 && value.length <= most)) return
    throw new ConfigurationError(
      `the sink on ${this.resource} has the ${option} ${JSON.stringify(value)}: EventBridge takes 1 to ${most} characters there.`,
    )
  }
}
