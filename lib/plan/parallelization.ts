/** How many batches of one partition may be in flight at once, which the plan decides and every runtime refuses alike. */
import { ConfigurationError } from '../core/errors.ts'
import type { StagePlan } from './plan.ts'

/**
 * Throws a {@link ConfigurationError} for a factor above 1 on a stage that keeps progress: its batches must come one after
 * the other, and two at once would each refuse what the other wrote.
 */
export function refuseParallelization(stage: StagePlan, factor: number): void {
  if (stage.kind === 'stateless' || factor === 1) return
  const why =
    stage.kind === 'keyed'
      ? 'it is a keyed stage'
      : `it feeds the keyed stage "${stage.feeds.map((feed) => feed.stage).join('", "')}"`
  throw new ConfigurationError(
    `stage "${stage.name}" has the parallelization factor ${factor}, and ${why}, whose records are processed in order: leave it at 1, and give the stream more shards instead.`,
  )
}
