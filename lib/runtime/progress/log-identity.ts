/**
 * Which log progress is of. A Kafka topic that was deleted and made again has its old name and begins at offset 0, so its records
 * would pass for done. Progress therefore remembers the identity of its log:
 *
 * 1. The log is asked for it at the first batch of a container, where progress knows another or none, and whenever records of a batch
 *    would be dropped as done: nothing is dropped that the log of now was not asked for.
 * 2. Progress of another log is refused with a ConfigurationError, and nothing is read, dropped or written.
 * 3. Streams whose positions only grow have no identity and are never asked.
 */
import { ConfigurationError } from '../../core/errors.ts'
import type { PartitionLineage } from './lineage.ts'
import type { OpenedProgress } from './open.ts'
import type { ProgressOfAny } from './progress.ts'

export class LogIdentity {
  readonly #stage: string
  readonly #lineage: PartitionLineage
  /** What the log said last. */
  #said: string | undefined

  constructor(stage: string, lineage: PartitionLineage) {
    this.#stage = stage
    this.#lineage = lineage
  }

  /**
   * Progress that knows its log from now on; `dropsSome` says that records of the batch are done already. Throws a
   * {@link ConfigurationError} `recreated-log`.
   */
  async check<P extends ProgressOfAny>(
    opened: OpenedProgress<P>,
    partition: string,
    dropsSome: boolean,
    signal: AbortSignal,
  ): Promise<OpenedProgress<P>> {
    const { log } = opened.progress
    if (this.#said === undefined || log !== this.#said || dropsSome) this.#said = await this.#lineage.identity?.(signal)
    const said = this.#said
    if (said === undefined || said === log) return opened
    if (log === undefined) return { ...opened, progress: { ...opened.progress, log: said } }
    throw new ConfigurationError(
      `stage "${this.#stage}" has read partition ${partition} of the topic with the id ${log} up to offset ${opened.progress.completed ?? '(none)'}, but the topic has the id ${said} now: it was deleted and made again, and its offsets start over. Nothing of it is read, as it would pass for done. Bind the stage to the topic that it has read; or, to begin anew with this one, run \`millrace reset\` where it is a source's, and give the stage another name where it is the stage's own.`,
      { code: 'recreated-log' },
    )
  }
}
