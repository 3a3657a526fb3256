/**
 * The part of a reset that the runtime answers for: every stage begins its next generation (generation.ts), and loses what it kept.
 *
 * 1. `begin` holds all stages, `fence` takes their progress, and again when whatever began before has ended. Then keys are deleted, and
 *    `release` lets partitions begin. What began before the first fence cannot write progress where there was any; the second takes
 *    what it left where there was none. Until the release no source sends anything of the new generation.
 * 2. Where a reset is cut off, sources wait, and say why: no record passes by stages that were reset and others that were not.
 * 3. It is done again as a whole then: each takes a generation of its own.
 */
import { RetryableError } from '../../core/errors.ts'
import type { StateStore } from '../../state/state-store.ts'
import { type Generation, readGeneration, resetKeyed, resetSource, writeGeneration } from './generation.ts'
import { keyedFormat, sourceFormat } from './progress-format.ts'

/** A stage that keeps progress. */
export interface ResettableStage {
  readonly name: string
  readonly kind: 'feeding' | 'keyed'
  readonly store: StateStore
  /** The names under which progress of the stage is stored, whether their partitions are still there or not. */
  progressNames(signal: AbortSignal): Promise<readonly string[]>
}

/** A generation, and from when on the records of sources count in it, by their arrival, in ms since 1970 UTC. */
export interface StartingGeneration {
  readonly generation: number
  readonly startsAtMs: number
}

/** The generation behind the largest that any of the stages has come to. */
export async function nextGeneration(stages: readonly ResettableStage[], signal: AbortSignal): Promise<number> {
  let largest = 1
  for (const { store, name } of stages)
    largest = Math.max(largest, (await readGeneration(store, name, signal)).generation)
  return largest + 1
}

/** Holds every stage in the next generation, which was not there before; {@link fence} is to follow. */
export const begin = (
  stages: readonly ResettableStage[],
  generation: StartingGeneration,
  signal: AbortSignal,
): Promise<void> => writeAll(stages, { ...generation, isHeld: true }, signal)

/** Lets partitions begin, once everything that was kept is gone. */
export const release = (
  stages: readonly ResettableStage[],
  generation: StartingGeneration,
  signal: AbortSignal,
): Promise<void> => writeAll(stages, generation, signal)

async function writeAll(
  stages: readonly ResettableStage[],
  generation: Generation,
  signal: AbortSignal,
): Promise<void> {
  for (const { store, name, kind } of stages) {
    // Only sources begin at a time.
    const own = kind === 'feeding' ? generation : { ...generation, startsAtMs: undefined }
    await writeGeneration(store, name, own, signal)
  }
}

/**
 * Writes what a reset leaves over all progress of older generations. Stages are given each behind those that feed it. Throws a
 * RetryableError where a partition goes on so fast that no write is taken.
 *
 * @example
 * await begin(stages, generation, signal)
 * await fence(stages, generation, signal)
 * await whatBeganHasEnded()
 * await fence(stages, generation, signal)
 * await deleteKeys()
 * await release(stages, generation, signal)
 */
export async function fence(
  stages: readonly ResettableStage[],
  generation: StartingGeneration,
  signal: AbortSignal,
): Promise<void> {
  for (const stage of stages) {
    for (const name of await stage.progressNames(signal)) await fenceOne(stage, name, generation, signal)
  }
}

/** A stage in full flight writes progress a few times a second. */
const mostTries = 20

async function fenceOne(
  stage: ResettableStage,
  name: string,
  generation: StartingGeneration,
  signal: AbortSignal,
): Promise<void> {
  for (let tries = 0; tries < mostTries; tries++) {
    const stored = await stage.store.readProgress(name, signal)
    if (stored === undefined) return
    const value = stage.kind === 'keyed' ? keyedFrom(stored.value, generation) : sourceFrom(stored.value, generation)
    if (value === undefined || (await stage.store.writeProgress(name, stored.version, value, signal))) return
  }
  throw new RetryableError(
    `progress ${name} was written by its stage ${mostTries} times meanwhile: pause the stage, and run \`millrace reset\` again`,
    { code: 'reset-underway' },
  )
}

type Value = Parameters<typeof keyedFormat.read>[0]

function keyedFrom(value: Value, generation: StartingGeneration): Value | undefined {
  const progress = keyedFormat.read(value)
  return progress.generation < generation.generation ? keyedFormat.write(resetKeyed(progress, generation)) : undefined
}

function sourceFrom(value: Value, generation: StartingGeneration): Value | undefined {
  const progress = sourceFormat.read(value)
  return progress.generation < generation.generation ? sourceFormat.write(resetSource(generation)) : undefined
}
