/** Turns what the output streams hold back into outcomes, and keeps an example of each rejection and dead letter. */
import type { CleanFlight, RejectedFlight } from '../../functions/flights/schema.ts'
import { deadLetterOutput } from '../../lib/local/run/application.ts'
import type { DeadLetter } from '../../lib/runtime/dead-letter.ts'
import { HourOutputs } from './hour-outputs.ts'
import { cleanContent, type Outcome, Outcomes } from './outcomes.ts'

/** A bad record in the words of its output. */
export interface Example {
  readonly kind: 'rejected' | 'dead letter'
  /** The reason of the rejection or the code of the dead letter. */
  readonly reason: string
  /** What the output says about it. */
  readonly message: string
  /** The report, or the original bytes of a dead letter. */
  readonly payload: Buffer
}

export class OutputReader {
  readonly outcomes = new Outcomes()
  readonly hours = new HourOutputs()
  readonly #examples = new Map<string, Example>()

  /** Takes records of one output stream. */
  take(output: string, records: readonly { readonly data: Uint8Array }[]): void {
    for (const { data } of records) {
      const value = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString())
      if (output === deadLetterOutput) this.#takeDeadLetter(value)
      else if (output === 'flights-rejected') this.#takeRejected(value)
      else if (output === 'hourly-delays') this.hours.takeHour(value)
      else if (output === 'late-flights') this.hours.takeLate(value)
      else this.outcomes.add(cleanOutcome(value))
    }
  }

  /** One example per reason: rejections first, each by the reason's name. */
  get examples(): readonly Example[] {
    const byReason = [...this.#examples.values()].sort((one, other) => (one.reason < other.reason ? -1 : 1))
    return ['rejected', 'dead letter'].flatMap((kind) => byReason.filter((example) => example.kind === kind))
  }

  #takeRejected({ flight, reason, message, report }: RejectedFlight): void {
    const content = JSON.stringify(report)
    this.outcomes.add({ kind: 'rejected', identity: flight, reason, content })
    this.#show({ kind: 'rejected', reason, message, payload: Buffer.from(content) })
  }

  #takeDeadLetter({ payload, reason, partition, position }: DeadLetter): void {
    const identity = payload ?? ''
    this.outcomes.add({ kind: 'dead letter', identity, reason: reason.code, content: '' })
    this.#show({
      kind: 'dead letter',
      reason: reason.code,
      message: `${reason.message} (${partition} at ${position})`,
      payload: Buffer.from(identity, 'base64'),
    })
  }

  #show(example: Example): void {
    if (!this.#examples.has(example.reason)) this.#examples.set(example.reason, example)
  }
}

function cleanOutcome({ flight, eventTime, delayMinutes, distanceMiles, origin, destination }: CleanFlight): Outcome {
  const content = cleanContent({
    eventTime,
    delayMinutes,
    distanceMiles,
    origin: [origin.code, origin.name, origin.city, origin.state],
    destination: [destination.code, destination.name, destination.city, destination.state],
  })
  return { kind: 'clean', identity: flight, reason: '', content }
}
