/** The three demo applications on AWS: one stream in, one stage, the output streams. */
import { CfnParameter, Duration, Stack, type StackProps } from 'aws-cdk-lib'
import { Stream, StreamEncryption, StreamMode } from 'aws-cdk-lib/aws-kinesis'
import type { Construct } from 'constructs'
import { enrichedOrders, enrichmentApp, orders } from '../../functions/enrichment/topology.ts'
import { measuredRides, partitionsApp, rides } from '../../functions/partitions/topology.ts'
import { payments, paymentsApp, paymentsRejected, paymentsValidated } from '../../functions/payments/topology.ts'
import { bind, KinesisSink, KinesisSource, StreamApplication } from '../../lib/cdk/index.ts'

const retention = { encryption: StreamEncryption.MANAGED, retentionPeriod: Duration.days(7) }

/** A stream of a fixed number of shards: what bounds the parallelism of its stage. */
const sharded = (scope: Construct, id: string, shardCount: number): Stream =>
  new Stream(scope, id, { ...retention, streamMode: StreamMode.PROVISIONED, shardCount })

const onDemand = (scope: Construct, id: string): Stream =>
  new Stream(scope, id, { ...retention, streamMode: StreamMode.ON_DEMAND })

/** 24 shards, so at most 24 invocations at once. Lambda itself gives each shard its environment. */
export class PartitionsStack extends Stack {
  readonly application: StreamApplication

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, props)
    this.application = new StreamApplication(this, 'Partitions', {
      topology: partitionsApp,
      entry: 'functions/partitions/handler.ts',
      bind: [
        bind(rides, new KinesisSource(sharded(this, 'Rides', 24))),
        bind(measuredRides, new KinesisSink(onDemand(this, 'Measured'))),
      ],
    })
  }
}

/** 12 shards with a parallelization factor of 2, so at most 24 invocations at once; both can be changed while the stream runs. */
export class PaymentsStack extends Stack {
  readonly application: StreamApplication

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, props)
    this.application = new StreamApplication(this, 'Payments', {
      topology: paymentsApp,
      entry: 'functions/payments/handler.ts',
      bind: [
        bind(payments, new KinesisSource(sharded(this, 'Incoming', 12))),
        bind(paymentsValidated, new KinesisSink(onDemand(this, 'Validated'))),
        bind(paymentsRejected, new KinesisSink(onDemand(this, 'Rejected'))),
      ],
      stages: { payments: { parallelizationFactor: 2 } },
    })
  }
}

/** Deployed with the address of the reference service: `cdk deploy Enrichment --parameters ReferenceUrl=https://...`. */
export class EnrichmentStack extends Stack {
  readonly application: StreamApplication

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, props)
    const referenceUrl = new CfnParameter(this, 'ReferenceUrl', {
      description: 'Address of the service that knows prices and customers',
      allowedPattern: '^https?://.+',
    })
    this.application = new StreamApplication(this, 'Enrichment', {
      topology: enrichmentApp,
      entry: 'functions/enrichment/handler.ts',
      bind: [
        bind(orders, new KinesisSource(onDemand(this, 'Orders'))),
        bind(enrichedOrders, new KinesisSink(onDemand(this, 'Enriched'))),
      ],
      stages: { orders: { environment: { REFERENCE_URL: referenceUrl.valueAsString } } },
    })
  }
}
