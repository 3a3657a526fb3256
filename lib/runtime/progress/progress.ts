/**
 * Progress: what a stage has made of one partition so far, the value of its fold over the log up to `completed`. What it
 * is as a stored value is in `progress-format.ts`; docs/progress.md has the rules.
 */
import type { StateValue } from '../../state/state-store.ts'
import type { Upstream } from '../frames/frame.ts'
import type { Position } from '../frames/position.ts'
import { UpstreamMemories } from '../frames/upstream-memory.ts'

/** How often the record of a number has failed. */
export interface Failing {
  readonly number: number
  readonly attempts: number
  /** Somebody gave it up by hand: its next attempt makes it a dead letter, however often it has failed. */
  readonly skipped?: true
}

/** Numbers among which one kills the process, and how many attempts began at them. */
export interface Suspect {
  readonly from: number
  readonly to: number
  readonly attempts: number
}

/** By feed (the keyed stage that is fed), the last position that was claimed in each slot. */
export type SentPositions = ReadonlyMap<string, ReadonlyMap<number, Position>>

/** What progress of either kind says. */
export interface ProgressOfAny {
  /** The position of the last entry that is done, in decimal digits; undefined where none is. */
  readonly completed: string | undefined
  /** How many numbers the log took up to `completed`, those of the parents included. */
  readonly number: number
  /**
   * Every number up to this one is published and committed: `number`, or further on inside the entry behind `completed`,
   * which is not done as a whole. Whoever comes to that entry steps what is beyond.
   */
  readonly doneThrough: number
  readonly sent: SentPositions
  readonly failing: Failing | undefined
  readonly suspect: Suspect | undefined
  /** How often the application was reset, from 1: see generation.ts. */
  readonly generation: number
  /** The log that this is progress of: see log-identity.ts. Undefined where its stream has no identity, or was not asked yet. */
  readonly log: string | undefined
}

/** Progress of a stage that feeds keyed stages, in one partition of its source. */
export interface SourceProgress extends ProgressOfAny {
  /** In ms since 1970 UTC; -Infinity where no record came yet. */
  readonly largestEventTimeMs: number
  /** When the record of the largest event time arrived, in ms since 1970 UTC; 0 where no record came yet. */
  readonly largestArrivedAtMs: number
  /** Records that arrived before do not count, in ms since 1970 UTC; undefined where all do. */
  readonly startsAtMs: number | undefined
}

/** What is known of one upstream. */
export interface UpstreamStatus {
  readonly upstream: Upstream
  /** 'idle' is one that never had a mark and takes no part in the minimum. */
  readonly state: 'open' | 'idle' | 'closed'
  /** The largest that it told, in ms since 1970 UTC; -Infinity where there is none. */
  readonly markMs: number
  /** When the log took in its close, in ms since 1970 UTC; 0 where it is not closed. */
  readonly closedAtMs: number
}

/** The operator states of a slot by their stored names. */
export type SlotStates = { readonly [storedName: string]: StateValue }

/** By slot, the least time for which any of its keys waits, in ms since 1970 UTC: a bound from below. */
export interface EarliestDue {
  readonly event: ReadonlyMap<number, number>
  readonly processing: ReadonlyMap<number, number>
}

/** How far the firings of keys at one number are done: up to and with the key of that hash, in the order of hashes. */
export interface FiringCut {
  readonly number: number
  readonly keyHash: string
}

/** Progress of a keyed stage in one partition of its stream. */
export interface KeyedProgress extends ProgressOfAny {
  /** How many slots the stage has. */
  readonly slots: number
  /** The slots that are in this partition, ascending. */
  readonly held: readonly number[]
  /** In ms since 1970 UTC; -Infinity until all upstreams are known and have marks. */
  readonly watermarkMs: number
  /**
   * What the partition's mark goes by until its first number is done, in ms since 1970 UTC: a parent that was behind left
   * something due, which that number fires. Undefined where that is the watermark.
   */
  readonly openingMarkMs: number | undefined
  /** True once the announcer told the upstreams: until then the watermark stays where it is. */
  readonly known: boolean
  /** By {@link upstreamKey}. */
  readonly upstreams: ReadonlyMap<string, UpstreamStatus>
  readonly memories: UpstreamMemories
  readonly operatorStates: ReadonlyMap<number, SlotStates>
  /** The largest time at which the log took in an entry, in ms since 1970 UTC: the stage's processing time. */
  readonly processingMs: number
  readonly earliest: EarliestDue
  /** Set while very many keys fire at the number behind `doneThrough`. */
  readonly firing: FiringCut | undefined
}

/** How far event time has come in a partition for whoever takes its results, in ms since 1970 UTC. */
export const reachedMarkMs = ({
  watermarkMs,
  openingMarkMs,
}: Pick<KeyedProgress, 'watermarkMs' | 'openingMarkMs'>): number => openingMarkMs ?? watermarkMs

/** The progress of a source partition without parents before its first record. */
export const blankSourceProgress: SourceProgress = {
  completed: undefined,
  number: 0,
  doneThrough: 0,
  largestEventTimeMs: Number.NEGATIVE_INFINITY,
  largestArrivedAtMs: 0,
  sent: new Map(),
  failing: undefined,
  suspect: undefined,
  generation: 1,
  log: undefined,
  startsAtMs: undefined,
}

/** The progress of a partition without parents before its first entry. */
export function blankKeyedProgress(slots: number, held: readonly number[]): KeyedProgress {
  return {
    slots,
    held,
    completed: undefined,
    number: 0,
    doneThrough: 0,
    watermarkMs: Number.NEGATIVE_INFINITY,
    openingMarkMs: undefined,
    known: false,
    upstreams: new Map(),
    memories: new UpstreamMemories(),
    sent: new Map(),
    failing: undefined,
    suspect: undefined,
    generation: 1,
    log: undefined,
    operatorStates: new Map(),
    processingMs: 0,
    earliest: { event: new Map(), processing: new Map() },
    firing: undefined,
  }
}
