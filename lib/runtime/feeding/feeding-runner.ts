/**
 * Runs the batches of a stage that feeds keyed stages. It keeps nothing between batches but its progress and its tables.
 *
 * Invariants (cited by test/runtime/feeding/feeding-runner.test.ts)
 * 1. Every record of a partition has a number, which goes on from the parents' of the partition. Number, own mark and outputs
 *    follow from the log alone, so every attempt publishes the same under the same positions.
 * 2. Progress moves only over whole entries of the log all of whose outputs were taken, by a conditional write. The answer
 *    comes from what is stored, whoever wrote it.
 * 3. A record whose step throws ends the batch there: nothing behind it is published. Its failures are counted in progress;
 *    after `attempts` of them it is a dead letter for every later attempt. A TerminalError or undecodable bytes make it one
 *    at once, a RetryableError is never counted.
 * 4. A record that ends the process is found, also inside an aggregate, and becomes a dead letter unseen.
 * 5. A frame's mark is that of the batch's start: every frame that it covers was acknowledged before.
 */
import type { FeedingStage } from '../../plan/plan.ts'
import type { BatchResult, PartitionBatch, PartitionFailure } from '../batch.ts'
import type { Redrive } from '../dead-letter.ts'
import { decoderOf } from '../decode.ts'
import { partitionAlone, withinDeadline } from '../invocation.ts'
import type { Ports } from '../ports.ts'
import { openStageParts } from '../stage-parts.ts'
import type { RunnerOptions } from '../stage-runner.ts'
import { TableStore } from '../tables.ts'
import { type FeedingParts, runFeedingBatch } from './feeding-batch.ts'
import { redriveFeedingBatch } from './redrive.ts'

export class FeedingRunner {
  readonly #parts: FeedingParts
  readonly #tables: TableStore
  readonly #marginMs: number

  constructor(topology: string, stage: FeedingStage, ports: Ports, options: RunnerOptions) {
    const decode = decoderOf(stage.source, ports)
    this.#parts = { ...openStageParts(topology, stage, ports, options), decode }
    this.#tables = new TableStore(stage.tables, ports)
    this.#marginMs = options.deadlineMargin?.ms ?? 1_000
  }

  start(): Promise<void> {
    return this.#tables.start()
  }

  settled(): Promise<void> {
    return this.#tables.settled()
  }

  run(batch: readonly PartitionBatch[], invocation: { readonly deadlineMs: number }): Promise<BatchResult> {
    return this.#each(batch, invocation, runFeedingBatch)
  }

  redrive(
    batch: readonly PartitionBatch[],
    redrive: Redrive,
    invocation: { readonly deadlineMs: number },
  ): Promise<BatchResult> {
    return this.#each(batch, invocation, (parts, partition, tables, stop) =>
      redriveFeedingBatch(parts, partition, redrive, tables, stop),
    )
  }

  #each(
    batch: readonly PartitionBatch[],
    invocation: { readonly deadlineMs: number },
    work: typeof runFeedingBatch,
  ): Promise<BatchResult> {
    return withinDeadline(this.#parts.ports.clock, invocation.deadlineMs, this.#marginMs, async (stop) => {
      const failures: PartitionFailure[] = []
      for (const partition of batch) {
        const tables = await this.#tables.openBatch(stop.signal)
        const failure = await partitionAlone(this.#parts.ports, partition, async () => {
          await this.#parts.manifest.check(stop.signal, partition.partition)
          return work(this.#parts, partition, tables, stop)
        })
        if (failure) failures.push(failure)
      }
      return { failures }
    })
  }
}
