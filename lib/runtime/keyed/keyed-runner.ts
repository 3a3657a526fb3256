/**
 * Runs the batches of a keyed stage. All that lasts is in its table; what a container keeps is the warm cache, which is
 * only ever a copy.
 *
 * Invariants (cited by test/runtime/keyed/)
 * 1. The stage is a pure fold over its log: numbers, drops, marks, steps and outputs of an attempt follow from the log and
 *    from the progress it began with.
 * 2. Publish, then commit, then progress: what a commit stands for was taken before, and progress never covers what is
 *    not committed.
 * 3. A key is committed on condition that its position is the one that was read. Whoever loses goes on from what the winner
 *    left: what it covers is done, what lies beyond is stepped in silence, as it was published already.
 * 4. After a failing record nothing is published or committed, for any key. Its failures are counted in progress; after
 *    `attempts` of them it is a dead letter for every later attempt. A TerminalError makes it one at once, a RetryableError
 *    is never counted. A dead letter is sent before the commit and moves the position of its key, so that no attempt that
 *    wakes late applies the record as well.
 * 5. Progress covers whole entries of the log; `doneThrough` says how far the next one is done.
 * 6. A warm draft is used only while progress carries the version that this container wrote last.
 * 7. State that would not fit in its item, or in one transaction, makes the record or the timer that it comes of a dead letter
 *    before anything of it is published.
 */
import { SlotMemo } from '../../core/slot.ts'
import type { KeyedStage } from '../../plan/plan.ts'
import type { BatchResult, PartitionBatch, PartitionFailure } from '../batch.ts'
import { ShortTexts } from '../frames/byte-reader.ts'
import { partitionAlone, withinDeadline } from '../invocation.ts'
import type { Ports } from '../ports.ts'
import { openStageParts } from '../stage-parts.ts'
import type { RunnerOptions } from '../stage-runner.ts'
import { TableStore } from '../tables.ts'
import { runKeyedBatch } from './keyed-batch.ts'
import type { KeyedParts } from './keyed-parts.ts'
import { WarmKeys } from './warm-keys.ts'

export class KeyedRunner {
  readonly #parts: KeyedParts
  readonly #tables: TableStore
  readonly #marginMs: number

  constructor(topology: string, stage: KeyedStage, ports: Ports, options: RunnerOptions) {
    this.#parts = {
      ...openStageParts(topology, stage, ports, options),
      warm: new WarmKeys(options.warmKeys ?? 20_000),
      slots: new SlotMemo(stage.slots),
      shortTexts: new ShortTexts(),
      mostKeysPerCommit: options.mostKeysPerCommit ?? 4_000,
    }
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
    const { ports } = this.#parts
    return withinDeadline(ports.clock, invocation.deadlineMs, this.#marginMs, async (stop) => {
      const failures: PartitionFailure[] = []
      await this.#parts.manifest.check(stop.signal)
      for (const partition of batch) {
        const tables = await this.#tables.openBatch(stop.signal)
        const failure = await partitionAlone(ports, partition, () =>
          runKeyedBatch(this.#parts, partition, tables, stop),
        )
        if (failure) failures.push(failure)
      }
      return { failures }
    })
  }
}
