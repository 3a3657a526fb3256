/**
 * The outputs that sinks refuse for good in one delivery, until it is known what became of the other outputs of their steps.
 *
 * 1. Each is a dead letter of its own, named by its record, its sink and its place: every attempt gives it the same identity.
 * 2. The first one of a step holds the record, whose bytes would else be sent as often as outputs are refused; the others name it. Which
 *    are refused follows from their content, so every attempt gives them the same bytes. Of a step of which something is to come again
 *    that is not known yet: all of it comes again, and then it is.
 * 3. They are in the order of the records, of the steps at a record, of the sinks and of their places, however the sinks answer.
 * 4. They are made and sent in parts: what is refused may be all that waits, and is not held a second time.
 */
import type { DeadLetter, GivenUp, OutputName, RefusedOutput } from './dead-letter.ts'
import type { StepPlace } from './feed-lane.ts'
import type { Lane, Made } from './lane.ts'

/** An output that becomes a dead letter. */
export interface GivenUpOutput {
  /** The place of its record in the batch. */
  readonly ordinal: number
  readonly step: StepPlace | undefined
  readonly failure: GivenUp
  /** Tells the dead letters of one step apart, and from that of its record, which has 0. */
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

  /** Makes dead letters with `put`, once all sinks have answered, and sends them in parts with `send`. */
  async giveUp(put: (output: GivenUpOutput) => DeadLetter | undefined, send: () => Promise<void>): Promise<void> {
    let [letters, characters] = [0, 0]
    for (const output of this.#givenUp()) {
      const letter = put(output)
      if (letter === undefined) continue
      letters++
      characters += charactersOf(letter)
      if (letters < lettersPerPart && characters < charactersPerPart) continue
      await send()
      ;[letters, characters] = [0, 0]
    }
    if (letters > 0) await send()
  }

  *#givenUp(): Iterable<GivenUpOutput> {
    const decided = [...this.#steps].filter(([step]) => !this.#returning.has(step)).map(([, refused]) => refused)
    decided.sort(([a], [b]) => byStep(a as Refused, b as Refused))
    for (const refused of decided) {
      // Those of one sink are in order: it answers for all of them at once.
      refused.sort((a, b) => a.sink - b.sink)
      const [first] = refused as [Refused]
      for (const one of refused) yield this.#outputOf(one, one === first ? undefined : first)
    }
  }

  #outputOf({ lane, made, error, sink }: Refused, first: Refused | undefined): GivenUpOutput {
    const { ordinal, step, index } = made
    const output = refusedOutput(lane, made)
    const failure: GivenUp = { error, phase: 'sink', attempts: 1, output, first: first && nameOf(first) }
    return { ordinal, step, failure, index: index * this.#lanes.length + sink + 1 }
  }
}

/** What the requests that are under way at a time take of most places for dead letters. */
const lettersPerPart = 1_000
const charactersPerPart = 4 * 1_048_576

const charactersOf = ({ key, payload, headers, output, reason }: DeadLetter): number =>
  [key, payload, output?.value, reason.message, ...headers.map(({ value }) => value)].reduce(
    (sum, text) => sum + (text?.length ?? 0),
    0,
  )

/** Of the steps at one record those of other keys come first, in the order of their hashes. */
function byStep({ made: a }: Refused, { made: b }: Refused): number {
  if (a.ordinal !== b.ordinal) return a.ordinal - b.ordinal
  const [one, other] = [a.step?.keyHash ?? lastHash, b.step?.keyHash ?? lastHash]
  return one < other ? -1 : 1
}

/** Behind all hexadecimal digits. */
const lastHash = '~'

const nameOf = ({ lane, made }: Refused): OutputName => ({ sink: lane.name, index: made.index })

function refusedOutput({ name }: Lane, { index, value, timer }: Made): RefusedOutput {
  const text = value?.text ?? null
  return { sink: name, index, value: text && Buffer.from(text).toString('base64'), ...(timer && { timer }) }
}
