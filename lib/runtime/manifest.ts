/**
 * The manifest of a stage's table: whose it is, and what may never change while there is state in it or something of the stage on its
 * way. The first container writes it; every other one reads it once, before its first batch, and adds what states and feeds it has more.
 */
import { isDeepStrictEqual } from 'node:util'
import { ConfigurationError, RetryableError } from '../core/errors.ts'
import type { FeedingStage, KeyedStage } from '../plan/plan.ts'
import type { StateStore } from '../state/state-store.ts'
import type { PartitionLineage } from './progress/lineage.ts'
import { progressName } from './progress/open.ts'
import { declaredStates, inManifest, mergedStates, recordedIn, type StatesOfManifest } from './recorded-states.ts'

/** The format version of the manifest. */
const format = 1

type Log = 'stream' | 'topic'

type Manifest = StatesOfManifest & {
  readonly format: number
  readonly topology: string
  readonly stage: string
  /** Missing where the stage keeps no keys. */
  readonly slots?: number
  /** Missing where the stage reads a stream, whose numbers a topic does not go on with; and where it keeps no keys. */
  readonly log?: 'topic'
  /** What it sends to each keyed stage goes there. Missing where it feeds none, or a release wrote it that did not record them. */
  readonly feeds?: { readonly [stage: string]: Log }
}

export interface ManifestParts {
  readonly topology: string
  readonly stage: FeedingStage | KeyedStage
  readonly store: StateStore
  /** The partitions of what the stage reads. */
  readonly lineage: PartitionLineage
  /** The partitions of what a keyed stage below reads. */
  readonly lineageOf: (stage: string) => PartitionLineage | undefined
}

export class StageManifest {
  readonly #store: StateStore
  readonly #lineage: PartitionLineage
  readonly #declared: Manifest
  #isChecked = false

