/**
 * The outputs that sinks refuse for good in one delivery, until it is known what became of the other outputs of their steps.
 *
 * 1. Each is a dead letter of its own. One that is alone in its step has the identity of its record; of several each has its own,
 *    by its sink and its place. Which are refused follows from their content, so every attempt gives them the same identities.
 * 2. A step of which something is to come again has none yet: all of it comes again, and then it is known how many they are.
 * 3. They are in the order of the records, of the sinks and of their places, however the sinks answer.
 */
import { encodeValue } from '../core/tagged-json.ts'
import type { GivenUp, RefusedOutput } from './dead-letter.ts'
import type { StepPlace } from './feed-lane.ts'
import type { Lane, Made } from './lane.ts'

/** An output that becomes a dead letter. */
export interface GivenUpOutput {
  /** The place of its record in the batch. */
  readonly ordinal: number
  readonly step: StepPlace | undefined
  readonly failure: GivenUp
  /** Tells the dead letters of one step apart. */
  readonly index: number
}

interface Refused {
  readonly lane: Lane
  readonly made: Made
  readonly error: Error
  /** The place of its sink among those of the stage. */
  readonly sink: number
}

/** Each step has a place of its own where a record may have several. */
const stepOf = ({ step, ordinal }: Made): unknown => step ?? ordinal

export class RefusedOutputs {
  readonly #lanes: readonly Lane[]
  readonly #steps = new Map<unknown, Refused[]>()
  readonly #returning = new Set<unknown>()

  constructor(lanes: readonly Lane[]) {
    this.#lanes = lanes
  }

  /** A sink refused an output for good. */
  add(lane: Lane, made: Made, error: Error): void {
    const refused = { lane, made, error, sink: this.#lanes.indexOf(lane) }
    const others = this.#steps.get(stepOf(made))
    if (others) others.push(refused)
    else this.#steps.set(stepOf(made), [refused])
  }

  /** An output was not taken for now. */
  comesAgain(made: Made): void {
    this.#returning.add(stepOf(made))
  }

  /** What becomes dead letters, once all sinks have answered. */
  givenUp(): readonly GivenUpOutput[] {
    if (this.#steps.size === 0) return []
    const decided = [...this.#steps].filter(([step]) => !this.#returning.has(step)).map(([, refused]) => refused)
    decided.sort(([a], [b]) => (a as Refused).made.ordinal - (b as Refused).made.ordinal)
    return decided.flatMap((refused) => {
      const isOneOfSeveral = refused.length > 1
      refused.sort((a, b) => a.sink - b.sink || a.made.index - b.made.index)
      return refused.map(({ lane, made, error, sink }): GivenUpOutput => {
        const { ordinal, step, index: place } = made
        const failure = {
          error,
          phase: 'sink',
          attempts: 1,
          output: refusedOutput(lane, made),
          isOneOfSeveral,
        } as const
        return { ordinal, step, failure, index: isOneOfSeveral ? place * this.#lanes.length + sink + 1 : 0 }
      })
    })
  }
}

function refusedOutput({ name }: Lane, { index, value, timer }: Made): RefusedOutput {
  return { sink: name, index, value: written(value, name), ...(timer && { timer }) }
}

/** Null for what is not at hand any more, and for what JSON cannot hold, such as what a sink of the user's own takes. */
function written(value: unknown, sink: string): string | null {
  if (value === undefined) return null
  try {
    return Buffer.from(encodeValue(value, `sink "${sink}"`)).toString('base64')
  } catch {
    return null
  }
}
