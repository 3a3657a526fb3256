/**
 * What became of every input record, as one side sees it: the topology's output streams, or the batch scan. Both sides are
 * compared outcome by outcome, so each is one line of text under an identity that both know.
 */

export type OutcomeKind = 'clean' | 'rejected' | 'dead letter'
export const outcomeKinds: readonly OutcomeKind[] = ['clean', 'rejected', 'dead letter']

/** The kinds as people read them. */
export const outcomeLabels: Readonly<Record<OutcomeKind, string>> = {
  clean: 'clean',
  rejected: 'rejected',
  'dead letter': 'dead letters',
}

export interface Outcome {
  readonly kind: OutcomeKind
  /** The flight; for a dead letter the original payload in base64, since a record that cannot be read has no other name. */
  readonly identity: string
  /** The reason of a rejection, the code of a dead letter; empty for a clean flight. */
  readonly reason: string
  /** What the output says, in a form that both sides can make. */
  readonly content: string
}

/** Outcomes by kind and identity, each once. */
export class Outcomes {
  readonly #byKind = new Map<OutcomeKind, Map<string, Outcome>>(outcomeKinds.map((kind) => [kind, new Map()]))
  /** Outcomes that came again: deliveries are at least once. */
  repeats = 0
  /** Outcomes that came again with other content, which must not happen. */
  readonly contradictions: Outcome[] = []

  add(outcome: Outcome): void {
    const known = this.of(outcome.kind).get(outcome.identity)
    if (known === undefined) {
      this.#byKind.get(outcome.kind)?.set(outcome.identity, outcome)
      return
    }
    this.repeats += 1
    if (known.content !== outcome.content || known.reason !== outcome.reason) this.contradictions.push(outcome)
  }

  of(kind: OutcomeKind): ReadonlyMap<string, Outcome> {
    return this.#byKind.get(kind) ?? new Map()
  }

  get total(): number {
    return outcomeKinds.reduce((sum, kind) => sum + this.of(kind).size, 0)
  }

  /** How many outcomes of a kind have each reason, by the reason's name. */
  countsByReason(kind: OutcomeKind): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { reason } of this.of(kind).values()) counts.set(reason, (counts.get(reason) ?? 0) + 1)
    return new Map([...counts].sort(([one], [other]) => (one < other ? -1 : 1)))
  }
}

/** The content of a clean flight. */
export function cleanContent(fields: {
  readonly eventTime: string
  readonly delayMinutes: number
  readonly distanceMiles: number
  readonly origin: readonly string[]
  readonly destination: readonly string[]
}): string {
  const { eventTime, delayMinutes, distanceMiles, origin, destination } = fields
  return [eventTime, delayMinutes, distanceMiles, ...origin, ...destination].join('|')
}
