/**
 * Publishes and commits what the steps of an attempt have made, a part of the batch at a time: invariants 2, 3 and 7 of
 * keyed-runner.ts.
 */

import { isTerminal } from '../../core/errors.ts'
import type { WindowTraits } from '../../operators/keyed/keyed-operator.ts'
import { type CheckedCommit, checkedDraft } from '../../state/commit-rules.ts'
import type { KeyDraft } from '../../state/key-draft.ts'
import type { Halt } from '../batch.ts'
import { endOf, endOfFiring, type Position } from '../frames/position.ts'
import type { Stop } from '../lane.ts'
import type { NotedProgress } from '../noted-progress.ts'
import type { Outbox } from '../outbox.ts'
import { type FiringCut, type KeyedProgress, reachedMarkMs, type SentPositions } from '../progress/progress.ts'
import type { BatchKeys } from './batch-keys.ts'
import type { DueKeys } from './due-keys.ts'
import { inParallel } from './in-parallel.ts'
import type { KeyedLog } from './keyed-log.ts'
import type { KeyedParts } from './keyed-parts.ts'
import { markLagOf } from './line-steps.ts'

/** Commits in flight at a time. */
const mostCommits = 64

/** The states of keys grew beyond what an item can hold: the batch begins anew, with a look at each of their steps. */
export class TooLarge extends Error {
  readonly keys: readonly string[]

  constructor(keys: readonly string[]) {
    super('the states of some keys are too large')
    this.keys = keys
  }
}

export interface FlushParts {
  readonly parts: KeyedParts
  readonly log: KeyedLog
  readonly progress: NotedProgress<KeyedProgress>
  readonly keys: BatchKeys
  readonly due: DueKeys
  readonly outbox: Outbox
  readonly careful: ReadonlySet<string>
  readonly stop: Stop
}

export class KeyedFlush {
  readonly #of: FlushParts
  #doneThrough: number
  /** How far the firings at the number behind `doneThrough` are done. */
  #firing: FiringCut | undefined
  #sent: SentPositions
  #isAhead = false
  /** Why a flush failed. From then on nothing is sent or committed: the outputs that were refused are gone from the outbox. */
  #refused: Halt | undefined
  #keysWritten = 0
  readonly #windows: readonly { readonly name: string; readonly traits: WindowTraits }[]
  #largestItemBytes = 0
  #openWindows = 0

