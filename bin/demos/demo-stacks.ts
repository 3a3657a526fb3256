/** The demo applications on AWS: streams in, the stages, the output streams; those with state have tables beside. */
import { CfnParameter, Duration, Stack, type StackProps } from 'aws-cdk-lib'
import { StreamViewType } from 'aws-cdk-lib/aws-dynamodb'
import { Stream, StreamEncryption, StreamMode } from 'aws-cdk-lib/aws-kinesis'
import type { Construct } from 'constructs'
import { bookingRequests, bookingsApp, hotelBookings, lateBookings } from '../../functions/bookings/topology.ts'
import {
  boundedStateApp,
  foundByEventTime,
  foundByProcessingTime,
  reports,
} from '../../functions/bounded-state/topology.ts'
import {
  customers,
  orders as joinedOrders,
  joinTableApp,
  namedOrders,
} from '../../functions/classics/join-table/topology.ts'
import { logins, recentEventsApp, recentLogins } from '../../functions/classics/recent-events/topology.ts'
import { pageViews, runningCounterApp, views } from '../../functions/classics/running-counter/topology.ts'
import {
  clicks,
  refusedClicks,
  sessionMachineApp,
  transitions,
} from '../../functions/classics/session-machine/topology.ts'
import { customerTotals, purchases, userAggregateApp } from '../../functions/classics/user-aggregate/topology.ts'
import { driverEvents, driverStatus, driversApp } from '../../functions/drivers/topology.ts'
import { enrichedOrders, enrichmentApp, orders } from '../../functions/enrichment/topology.ts'
import { mapStateApp, movements, stockLevels } from '../../functions/map-state/topology.ts'
import { measuredRides, partitionsApp, rides } from '../../functions/partitions/topology.ts'
import { payments, paymentsApp, paymentsRejected, paymentsValidated } from '../../functions/payments/topology.ts'
import { bookings, tableFirstApp } from '../../functions/table-first/topology.ts'
import {
  type Bound,
  bind,
  KinesisSink,
  KinesisSource,
  type StageProps,
  StreamApplication,
} from '../../lib/cdk/index.ts'
import type { Topology } from '../../lib/index.ts'

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

/** Two streams and a table: what is known of each driver is in the table of the stage "by-driver". */
export class DriversStack extends Stack {
  readonly application: StreamApplication

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, props)
    this.application = new StreamApplication(this, 'Drivers', {
      topology: driversApp,
      entry: 'functions/drivers/handler.ts',
      bind: [
        bind(driverEvents, new KinesisSource(onDemand(this, 'Events'))),
        bind(driverStatus, new KinesisSink(onDemand(this, 'Status'))),
      ],
    })
  }
}

export class BoundedStateStack extends Stack {
  readonly application: StreamApplication

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, props)
    this.application = new StreamApplication(this, 'BoundedState', {
      topology: boundedStateApp,
      entry: 'functions/bounded-state/handler.ts',
      bind: [
        bind(reports, new KinesisSource(onDemand(this, 'Reports'))),
        bind(foundByEventTime, new KinesisSink(onDemand(this, 'ByEventTime'))),
        bind(foundByProcessingTime, new KinesisSink(onDemand(this, 'ByProcessingTime'))),
      ],
    })
  }
}

export class MapStateStack extends Stack {
  readonly application: StreamApplication

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, props)
    this.application = new StreamApplication(this, 'MapState', {
      topology: mapStateApp,
      entry: 'functions/map-state/handler.ts',
      bind: [
        bind(movements, new KinesisSource(onDemand(this, 'Movements'))),
        bind(stockLevels, new KinesisSink(onDemand(this, 'Levels'))),
      ],
    })
  }
}

/** No output stream: others read the table, and its stream of changes, which is switched on here. */
export class TableFirstStack extends Stack {
  readonly application: StreamApplication

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, props)
    this.application = new StreamApplication(this, 'TableFirst', {
      topology: tableFirstApp,
      entry: 'functions/table-first/handler.ts',
      bind: [bind(bookings, new KinesisSource(onDemand(this, 'Bookings')))],
      stages: { 'by-account': { table: { dynamoStream: StreamViewType.NEW_AND_OLD_IMAGES } } },
    })
  }
}

export interface BookingsStackProps extends StackProps {
  /** The file with the handler. @default functions/bookings/handler.ts */
  readonly entry?: string
  /** What to tune of its stages. @default nothing */
  readonly stages?: Readonly<Record<string, StageProps>>
}

/** Windows: results, and what came too late for them. */
export class BookingsStack extends Stack {
  readonly application: StreamApplication

  constructor(scope: Construct, id: string, props?: BookingsStackProps) {
    super(scope, id, props)
    this.application = new StreamApplication(this, 'Bookings', {
      topology: bookingsApp,
      entry: props?.entry ?? 'functions/bookings/handler.ts',
      bind: [
        bind(bookingRequests, new KinesisSource(onDemand(this, 'Requests'))),
        bind(hotelBookings, new KinesisSink(onDemand(this, 'PerHotel'))),
        bind(lateBookings, new KinesisSink(onDemand(this, 'Late'))),
      ],
      stages: props?.stages ?? {},
    })
  }
}

/** The five classic uses of keyed state, side by side. */
export class ClassicsStack extends Stack {
  readonly applications: readonly StreamApplication[]

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, props)
    const source = (name: string) => new KinesisSource(onDemand(this, name))
    const sink = (name: string) => new KinesisSink(onDemand(this, name))
    const use = (name: string, folder: string, topology: Topology, ...bound: readonly Bound[]) =>
      new StreamApplication(this, name, { topology, entry: `functions/classics/${folder}/handler.ts`, bind: bound })
    this.applications = [
      use(
        'RunningCounter',
        'running-counter',
        runningCounterApp,
        bind(views, source('Views')),
        bind(pageViews, sink('PageViews')),
      ),
      use(
        'RecentEvents',
        'recent-events',
        recentEventsApp,
        bind(logins, source('Logins')),
        bind(recentLogins, sink('Recent')),
      ),
      use(
        ...(['SessionMachine', 'session-machine', sessionMachineApp] as const),
        ...[
          bind(clicks, source('Clicks')),
          bind(transitions, sink('Transitions')),
          bind(refusedClicks, sink('Refused')),
        ],
      ),
      use(
        'UserAggregate',
        'user-aggregate',
        userAggregateApp,
        bind(purchases, source('Purchases')),
        bind(customerTotals, sink('Totals')),
      ),
      use(
        ...(['JoinTable', 'join-table', joinTableApp] as const),
        ...[
          bind(customers, source('Customers')),
          bind(joinedOrders, source('Orders')),
          bind(namedOrders, sink('NamedOrders')),
        ],
      ),
    ]
  }
}
