/** What a keyed stage reads, and is fed by: a log of its own. */
import type { IStream } from 'aws-cdk-lib/aws-kinesis'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { StreamPlace, TopicPlace } from '../plan/stage-bindings.ts'
import type { SourceConnection } from './bind.ts'
import type { ClusterConnection } from './kafka/cluster.ts'
import { retentionMsOf } from './keyed-resources.ts'
import { grantFeeding, grantLooking, grantPutRecords, KinesisSource } from './kinesis.ts'

export interface StageLog {
  /** As the stage itself reads it. */
  readonly source: SourceConnection
  /** As whoever writes to it is told of it. */
  readonly place: StreamPlace | (TopicPlace & { readonly partitions: number })
  /** The Kafka cluster that it is in. @default none */
  readonly cluster?: ClusterConnection
  /** For how long it keeps records, in ms; undefined where that is not known at synth. Asked at synth, when nothing changes any more. */
  retentionMs(): number | undefined
  /** Grants what a stage takes that feeds it: it writes frames, and tells its marks to every open partition. */
  grantFeeding(target: IFunction): void
  /** Grants what the announcer takes: it looks at the partitions and writes to them. */
  grantAnnouncing(target: IFunction): void
}

/** A Kinesis stream as the log of a keyed stage. */
export function streamLog(stream: IStream): StageLog {
  return {
    source: new KinesisSource(stream),
    place: { streamArn: stream.streamArn },
    retentionMs: () => retentionMsOf(stream),
    grantFeeding: (target) => grantFeeding(stream, target),
    grantAnnouncing(target) {
      grantLooking(stream, target)
      grantPutRecords(stream, target)
    },
  }
}
