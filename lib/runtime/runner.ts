/** Makes the runner of a stage, whatever kind it is of. */
import type { StagePlan } from '../plan/plan.ts'
import type { BatchResult, PartitionBatch } from './batch.ts'
import type { Redrive } from './dead-letter.ts'
import { FeedingRunner } from './feeding/feeding-runner.ts'
import { KeyedRunner } from './keyed/keyed-runner.ts'
import type { Ports } from './ports.ts'
import { checkOptions, type RunnerOptions, StageRunner } from './stage-runner.ts'

export type { RunnerOptions } from './stage-runner.ts'

/** Runs the batches of one stage; made once per execution environment. */
export interface Runner {
  /** Loads the stage's tables. Batches wait for it; a failure is tried again with the next batch. */
  start(): Promise<void>
  /** Resolves once nothing runs in the background. */
  settled(): Promise<void>
  /** Runs one batch. Rejects only where no record could be tried, for example because a table could not be loaded. */
  run(batch: readonly PartitionBatch[], invocation: { readonly deadlineMs: number }): Promise<BatchResult>
  /**
   * Runs dead letters of a stage whose progress is past them. Missing where a stage keeps no progress: they are a batch there
   * like any other; and in a keyed stage, whose dead letters are sent to its stream.
   */
  redrive?(
    batch: readonly PartitionBatch[],
    redrive: Redrive,
    invocation: { readonly deadlineMs: number },
  ): Promise<BatchResult>
}

/** Throws a {@link ConfigurationError} where a port is missing that the stage needs, or an option makes no sense. */
export function createRunner(topology: string, stage: StagePlan, ports: Ports, options: RunnerOptions = {}): Runner {
  checkOptions(options)
  if (stage.kind === 'stateless') return new StageRunner(topology, stage, ports, options)
  if (stage.kind === 'feeding') return new FeedingRunner(topology, stage, ports, options)
  return new KeyedRunner(topology, stage, ports, options)
}
