import {
  EventSourceMapping,
  kinesisFormat,
  type MappingSettings,
  type SourceFormat,
} from '../../../lib/emulator/event-source-mapping/index.ts'
import { MemoryCheckpoints, MemoryDestination, MemoryStream, ScriptedInvoker } from './memory-ports.ts'
import { VirtualClock } from './virtual-clock.ts'

export const streamArn = 'arn:aws:kinesis:us-east-1:000000000000:stream/orders'
export const functionArn = 'arn:aws:lambda:us-east-1:000000000000:function:orders'
export const s0 = 'shardId-000000000000'

/** A mapping with all its ports in memory and one shard. */
export class MappingWorld {
  readonly clock = new VirtualClock()
  readonly stream = new MemoryStream(this.clock)
  readonly invoker = new ScriptedInvoker(this.clock)
  readonly checkpoints = new MemoryCheckpoints()
  readonly destination = new MemoryDestination()
  readonly settings: MappingSettings
  readonly #format: SourceFormat
  mapping: EventSourceMapping

  constructor(settings: Partial<MappingSettings> = {}, format: SourceFormat = kinesisFormat({ streamArn })) {
    this.#format = format
    this.settings = {
      uuid: 'e5a1c0de-0000-4000-8000-000000000001',
      functionArn,
      startingPosition: 'TRIM_HORIZON',
      functionResponseTypes: ['ReportBatchItemFailures'],
      ...settings,
    }
    this.stream.addShard(s0)
    this.mapping = this.create()
  }

  /** Another mapping on the same ports: a restart. */
  create(): EventSourceMapping {
    return new EventSourceMapping({
      settings: this.settings,
      format: this.#format,
      reader: this.stream,
      invoker: this.invoker,
      checkpoints: this.checkpoints,
      clock: this.clock,
      onFailure: this.destination,
    })
  }

  /** Starts the mapping and lets time pass. */
  async run(ms = 1_000): Promise<void> {
    await this.mapping.start()
    await this.clock.advance(ms)
  }

  /** Stops it, with time passing for what is in flight. */
  async stop(ms = 0): Promise<void> {
    const stopped = this.mapping.stop()
    await this.clock.advance(ms)
    await stopped
  }

  shard(shardId = s0) {
    const shard = this.mapping.status().shards.find((one) => one.shardId === shardId)
    if (shard === undefined) throw new Error(`${shardId} is not in the status`)
    return shard
  }
}