  constructor({ topology, stage, store, lineage, lineageOf }: ManifestParts) {
    this.#store = store
    this.#lineage = lineage
    const feeds = stage.feeds.map((feed) => [feed.stage, logOf(lineageOf(feed.stage))] as const)
    this.#declared = {
      format,
      topology,
      stage: stage.name,
      ...(stage.kind === 'keyed' && {
        slots: stage.slots,
        ...(logOf(lineage) === 'topic' && { log: 'topic' as const }),
        ...inManifest(declaredStates(stage)),
      }),
      ...(feeds.length > 0 && { feeds: Object.fromEntries(feeds) }),
    }
  }

  /**
   * Throws a {@link ConfigurationError} where the table belongs to another stage, or to this one with other slots or another kind of log,
   * or holds a state of another kind; and where the stage would send on to a keyed stage by another kind of log than before. `partition` is
   * one that the stage is at work in.
   */
  async check(signal: AbortSignal, partition?: string): Promise<void> {
    while (!this.#isChecked) {
      const found = (await this.#store.readManifest(signal)) as Manifest | undefined
      // Where another container was first, what that one wrote is compared.
      this.#isChecked =
        found === undefined ? await this.#begin(partition, signal) : await this.#add(found, this.#merged(found), signal)
    }
  }

  /** Where there is no manifest: false where another container has written one meanwhile. */
  async #begin(partition: string | undefined, signal: AbortSignal): Promise<boolean> {
    const { slots, feeds = {} } = this.#declared
    // Keyed stages have a manifest from their first batch on. Stages that only feed them had none at first, and streams alone.
    const fed = slots === undefined ? Object.keys(feeds).find((name) => feeds[name] === 'topic') : undefined
    if (fed !== undefined && (await this.#hasProgress(partition, signal))) {
      if ((await this.#store.readManifest(signal)) === undefined) throw this.#movedUnrecorded(fed)
    }
    return this.#store.writeManifest(this.#declared, signal)
  }

  /** Whether the stage has been at work already: the partition at hand is the likeliest to say so, but any other may. */
  async #hasProgress(partition: string | undefined, signal: AbortSignal): Promise<boolean> {
    const hasProgressIn = async (one: string): Promise<boolean> =>
      (await this.#store.readProgress(progressName(this.#declared.stage, one), signal)) !== undefined
    if (partition !== undefined && (await hasProgressIn(partition))) return true
    for (const other of await this.#lineage.list(signal)) {
      if (other.partition !== partition && (await hasProgressIn(other.partition))) return true
    }
    return false
  }

  #movedUnrecorded(fed: string): ConfigurationError {
    const { stage, topology } = this.#declared
    return new ConfigurationError(
      `stage "${stage}" of topology "${topology}" would send to stage "${fed}" by a topic, but its progress is of a release that recorded nothing of that and sent by streams: where "${fed}" had one, it goes on with that alone, so nothing is sent. Deploy this release on streams first; then keyed stages may be on topics that have other names, and with them new state.`,
      { code: 'log-changed' },
    )
  }

  async #add(found: Manifest, merged: Manifest, signal: AbortSignal): Promise<boolean> {
    return isDeepStrictEqual(merged, found) || (await this.#store.replaceManifest(found, merged, signal))
  }

  /** What was found with what is new. Throws where both cannot be. */
  #merged(found: Manifest): Manifest {
    const { stage, states, feeds } = this.#declared
    this.#compare(found)
    return {
      ...found,
      ...(states && inManifest(mergedStates(stage, recordedIn(found), recordedIn(this.#declared)))),
      ...(feeds && { feeds: this.#mergedFeeds(found.feeds ?? {}, feeds) }),
    }
  }

  #compare(found: Manifest): void {
    const { topology, stage, slots, log } = this.#declared
    if (Number(found.format) > format) {
      throw new RetryableError(
        `the state table of stage "${stage}" was written by a newer release of Millrace (manifest format ${found.format}): deploy that release`,
        { code: 'newer-format' },
      )
    }
    if (found.topology !== topology || found.stage !== stage) {
      throw new ConfigurationError(
        `the state table bound to stage "${stage}" of topology "${topology}" holds the state of stage "${found.stage}" of "${found.topology}": bind it to that stage, keep the stage's old name, or give this stage a table of its own.`,
        { code: 'foreign-table' },
      )
    }
    if (found.slots !== slots) {
      throw new ConfigurationError(
        `stage "${stage}" of topology "${topology}" has ${slots} slots, but its state was made with ${found.slots}: keep keyBy("${stage}", ..., { slots: ${found.slots} }), or give the stage another name and with it new state.`,
        { code: 'slots-changed' },
      )
    }
    if (found.log === log) return
    throw new ConfigurationError(
      `stage "${stage}" of topology "${topology}" reads a ${log ?? 'stream'}, but its state was made from a ${found.log ?? 'stream'}: positions of keys are numbers of that log, and what comes from another would pass for done. Leave keyed stages where they were, or give the stage another name and with it new state.`,
      { code: 'log-changed' },
    )
  }

  /** No feed is forgotten: what was sent to a stage that is not fed any more may be in its log yet. */
  #mergedFeeds(found: NonNullable<Manifest['feeds']>, declared: NonNullable<Manifest['feeds']>) {
    for (const [fed, now] of Object.entries(declared)) {
      const before = Object.hasOwn(found, fed) ? found[fed] : now
      if (before === now) continue
      const { stage, topology } = this.#declared
      throw new ConfigurationError(
        `stage "${stage}" of topology "${topology}" would send to stage "${fed}" by a ${now}, but has sent to it by a ${before} so far: "${fed}" goes on with that alone, so nothing is sent. Leave keyed stages where they were, or give "${fed}" another name and with it new state.`,
        { code: 'log-changed' },
      )
    }
    return { ...found, ...declared }
  }
}

/** Only a topic can be another one under its name, so it alone has an identity. */
const logOf = (lineage: PartitionLineage | undefined): Log => (lineage?.identity === undefined ? 'stream' : 'topic')
