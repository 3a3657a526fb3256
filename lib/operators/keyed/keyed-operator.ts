/**
 * What every keyed operator is: states kept per key, and a way to link the step before it to the step after it.
 *
 * A linked step is synchronous and sees one key: `context.draft()` is the state of the key of the record at hand, loaded
 * before the step runs. Positions, commits, retries and duplicates are the runtime's; an operator knows none of them.
 */
import type { RecordInfo } from '../../core/record.ts'
import type { KeyDraft, TimerDomain } from '../../state/key-draft.ts'
import type { Key } from '../../state/key-encoding.ts'
import type { StateValue } from '../../state/state-store.ts'
import type { OperatorStateDeclaration, StateDeclaration } from '../../state/states.ts'
import type { AggregatorKinds } from '../aggregators/kinds.ts'
import type { Emit, LinkContext } from '../operator.ts'

/** What linking a keyed operator may ask the runtime for. Each is asked while a record is stepped, never before. */
export interface KeyedLinkContext extends LinkContext {
  /** The state of the key of the record at hand. */
  draft(): KeyDraft
  /** The key of the record at hand, as `keyBy` gave it. */
  key(): Key
  /** The value of an operator state in the slot of the record at hand, with that record added to it. */
  operatorState(storedName: string): unknown
  /** What time it is for the step at hand. */
  times(): StepTimes
  /**
   * What a result carries that no one record stands for: that event time and, as own mark, the watermark before the number at
   * hand (in a stage with 'final' windows, less their grace).
   */
  result(eventTimeMs: number): RecordInfo
}

/** The time as a step sees it, in ms since 1970 UTC. */
export interface StepTimes {
  /** The stage's watermark at this number; minus infinity where it is not known. */
  readonly watermarkMs: number
  /** The own mark of the record at hand; minus infinity in a firing. */
  readonly ownMarkMs: number
  readonly processingMs: number
}

/** A linked operator. */
export interface KeyedLink<I> {
  readonly record: Emit<I>
  /** A timer of the operator is due; it is not set any more. Called for no name that the operator did not set. */
  fire?(domain: TimerDomain, name: string, timeMs: number): void
  /**
   * The firing threw and is given up: does what `fire` would have done, but for what it put out, so that what is due later is
   * not lost with it.
   */
  skip?(domain: TimerDomain, name: string, timeMs: number): void
  /** `skip` threw as well: forgets what the operator keeps of the key, without a look at it. */
  drop?(): void
}

/** What a window operator tells of itself. */
export interface WindowTraits {
  /** Such as `tumbling(300000 ms)`. */
  readonly label: string
  readonly graceMs: number
  /** False where no record is ever late. */
  readonly hasLate: boolean
  readonly emit: 'on-close' | 'final' | 'on-update'
  /**
   * 'final' results come so long after the end of their window: marks and own marks behind the operator are held back by as
   * much, so that no result is late for having waited. 0 for other results.
   */
  readonly heldBackMs: number
  /** For how long after the end of its window a result may come that revises it: windows behind need as much grace. */
  readonly trailsMs: number
  /** Which aggregators have gathered what the state holds. */
  readonly aggregators: AggregatorKinds
  /** How many windows, or slices of windows that overlap, a state holds as it is stored. */
  openIn(stored: StateValue): number
}

/** An entry of a map state, by the state's stored name. */
export interface PrefetchedEntry {
  readonly state: string
  readonly entry: string
}

/** One operator behind a `keyBy`. */
export interface KeyedOperator<I = unknown, O = unknown> {
  readonly kind: 'process' | 'aggregate' | 'reduce' | 'deduplicate' | 'window'
  readonly name: string
  /** By stored name: what the table calls them. */
  readonly states: ReadonlyMap<string, StateDeclaration>
  /** By stored name. `plan` refuses them where the operator does not follow its `keyBy` directly. */
  readonly operatorStates: ReadonlyMap<string, OperatorStateDeclaration>
  /** Names of the side outputs. */
  readonly sides: readonly string[]
  /**
   * `latest`: of one key and batch only what comes of the last output of this operator is published. Steps behind it in the
   * stage take each output all the same, so that no state depends on where batches are cut.
   */
  readonly emits: 'each' | 'latest'
  /** Of a window operator. */
  readonly window?: WindowTraits
  /** The map entries that a value's step will read: they are loaded together with the keys of the batch. */
  prefetch?(value: I, record: RecordInfo): Iterable<PrefetchedEntry>
  link(next: Emit<O>, side: (name: string) => Emit<unknown>, context: KeyedLinkContext): KeyedLink<I>
}
