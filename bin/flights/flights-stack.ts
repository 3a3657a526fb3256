/** The flights application on AWS: one stream in, two stages, four streams out; the state of each airport is in a table. */
import { Duration, Stack, type StackProps } from 'aws-cdk-lib'
import { Stream, StreamEncryption, StreamMode } from 'aws-cdk-lib/aws-kinesis'
import type { Construct } from 'constructs'
import {
  flights,
  flightsApp,
  flightsClean,
  flightsRejected,
  hourlyDelays,
  lateFlights,
} from '../../functions/flights/topology.ts'
import { bind, KinesisSink, KinesisSource, StreamApplication } from '../../lib/cdk/index.ts'

export class FlightsStack extends Stack {
  readonly application: StreamApplication

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, props)
    const stream = (streamId: string): Stream =>
      new Stream(this, streamId, {
        streamMode: StreamMode.ON_DEMAND,
        encryption: StreamEncryption.MANAGED,
        retentionPeriod: Duration.days(7),
      })
    this.application = new StreamApplication(this, 'Flights', {
      topology: flightsApp,
      entry: 'functions/flights/handler.ts',
      bind: [
        bind(flights, new KinesisSource(stream('Reports'))),
        bind(flightsClean, new KinesisSink(stream('Clean'))),
        bind(flightsRejected, new KinesisSink(stream('Rejected'))),
        bind(hourlyDelays, new KinesisSink(stream('HourlyDelays'))),
        bind(lateFlights, new KinesisSink(stream('LateFlights'))),
      ],
    })
  }
}
