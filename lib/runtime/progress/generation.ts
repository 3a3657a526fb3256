/**
 * Generations: how often an application was reset, counted from 1. `millrace reset` empties the state of every stage and has the sources
 * read again from some time; docs/operating.md has the whole of it, docs/progress.md the rules, as R1 to R6:
 *
 * 1. Frames and marks name their upstream with its generation (`orders@2`), but for the first. A reader takes those of its own only:
 *    older ones are dropped, record by record; a newer one waits for the reset to be finished (RetryableError `newer-generation`).
 * 2. What generation a partition is of stands in its progress, so it is read with every batch and outlives no reset.
 * 3. A partition without progress reads the generation of its stage, from an item beside the progress of partitions. While a reset is at
 *    work that item says so, and the partition waits (RetryableError `reset-underway`): nothing of the next generation is sent
 *    before all that was kept is gone.
 * 4. A reset writes progress over what it was, one version on: whoever began before loses, and no warm key is good any more.
 * 5. The numbers of a keyed partition go on: what is computed again has a larger number than what it replaces in a sink.
 * 6. Records of a source that arrived before the time of the reset take numbers, and nothing else.
 */
import { RetryableError } from '../../core/errors.ts'
import type { StateStore, StateValue } from '../../state/state-store.ts'
import {
  blankKeyedProgress,
  blankSourceProgress,
  type KeyedProgress,
  type ProgressOfAny,
  type SourceProgress,
} from './progress.ts'

/** One generation of a stage. */
export interface Generation {
  /** From 1. */
  readonly generation: number
  /** Of a stage that reads a source: which records count, by their arrival, in ms since 1970 UTC. @default all of them */
  readonly startsAtMs?: number | undefined
  /** A reset is at work, and no partition begins. @default false */
  readonly isHeld?: boolean
}

/** What a stage is of that was never reset. */
export const firstGeneration: Generation = { generation: 1 }

const generationFormat = 1

/** The name under which the generation of a stage is stored, beside the progress of its partitions. */
export const generationName = (stage: string): string => `${stage}@generation`

/** The generation that a partition without progress begins with. */
export async function readGeneration(store: StateStore, stage: string, signal: AbortSignal): Promise<Generation> {
  return (await storedGeneration(store, stage, signal)).generation
}

async function storedGeneration(store: StateStore, stage: string, signal: AbortSignal) {
  const stored = await store.readProgress(generationName(stage), signal)
  if (stored === undefined) return { version: 0, generation: firstGeneration }
  return { version: stored.version, generation: generationIn(stored.value, stage) }
}

/** The generation that is stored of a stage. Throws a RetryableError where a newer release wrote it. */
export function generationIn(value: StateValue, stage: string): Generation {
  const { format, generation, startsAtMs, isHeld } = value as { readonly [name: string]: StateValue }
  if (typeof generation !== 'number' || typeof format !== 'number' || format > generationFormat) {
    throw new RetryableError(
      `the generation of stage "${stage}" was written by a newer release of Millrace (format ${format}): deploy that release`,
      { code: 'newer-format' },
    )
  }
  return {
    generation,
    ...(typeof startsAtMs === 'number' ? { startsAtMs } : {}),
    ...(isHeld === true && { isHeld }),
  }
}

/**
 * Writes the generation of a stage: partitions without progress are of it from then on. Throws a RetryableError where that or a later
 * one is there already, but held.
 */
export async function writeGeneration(
  store: StateStore,
  stage: string,
  { generation, startsAtMs, isHeld = false }: Generation,
  signal: AbortSignal,
): Promise<void> {
  const { version, generation: found } = await storedGeneration(store, stage, signal)
  const isNext = found.generation < generation || (found.generation === generation && found.isHeld === true && !isHeld)
  const value = {
    format: generationFormat,
    generation,
    ...(startsAtMs === undefined ? {} : { startsAtMs }),
    ...(isHeld ? { isHeld } : {}),
  }
  if (isNext && (await store.writeProgress(generationName(stage), version, value, signal))) return
  throw new RetryableError(
    `stage "${stage}" is being reset by somebody else: run \`millrace reset\` again when that has ended`,
    { code: 'reset-underway' },
  )
}

/** The name of a stage as an upstream of the stages that it feeds. */
export const upstreamName = (stage: string, generation: number): string =>
  generation === 1 ? stage : `${stage}@${generation}`

/** The stage and the generation in the name of an upstream. */
export function upstreamOf(name: string): { readonly stage: string; readonly generation: number } {
  const at = name.lastIndexOf('@')
  return at < 0 ? { stage: name, generation: 1 } : { stage: name.slice(0, at), generation: Number(name.slice(at + 1)) }
}

/** Whether anything was made of the partition in its generation: what a reset of it has left is as good as none. */
export const hasBegun = ({ generation, completed, number, doneThrough, failing, suspect }: ProgressOfAny): boolean =>
  generation === 1 ||
  completed !== undefined ||
  number > 0 ||
  doneThrough > 0 ||
  failing !== undefined ||
  suspect !== undefined

/** What a reset leaves of the progress of a source partition: nothing, but that it begins anew, and with what. */
export const resetSource = ({ generation, startsAtMs }: Generation): SourceProgress => ({
  ...blankSourceProgress,
  generation,
  startsAtMs,
})

/** What a reset leaves of the progress of a keyed stage: its place in the log, and the numbers that were given. */
export const resetKeyed = (
  { slots, held, completed, number, processingMs, log }: KeyedProgress,
  { generation }: Generation,
): KeyedProgress => ({
  ...blankKeyedProgress(slots, held),
  completed,
  number,
  doneThrough: number,
  processingMs,
  generation,
  log,
})
