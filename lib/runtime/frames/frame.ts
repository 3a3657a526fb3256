/**
 * Frames: what one record of a stream between stages carries for one slot. docs/frames.md has the rules and the bytes.
 */
import type { RecordHeader } from '../../core/record.ts'
import type { Interval, Position } from './position.ts'

/** A partition of a stage or source that feeds a keyed stage. */
export interface Upstream {
  /** The declared name of the source, or the name of the stage. */
  readonly name: string
  /** Kinesis shard id, or the number of a Kafka partition. */
  readonly partition: string
}

/** Names one record of a source for ever. */
export interface Origin {
  readonly source: string
  readonly partition: string
  /** Kinesis sequence number or Kafka offset, in decimal digits. */
  readonly position: string
  /** Place inside a KPL aggregate, from 0. */
  readonly subPosition: number
  /** When the broker took the record in, in ms since 1970 UTC. */
  readonly arrivalTimeMs: number
}

/** One output of the stage before, on its way to a key of this one. */
export interface FrameRecord {
  readonly position: Position
  /** The keyed input that the record belongs to. */
  readonly side: string
  readonly key: string
  /** The record's own mark in ms since 1970 UTC; -Infinity where nothing came before it. */
  readonly ownMarkMs: number
  /** In ms since 1970 UTC. */
  readonly eventTimeMs: number
  /** The value as encoded, JSON unless the edge says otherwise. It is carried, never read. */
  readonly value: Uint8Array
  /** The source record that the output comes from in the end. */
  readonly origin: Origin
  /** The identity under which a dead letter was sent again; undefined for all other records. */
  readonly redrive: string | undefined
  /** Those of the source record, in order, never an empty list. @default it has none */
  readonly headers?: readonly RecordHeader[] | undefined
}

/** A record on its way into a frame: a value of JSON stays text until the frame's bytes are written. */
export interface OutgoingRecord extends Omit<FrameRecord, 'value'> {
  readonly value: Uint8Array | string
}

/** A record as a stage reads it: its value is the text that its bytes are in UTF-8, bytes only where they are none. */
export type IncomingRecord = OutgoingRecord

/** Records of one slot, in the order of their positions. */
export interface Frame<R extends IncomingRecord = FrameRecord> {
  readonly kind: 'frame'
  readonly upstream: Upstream
  readonly slot: number
  /** The version of what the values mean, as the edge between the two stages declares it. */
  readonly schemaVersion: number
  /** The upstream's mark when its batch began, in ms since 1970 UTC; -Infinity where there was none. */
  readonly markMs: number
  /** Of each interval: but for these records nothing was ever sent to the slot there. Ascending, apart, never empty. */
  readonly claims: readonly Interval[]
  readonly records: readonly R[]
}

/** What a control frame says of one upstream. */
export interface UpstreamNews {
  readonly upstream: Upstream
  /** 'idle' says that it has never had a record and takes no part in the minimum. */
  readonly state: 'open' | 'idle' | 'closed'
  /** In ms since 1970 UTC; -Infinity where there is none. */
  readonly markMs: number
  /** With a close: the last position that was sent to each slot. Empty otherwise. */
  readonly lastSent: ReadonlyMap<number, Position>
}

/** News of upstreams, applied as a whole, from the announcer or from a stage that tells its mark. */
export interface ControlFrame {
  readonly kind: 'control'
  readonly from: 'announcer' | 'stage'
  /** The slot by which the frame finds its shard; it concerns the shard's other slots as much. */
  readonly slot: number
  readonly news: readonly UpstreamNews[]
}

/**
 * Dead letters of one slot that are sent again. The frame has no upstream, claim or mark: no memory drops its records as
 * read, and the key remembers which identities it took.
 */
export interface RedriveFrame<R extends IncomingRecord = FrameRecord> {
  readonly kind: 'redrive'
  readonly slot: number
  readonly schemaVersion: number
  /** The generation that the records were given up in: a partition of a later one drops them. @default 1 */
  readonly generation?: number
  /** Each has its redrive identity. Their positions ascend, say their order in the frame, and nothing else. */
  readonly records: readonly R[]
}

/** A frame as bytes, with the slot that says where it goes. */
export interface EncodedFrame {
  readonly slot: number
  readonly bytes: Uint8Array
}
