/** What the sinks of a run and its dead-letter stream received, read back while it goes on. */
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { systemClock } from '../../lib/aws/system-clock.ts'
import type { SourceRecord } from '../../lib/emulator/event-source-mapping/index.ts'
import { KinesisShardReader } from '../../lib/local/reading/kinesis-shard-reader.ts'
import { type StreamTail, startStreamTail } from '../../lib/local/reading/stream-tail.ts'

/** One output stream. */
export interface DevOutput {
  readonly name: string
  readonly streamName: string
}

export interface DevOutputsOptions {
  readonly client: KinesisClient
  /** Receives what came since the beginning of this command. */
  readonly onRecords: (output: string, records: readonly SourceRecord[]) => void
}

/** The tails of the output streams. They outlive reloads, so nothing is shown twice. */
export class DevOutputs {
  readonly #options: DevOutputsOptions
  readonly #tails = new Map<string, StreamTail>()
  readonly #counts = new Map<string, number>()
  #isNew = false

  constructor(options: DevOutputsOptions) {
    this.#options = options
  }

  /** Reads these streams from now on, too. */
  async watch(outputs: readonly DevOutput[]): Promise<void> {
    for (const { name, streamName } of outputs) {
      if (this.#tails.has(name)) continue
      const reader = new KinesisShardReader({ client: this.#options.client, streamName, clock: systemClock })
      const onRecords = (records: readonly SourceRecord[]) => this.#take(name, records)
      this.#counts.set(name, 0)
      this.#tails.set(name, await startStreamTail({ reader, clock: systemClock, onRecords }))
    }
  }

  /** What is read from now on is new. */
  expectNew(): void {
    this.#isNew = true
  }

  /** Records by output, those of earlier runs included. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  /** True once everything that was in the streams at `sinceMs` has been read. */
  haveRead(sinceMs: number): boolean {
    return [...this.#tails.values()].every((tail) => tail.hasRead(sinceMs))
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#tails.values()].map((tail) => tail.stop()))
  }

  #take(name: string, records: readonly SourceRecord[]): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + records.length)
    if (this.#isNew) this.#options.onRecords(name, records)
  }
}
