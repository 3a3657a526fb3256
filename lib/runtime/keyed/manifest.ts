/**
 * The manifest of a state table: whose it is, and what may never change while there is state in it. The first container
 * writes it; every other one reads it once, before its first batch, and writes what states it has more.
 */
import { ConfigurationError, RetryableError } from '../../core/errors.ts'
import type { KeyedStage } from '../../plan/plan.ts'
import type { StateStore } from '../../state/state-store.ts'
import type { PartitionLineage } from '../progress/lineage.ts'
import { declaredStates, mergedStates, type RecordedStates } from './recorded-states.ts'

/** The format version of the manifest. */
const format = 1

type Manifest = {
  readonly format: number
  readonly topology: string
  readonly stage: string
  readonly slots: number
  /** Missing where the stage reads a stream, whose numbers a topic does not go on with. */
  readonly log?: 'topic'
  /** Missing where a release wrote it that did not record them. */
  readonly states?: RecordedStates
}

export class StageManifest {
  readonly #topology: string
  readonly #stage: KeyedStage
  readonly #store: StateStore
  readonly #log: Manifest['log']
  #isChecked = false

  constructor(topology: string, stage: KeyedStage, store: StateStore, lineage: PartitionLineage) {
    this.#topology = topology
    this.#stage = stage
    this.#store = store
    // Only a topic can be another one under its name.
    this.#log = lineage.identity && 'topic'
  }

  /**
   * Throws a {@link ConfigurationError} where the table belongs to another stage, or to this one with other slots or another kind of log,
   * or holds a state of another kind.
   */
  async check(signal: AbortSignal): Promise<void> {
    if (this.#isChecked) return
    const { name, slots } = this.#stage
    const states = declaredStates(this.#stage)
    for (;;) {
      const found = (await this.#store.readManifest(signal)) as Manifest | undefined
      if (found === undefined) {
        const log = this.#log && { log: this.#log }
        const first: Manifest = { format, topology: this.#topology, stage: name, slots, ...log, states }
        if (await this.#store.writeManifest(first, signal)) break
        continue
      }
      this.#compare(found)
      const merged = mergedStates(name, found.states ?? {}, states)
      // Where another container was first, what that one wrote is compared.
      if (merged === undefined || (await this.#store.replaceManifest(found, { ...found, states: merged }, signal)))
        break
    }
    this.#isChecked = true
  }

  #compare(found: Manifest): void {
    const { name, slots } = this.#stage
    if (Number(found.format) > format) {
      throw new RetryableError(
        `the state table of stage "${name}" was written by a newer release of Millrace (manifest format ${found.format}): deploy that release`,
        { code: 'newer-format' },
      )
    }
    if (found.topology !== this.#topology || found.stage !== name) {
      throw new ConfigurationError(
        `the state table bound to stage "${name}" of topology "${this.#topology}" holds the state of stage "${found.stage}" of "${found.topology}": bind it to that stage, keep the stage's old name, or give this stage a table of its own.`,
        { code: 'foreign-table' },
      )
    }
    if (found.slots !== slots) {
      throw new ConfigurationError(
        `stage "${name}" of topology "${this.#topology}" has ${slots} slots, but its state was made with ${found.slots}: keep keyBy("${name}", ..., { slots: ${found.slots} }), or give the stage another name and with it new state.`,
        { code: 'slots-changed' },
      )
    }
    if (found.log === this.#log) return
    throw new ConfigurationError(
      `stage "${name}" of topology "${this.#topology}" reads a ${this.#log ?? 'stream'}, but its state was made from a ${found.log ?? 'stream'}: positions of keys are numbers of that log, and what comes from another would pass for done. Leave keyed stages where they were, or give the stage another name and with it new state.`,
      { code: 'log-changed' },
    )
  }
}
