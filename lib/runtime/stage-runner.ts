/**
 * Runs one batch through a stateless stage that feeds only sinks. It keeps nothing between batches but its tables.
 *
 * Invariants (cited by test/runtime/stage-runner.test.ts)
 * 1. A record is done when every sink holds all its outputs, or the dead-letter sink holds the record itself. The answer
 *    names, per partition, the first record that is not done; what lies behind it comes again.
 * 2. A record whose step throws leaves no output of that attempt behind. After `tries` attempts it is a dead letter; a
 *    TerminalError makes it one at once; a RetryableError ends its partition there, and nothing behind it is stepped.
 * 3. Partitions do not hold each other up: each ends at its own first failure.
 * 4. When the margin before the deadline begins, no further record is stepped. What was stepped is still handed to the
 *    sinks, so that a batch of slow steps makes progress; they start nothing once the signal aborts, what is in flight is
 *    awaited, and the answer tells what is done.
 * 5. Nothing is reported as done because an error was caught: a sink that throws, or answers for fewer items than it was
 *    given, has delivered nothing.
 */
import { type Duration, msOf } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'
import type { StatelessStage } from '../plan/plan.ts'
import type { BatchResult, PartitionBatch } from './batch.ts'
import { type BatchParts, BatchRun } from './batch-run.ts'
import { decoderOf } from './decode.ts'
import { withinDeadline } from './invocation.ts'
import type { Ports } from './ports.ts'
import { StageProgram } from './program.ts'
import { sinksOf } from './sinks.ts'
import { TableStore } from './tables.ts'

export interface RunnerOptions {
  /** How often a record whose step throws is tried in one invocation before it is a dead letter. @default 3 */
  readonly tries?: number
  /** How long before the deadline the runner stops and answers. @default one second, or half of a shorter deadline */
  readonly deadlineMargin?: Duration
  /** Outputs gathered before they are delivered; bounds the memory of a batch whose steps multiply records. @default 10000 */
  readonly maxPendingOutputs?: number
  /** Outputs that one record may have to one sink; a record with more is a dead letter. @default 10000 */
  readonly maxOutputsPerRecord?: number
  /**
   * In a stage with state, or one that feeds such a stage: how often a record may fail, over all attempts, before it is a
   * dead letter. @default 3
   */
  readonly attempts?: number
  /**
   * For how long the stage's input is kept, and what its records came through before: what guards against repetitions, and what a
   * record may still find, stays a day longer than both together. Where the stack says it too, the longer counts.
   * @default what the stack says, else seven days
   */
  readonly retention?: Duration
  /** Keys of a keyed stage that are changed before they are published and committed together. @default 4000 */
  readonly mostKeysPerCommit?: number
  /** In a stage that feeds others: the least time between two marks that it tells on its own. @default one second */
  readonly marksEvery?: Duration
  /** Keys whose state an execution environment keeps for its next batch; 0 keeps none. @default 20000 */
  readonly warmKeys?: number
}

/** Throws a {@link ConfigurationError} where an option makes no sense. */
export function checkOptions({
  tries = 3,
  maxPendingOutputs = 10_000,
  maxOutputsPerRecord = 10_000,
  attempts = 3,
  mostKeysPerCommit = 4_000,
  warmKeys = 20_000,
  deadlineMargin,
  retention,
  marksEvery,
}: RunnerOptions): void {
  positive('attempts', attempts)
  positive('mostKeysPerCommit', mostKeysPerCommit)
  if (warmKeys !== 0) positive('warmKeys', warmKeys)
  positive('tries', tries)
  positive('maxOutputsPerRecord', maxOutputsPerRecord)
  positive('maxPendingOutputs', maxPendingOutputs)
  for (const [name, length] of Object.entries({ deadlineMargin, retention, marksEvery })) {
    if (length !== undefined) msOf(`${name} is`, length, 0, 'give a length of time, such as seconds(1).')
  }
}

/** Runs the batches of one stage; made once per execution environment. */
export class StageRunner {
  readonly #parts: BatchParts
  readonly #marginMs: number
  readonly #tables: TableStore

  /** Throws a {@link ConfigurationError} where the stage has a sink without a port, or an option makes no sense. */
  constructor(topology: string, stage: StatelessStage, ports: Ports, options: RunnerOptions = {}) {
    checkOptions(options)
    this.#marginMs = options.deadlineMargin?.ms ?? 1_000
    this.#tables = new TableStore(stage.tables, ports)
    this.#parts = {
      topology,
      stage,
      ports,
      sinks: sinksOf(stage, ports),
      decode: decoderOf(stage.source, ports),
      program: new StageProgram(stage, { traces: ports.checksPurity === true }),
      tries: options.tries ?? 3,
      maxPendingOutputs: options.maxPendingOutputs ?? 10_000,
      maxOutputsPerRecord: options.maxOutputsPerRecord ?? 10_000,
    }
  }

  /** Loads the stage's tables. Batches wait for it; a failure is tried again with the next batch. */
  start(): Promise<void> {
    return this.#tables.start()
  }

  /** Resolves once nothing runs in the background. */
  settled(): Promise<void> {
    return this.#tables.settled()
  }

  /** Runs one batch. Rejects only where no record could be tried, for example because a table could not be loaded. */
  async run(batch: readonly PartitionBatch[], invocation: { readonly deadlineMs: number }): Promise<BatchResult> {
    return withinDeadline(this.#parts.ports.clock, invocation.deadlineMs, this.#marginMs, async (stop) => {
      const tables = await this.#tables.openBatch(stop.signal)
      const run = new BatchRun(this.#parts, batch, tables, stop)
      if (this.#tables.hasLookups) await run.loadLookups()
      return await run.run()
    })
  }
}

function positive(name: string, value: number): void {
  if (Number.isInteger(value) && value > 0) return
  throw new ConfigurationError(`${name} is ${value}: give a whole number above 0.`)
}
