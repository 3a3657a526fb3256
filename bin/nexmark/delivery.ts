/** In which order events are delivered: as they happen, or each held back for a while. */
import { EventMaker, type GeneratorOptions } from './event-at.ts'
import { Random } from './random.ts'

export interface DeliveryOptions extends GeneratorOptions {
  readonly events: number
  /** Each event is held back by less than this, so it trails the newest one delivered by less. @default 0 */
  readonly disorderMs?: number
}

interface Held {
  readonly number: number
  readonly deliveredAtMs: number
}

/** The numbers of the events in the order of their delivery. The events themselves do not depend on the disorder. */
export function* deliveryOrder(options: DeliveryOptions): Generator<number> {
  const { events, seed, disorderMs = 0 } = options
  if (disorderMs === 0) {
    for (let number = 0; number < events; number++) yield number
    return
  }
  const maker = new EventMaker(options)
  const random = new Random()
  let held: Held[] = []
  let sortedAtMs = maker.eventTimeMs(0)
  for (let number = 0; number < events; number++) {
    const eventTimeMs = maker.eventTimeMs(number)
    // Whatever comes from here on is delivered later than what is due by now. Sorting now and then is enough.
    if (eventTimeMs >= sortedAtMs + disorderMs) {
      yield* inOrder(held.filter(({ deliveredAtMs }) => deliveredAtMs < eventTimeMs))
      held = held.filter(({ deliveredAtMs }) => deliveredAtMs >= eventTimeMs)
      sortedAtMs = eventTimeMs
    }
    const delayMs = random.restart('delay', seed, number).below(disorderMs)
    held.push({ number, deliveredAtMs: eventTimeMs + delayMs })
  }
  yield* inOrder(held)
}

function inOrder(due: Held[]): Iterable<number> {
  due.sort((a, b) => a.deliveredAtMs - b.deliveredAtMs || a.number - b.number)
  return due.map(({ number }) => number)
}

/** The lines of an event file, in the order of their delivery, without line ends. */
export function* eventLines(options: DeliveryOptions): Generator<string> {
  const maker = new EventMaker(options)
  for (const number of deliveryOrder(options)) yield JSON.stringify(maker.eventAt(number))
}
