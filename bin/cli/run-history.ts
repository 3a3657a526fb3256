/**
 * What `millrace dev` finds in its directory of the runs before, and leaves there for the next one.
 *
 * 1. A topology that would lose or misread what they kept is refused before anything is touched, with the words of `millrace lock`. A sink
 *    that is gone is none of that: its stream stays.
 * 2. Where an input with an end has brought event time to its end, it is said: whatever comes now is late.
 */
import { ConfigurationError } from '../../lib/core/errors.ts'
import { compareLock, lockOf } from '../../lib/plan/lock.ts'
import type { Plan } from '../../lib/plan/plan.ts'
import { type RunFacts, readRunFacts, writeRunFacts } from './local-run.ts'

export interface RunHistoryOptions {
  readonly directory: string
  /** What this run was started with. */
  readonly facts: Pick<RunFacts, 'topologyFile' | 'handlerFile' | 'endpoint' | 'tables'>
  /** Whether the directory is dropped first. What is at an endpoint stays. */
  readonly fresh: boolean
}

export class RunHistory {
  readonly #options: RunHistoryOptions
  #kept: Pick<RunFacts, 'lock' | 'hasTimeEnded'>

  private constructor(options: RunHistoryOptions, kept: Pick<RunFacts, 'lock' | 'hasTimeEnded'>) {
    this.#options = options
    this.#kept = kept
  }

  static async open(options: RunHistoryOptions): Promise<RunHistory> {
    const { directory, facts, fresh } = options
    const before = await readRunFacts(directory)
    const isElsewhere = before?.endpoint !== facts.endpoint
    if (before === undefined || isElsewhere || (fresh && facts.endpoint === undefined))
      return new RunHistory(options, {})
    const { lock, hasTimeEnded = false } = before
    return new RunHistory(options, { hasTimeEnded, ...(lock === undefined || fresh ? {} : { lock }) })
  }

  /** Throws a ConfigurationError for a topology that would lose or misread what is kept here. */
  check(planned: Plan): void {
    const { lock } = this.#kept
    if (lock === undefined) return
    const current = lockOf(planned)
    const problems = compareLock({ ...lock, sinks: current.sinks }, current)
    if (problems.length === 0) return
    const { directory, facts } = this.#options
    throw new ConfigurationError(
      [
        `topology "${planned.topology}" would lose or misread what earlier runs keep in ${facts.endpoint ?? directory}:`,
        ...problems.map(({ message }) => `- ${message}`),
        `On this machine ${this.#startOver} without it.`,
      ].join('\n'),
    )
  }

  /** Says that this topology runs now. */
  async remember(planned: Plan): Promise<void> {
    this.#kept = { ...this.#kept, lock: lockOf(planned) }
    await this.#save()
  }

  /** Says that event time has come to its end. */
  async endTime(): Promise<void> {
    this.#kept = { ...this.#kept, hasTimeEnded: true }
    await this.#save()
  }

  /** What somebody who sends more must hear. */
  get lines(): readonly string[] {
    if (this.#kept.hasTimeEnded !== true) return []
    return [
      `Event time has ended here: the input of an earlier run had an end (--once), and its windows closed. What is sent now is late for them, and timers of event time fire at once; ${this.#startOver}.`,
    ]
  }

  get #startOver(): string {
    const { endpoint } = this.#options.facts
    return endpoint === undefined
      ? '--fresh starts over'
      : `with the streams and tables at ${endpoint} deleted, --fresh starts over`
  }

  #save(): Promise<void> {
    const { directory, facts } = this.#options
    return writeRunFacts(directory, { ...facts, ...this.#kept })
  }
}