  constructor(of: FlushParts) {
    this.#of = of
    const { doneThrough, firing, sent } = of.progress.now
    this.#doneThrough = doneThrough
    this.#firing = firing
    this.#sent = sent
    this.#windows = of.parts.stage.nodes.flatMap((node) =>
      node.type === 'keyed' && node.operator.window ? [{ name: node.name, traits: node.operator.window }] : [],
    )
  }

  /** All numbers up to this one are published and committed. */
  get doneThrough(): number {
    return this.#doneThrough
  }

  /** What was sent, as of `doneThrough`. */
  get sent(): SentPositions {
    return this.#sent
  }

  /** True where a flush failed: drafts went further than the table, and not all of them know it. */
  get isAhead(): boolean {
    return this.#isAhead
  }

  get keysWritten(): number {
    return this.#keysWritten
  }

  /** The size of the largest item that was written, in bytes. */
  get largestItemBytes(): number {
    return this.#largestItemBytes
  }

  /** The most windows that one key holds; undefined in a stage without windows. */
  get openWindows(): number | undefined {
    return this.#windows.length === 0 ? undefined : this.#openWindows
  }

  /** Something failed before a flush could answer. */
  failed(): void {
    this.#isAhead = true
  }

  /** Publishes and commits what waits: all numbers up to `through` are then done, and behind them the firings up to `fired`. */
  async flush(through: number, fired: FiringCut | undefined): Promise<Halt | undefined> {
    this.#refused ??= await this.#flush(through, fired)
    return this.#refused
  }

  async #flush(through: number, fired: FiringCut | undefined): Promise<Halt | undefined> {
    const { parts, progress, keys, due, outbox, stop, log } = this.#of
    // What another attempt has committed in the meantime is not ours to commit.
    const drafts = [...keys.changed].map((key) => keys.draft(key)).filter(({ isChanged }) => isChanged)
    const commits = this.#checkedCommits(drafts)
    const first = this.#doneThrough + 1
    const delivery = {
      markMs: reachedMarkMs(progress.now) - markLagOf(parts.stage),
      completeThrough: through,
      firstOrdinal: Math.max(
        0,
        log.lines.findIndex(({ number }) => number >= first),
      ),
    }
    this.#isAhead = true
    await progress.clear(through, stop)
    const refused = await outbox.deliver(stop, delivery)
    if (refused) return { number: first, error: refused.error, counts: false }
    try {
      await due.put(drafts)
      await inParallel(drafts, mostCommits, (draft, i) => this.#commit(draft, commits[i]))
    } catch (error) {
      // Some keys may be committed: the next attempt finds them so.
      return { number: first, error, counts: false }
    }
    this.#isAhead = false
    keys.flushed()
    this.#doneThrough = Math.max(this.#doneThrough, through)
    if (fired && fired.number > this.#doneThrough) this.#firing = fired
    this.#sent = outbox.sent(this.#end())
    keys.letGo(drafts.map(({ key }) => key))
    return undefined
  }

  /** Firings that are done at the number behind `doneThrough`. */
  openCut(doneThrough: number): FiringCut | undefined {
    return this.#firing && this.#firing.number > doneThrough ? this.#firing : undefined
  }

  /** The position up to which all is published and committed. */
  #end(): Position {
    const cut = this.openCut(this.#doneThrough)
    return cut === undefined ? endOf(this.#doneThrough) : endOfFiring(cut.number, cut.keyHash)
  }

  /** Throws a TerminalError where the draft's state does not fit. */
  #checkFits(draft: KeyDraft): CheckedCommit {
    const { stage, ports, chainRetentionMs } = this.#of.parts
    return checkedDraft(draft.commit(ports.clock.nowMs(), chainRetentionMs), { stage: stage.name })
  }

  /** The commits of drafts, but for those that are looked at in each step. Throws {@link TooLarge}. */
  #checkedCommits(drafts: readonly KeyDraft[]): readonly (CheckedCommit | undefined)[] {
    const tooLarge: string[] = []
    const commits = drafts.map((draft) => {
      if (this.#of.careful.has(draft.key)) return undefined
      try {
        return this.#measured(this.#checkFits(draft))
      } catch (error) {
        if (!isTerminal(error)) throw error
        tooLarge.push(draft.key)
        return undefined
      }
    })
    if (tooLarge.length > 0) throw new TooLarge(tooLarge)
    return commits
  }

  #measured(commit: CheckedCommit): CheckedCommit {
    this.#largestItemBytes = Math.max(this.#largestItemBytes, commit.largestItemBytes)
    for (const { name, traits } of this.#windows) {
      const stored = commit.item.states[name]
      if (stored !== undefined) this.#openWindows = Math.max(this.#openWindows, traits.openIn(stored))
    }
    return commit
  }

  /** Commits a draft, at first as it was checked; where another attempt was there before, what that one left to do. */
  async #commit(draft: KeyDraft, checked: CheckedCommit | undefined): Promise<void> {
    const { parts, keys, stop } = this.#of
    const { store, ports, chainRetentionMs } = parts
    const { key, position: target } = draft
    let ours = draft
    let next = checked
    while (ours.isChanged) {
      const outcome = await store.commit(next ?? ours.commit(ports.clock.nowMs(), chainRetentionMs), stop.signal)
      if (outcome.status === 'committed') {
        ours.committed()
        this.#keysWritten++
        return
      }
      ports.metrics.count('commit-conflicts', 1)
      await keys.takeOver(key, outcome.found, target)
      ours = keys.draft(key)
      next = undefined
    }
  }
}
