/** Puts records into shards of deployed streams, and reads streams back. */
import { ListShardsCommand, PutRecordsCommand } from '@aws-sdk/client-kinesis'
import type { SentBooking } from '../../bin/demos/bookings/rounds.ts'
import type { StandInClients } from '../../bin/deploy/clients.ts'
import { readSourceLog, type SourceLog } from '../../bin/flights/source-log.ts'
import { Booking } from '../../functions/bookings/topology.ts'
import { invariant } from '../../lib/core/errors.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'

/** A record for a shard, counted from 0; without one its key decides. */
export interface ToSend {
  readonly data: Buffer
  readonly partitionKey: string
  readonly shard?: number
}

const recordsPerPut = 500

export class DeployedStream {
  readonly name: string
  readonly #kinesis: StandInClients['kinesis']
  readonly #hashKeys: readonly string[]

  private constructor(kinesis: StandInClients['kinesis'], name: string, hashKeys: readonly string[]) {
    this.name = name
    this.#kinesis = kinesis
    this.#hashKeys = hashKeys
  }

  static async open({ kinesis }: StandInClients, name: string): Promise<DeployedStream> {
    const { Shards = [] } = await kinesis.send(new ListShardsCommand({ StreamName: name }))
    return new DeployedStream(
      kinesis,
      name,
      Shards.map(({ HashKeyRange }) => String(HashKeyRange?.StartingHashKey)),
    )
  }

  /** The stream that a sink of a stage writes to. */
  static ofSink(clients: StandInClients, { sinks }: StageBindings, name: string): Promise<DeployedStream> {
    const sink = sinks.find((one) => one.name === name)
    invariant(sink && 'streamArn' in sink, `the stage has no sink "${name}" that is a stream`)
    return DeployedStream.open(clients, sink.streamArn.slice(sink.streamArn.lastIndexOf('/') + 1))
  }

  get shards(): number {
    return this.#hashKeys.length
  }

  /** Resolves with the sequence number of each record. */
  async put(records: readonly ToSend[]): Promise<readonly string[]> {
    const numbers: string[] = []
    for (let from = 0; from < records.length; from += recordsPerPut) {
      const part = records.slice(from, from + recordsPerPut)
      const { Records = [], FailedRecordCount } = await this.#kinesis.send(
        new PutRecordsCommand({
          StreamName: this.name,
          Records: part.map(({ data, partitionKey, shard }) => ({
            Data: data,
            PartitionKey: partitionKey,
            ExplicitHashKey: shard === undefined ? undefined : this.#hashKeys[shard],
          })),
        }),
      )
      expect(FailedRecordCount ?? 0).toBe(0)
      numbers.push(...Records.map(({ SequenceNumber = '' }) => SequenceNumber))
    }
    return numbers
  }

  putBookings(sent: readonly SentBooking[]): Promise<readonly string[]> {
    return this.put(
      sent.map(({ booking, shard }) => {
        return { data: Buffer.from(JSON.stringify(booking)), partitionKey: booking.hotelId, shard }
      }),
    )
  }

  /** What the stream holds, by shard. */
  log(): Promise<SourceLog> {
    return readSourceLog(this.#kinesis, this.name)
  }

  async values<T>(): Promise<readonly T[]> {
    return (await this.log()).flat().map((data) => JSON.parse(Buffer.from(data).toString()))
  }

  /** The bookings that the stream holds, each with its shard; what is none is left out. */
  async bookings(): Promise<readonly SentBooking[]> {
    return (await this.log()).flatMap((shard, index) => shard.flatMap((data) => bookingIn(data, index)))
  }
}

function bookingIn(data: Uint8Array, shard: number): readonly SentBooking[] {
  try {
    return [{ booking: Booking.parse(JSON.parse(Buffer.from(data).toString())), shard }]
  } catch {
    return []
  }
}
