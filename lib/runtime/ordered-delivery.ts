/**
 * Gets the items of one batch to a destination that takes several per request and may refuse any of them.
 *
 * 1. Of items with one order key at most one is unacknowledged, so nothing overtakes an item that was refused.
 * 2. A refused item is sent again after a random part of a doubling delay; items of other keys go on meanwhile.
 * 3. What passes by itself (throttles, lost connections) is tried until the signal aborts. Anything else ends the
 *    delivery at once, as a retry of every item that is not acknowledged: a wrong permission makes no dead letters.
 * 4. Once the signal aborts no request starts, those in flight are awaited, and the rest is a retry.
 */
import type { Clock } from '../core/clock.ts'
import { errorOf, RetryableError } from '../core/errors.ts'
import type { Logger } from './ports.ts'
import { delivered, type Outcome } from './sink.ts'

/** What became of one item of one request: an outcome, or a refusal after which it is sent again. */
export type Answer = Outcome | { readonly status: 'refused'; readonly error: Error }

/** Where items go, and how many fit in a request. */
export interface Destination<Item> {
  /** How messages call it, such as `stream "flights-clean"`. */
  readonly label: string
  readonly maxItemsPerRequest: number
  readonly maxBytesPerRequest: number
  /** Requests in flight at a time. */
  readonly maxRequests: number
  sizeOf(item: Item): number
  /** Items with equal keys stay in order; undefined where order does not matter. */
  readonly orderKeyOf: ((item: Item) => string) | undefined
  /** Sends one request. Undefined says that all items were taken, else there is an answer for each. */
  send(items: readonly Item[]): Promise<readonly Answer[] | undefined>
}

/** The ports of a delivery. */
export interface DeliveryPorts {
  readonly clock: Clock
  readonly logger: Logger
  /** A number in [0, 1). */
  readonly random: () => number
  /** True for what a destination throws where the same request may succeed later. */
  readonly passesByItself: (thrown: unknown) => boolean
}

const firstDelayMs = 50
const longestDelayMs = 3_200

/** A random part of a delay that doubles with each attempt ("full jitter"), so that refused senders spread out. */
export function backoffMs(attempt: number, random: () => number): number {
  return random() * Math.min(longestDelayMs, firstDelayMs * 2 ** (attempt - 1))
}

const indexAt = ({ indexes, from }: Request<unknown>, place: number): number =>
  indexes === undefined ? from + place : (indexes[place] as number)

/** How many keys may meet in the table below before a set decides. */
const longestProbe = 16

/** A number made of a key's length and of some of its characters: most different keys differ in it. */
function fingerprint(key: string): number {
  const end = key.length
  let print = end
  print = Math.imul(print, 31) + key.charCodeAt(end - 1)
  print = Math.imul(print, 31) + key.charCodeAt(end - 2)
  print = Math.imul(print, 31) + key.charCodeAt(end - 3)
  print = Math.imul(print, 31) + key.charCodeAt(end >> 1)
  print = Math.imul(print, 31) + key.charCodeAt(end >> 2)
  return print ^ (print >>> 13)
}

/**
 * The usual case: no two items of a batch share a key, so there is no order to keep. A set of a thousand new strings
 * takes longer than all else that is done to them here, so keys are told apart by fingerprint, and compared whole only
 * where those agree; where many agree, a set decides.
 */
function keysAreDistinct<Item>(items: readonly Item[], orderKeyOf: (item: Item) => string): boolean {
  const mask = 2 ** Math.ceil(Math.log2(items.length + 1) + 1) - 1
  const places = new Array<number>(mask + 1).fill(0)
  for (let i = 0; i < items.length; i++) {
    const key = orderKeyOf(items[i] as Item)
    let place = fingerprint(key) & mask
    for (let probes = 0; places[place] !== 0; place = (place + 1) & mask) {
      if (orderKeyOf(items[(places[place] as number) - 1] as Item) === key) return false
      if (++probes > longestProbe) return new Set(items.map(orderKeyOf)).size === items.length
    }
    places[place] = i + 1
  }
  return true
}

/** One request's worth of items, and where they stand among all. */
interface Request<Item> {
  readonly items: readonly Item[]
  /** The index of each item; undefined where they follow each other from `from` on. */
  readonly indexes: readonly number[] | undefined
  readonly from: number
}

class OrderedDelivery<Item> {
  readonly #items: readonly Item[]
  readonly #destination: Destination<Item>
  readonly #ports: DeliveryPorts
  readonly #signal: AbortSignal
  readonly #outcomes: (Outcome | undefined)[]
  /** How many items have an outcome. */
  #settled = 0
  /** The next item of the same key, by index; 0 where there is none. Undefined where no two items share a key. */
  readonly #next: Uint32Array | undefined
  /** The first item that was never sent: without keys in common all from here on may be sent now. */
  #unsent = 0
  /** Further indexes of items that may be sent now. */
  #ready: number[] = []
  #requests = 0
  readonly #active = new Set<Promise<void>>()
  readonly #refusals = new Map<number, { attempts: number; error: Error }>()
  #stopped: Error | undefined

  constructor(items: readonly Item[], destination: Destination<Item>, ports: DeliveryPorts, signal: AbortSignal) {
    this.#items = items
    this.#destination = destination
    this.#ports = ports
    this.#signal = signal
    this.#outcomes = new Array<Outcome | undefined>(items.length).fill(undefined)
    const { orderKeyOf } = destination
    if (!orderKeyOf || keysAreDistinct(items, orderKeyOf)) return
    this.#next = this.#chain(orderKeyOf)
    this.#unsent = items.length
  }

  async run(): Promise<readonly Outcome[]> {
    if (this.#next === undefined && this.#items.length > 0 && !this.#signal.aborted) {
      // A batch that fits in one request, as most do, has nothing to schedule while that is in flight.
      const first = this.#request(this.#takeUnsent())
      if (this.#unsent === this.#items.length) await first
      else this.#track(first)
    }
    this.#startRequests()
    while (this.#active.size > 0) {
      await Promise.race(this.#active)
      this.#startRequests()
    }
    this.#report()
    if (this.#settled === this.#items.length) return this.#outcomes as Outcome[]
    return this.#outcomes.map((outcome, index) => outcome ?? { status: 'retry', error: this.#whyNot(index) })
  }

  /** Links the items of each key; the first of each is ready. */
  #chain(orderKeyOf: (item: Item) => string): Uint32Array {
    const next = new Uint32Array(this.#items.length)
    const last = new Map<string, number>()
    for (const [index, item] of this.#items.entries()) {
      const key = orderKeyOf(item)
      const previous = last.get(key)
      if (previous === undefined) this.#ready.push(index)
      else next[previous] = index
      last.set(key, index)
    }
    return next
  }

  #startRequests(): void {
    const { maxRequests } = this.#destination
    while (!this.#stopped && !this.#signal.aborted && this.#requests < maxRequests) {
      const request = this.#ready.length > 0 ? this.#takeReady() : this.#takeUnsent()
      if (request.items.length === 0) return
      this.#track(this.#request(request))
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#active.delete(tracked))
    this.#active.add(tracked)
  }

  /** How many of the items that `at` names, from place 0 on, fit in one request: at least one, if there is one. */
  #fitting(count: number, at: (place: number) => number): number {
    const { maxItemsPerRequest, maxBytesPerRequest } = this.#destination
    const most = Math.min(count, maxItemsPerRequest)
    let bytes = 0
    for (let place = 0; place < most; place++) {
      bytes += this.#destination.sizeOf(this.#items[at(place)] as Item)
      if (place > 0 && bytes > maxBytesPerRequest) return place
    }
    return most
  }

  #takeUnsent(): Request<Item> {
    const from = this.#unsent
    this.#unsent += this.#fitting(this.#items.length - from, (place) => from + place)
    return { items: this.#items.slice(from, this.#unsent), indexes: undefined, from }
  }

  #takeReady(): Request<Item> {
    const indexes = this.#ready.splice(
      0,
      this.#fitting(this.#ready.length, (place) => this.#ready[place] as number),
    )
    return { items: indexes.map((index) => this.#items[index] as Item), indexes, from: 0 }
  }

  async #request(request: Request<Item>): Promise<void> {
    this.#requests++
    try {
      this.#settle(request, await this.#destination.send(request.items))
    } catch (thrown) {
      const error = errorOf(thrown)
      if (this.#ports.passesByItself(thrown)) {
        this.#rest(request.items.map((_, place) => this.#refuse(indexAt(request, place), error)))
      } else {
        this.#stopped ??= new RetryableError(
          `${this.#destination.label} cannot be written to (${error.name}: ${error.message}): check its name, its settings and the permissions of the function`,
          { code: 'sink-misconfigured', cause: error },
        )
      }
    } finally {
      this.#requests--
    }
  }

  #settle(request: Request<Item>, answers: readonly Answer[] | undefined): void {
    if (answers === undefined && request.indexes === undefined) {
      this.#outcomes.fill(delivered, request.from, request.from + request.items.length)
      this.#settled += request.items.length
      return
    }
    const refused: number[] = []
    for (let place = 0; place < request.items.length; place++) {
      const index = indexAt(request, place)
      const answer = answers === undefined ? delivered : answers[place]
      if (answer === undefined || answer.status === 'refused') {
        refused.push(this.#refuse(index, answer?.error ?? new Error('the answer says nothing of this item')))
        continue
      }
      this.#outcomes[index] = answer
      this.#settled++
      if (answer.status === 'retry') continue
      const next = this.#next?.[index]
      if (next) this.#ready.push(next)
    }
    if (refused.length > 0) this.#rest(refused)
  }

  #refuse(index: number, error: Error): number {
    this.#refusals.set(index, { attempts: (this.#refusals.get(index)?.attempts ?? 0) + 1, error })
    return index
  }

  /** Makes refused items ready again after a while. */
  #rest(indexes: readonly number[]): void {
    const { clock, random } = this.#ports
    const attempts = Math.max(...indexes.map((index) => this.#refusals.get(index)?.attempts ?? 1))
    const rested = clock.sleep(backoffMs(attempts, random), this.#signal)
    this.#track(rested.then(() => void this.#ready.push(...indexes)))
  }

  #whyNot(index: number): Error {
    const refusal = this.#refusals.get(index)?.error
    if (this.#stopped) return this.#stopped
    return new RetryableError(
      `${this.#destination.label} did not take the item before the deadline${refusal ? ` (${refusal.message})` : ''}`,
      { code: 'sink-deadline', ...(refusal ? { cause: refusal } : {}) },
    )
  }

  /** One line for the whole delivery, however often it was refused. */
  #report(): void {
    const { logger } = this.#ports
    if (this.#stopped) {
      // Without the service's own words: they may quote a key or a value.
      const { name } = this.#stopped.cause as Error
      logger.error(`${this.#destination.label} cannot be written to: check its name, settings and permissions`, {
        error: name,
      })
    }
    if (this.#refusals.size === 0) return
    const refusals = [...this.#refusals.values()]
    logger.warn(`${this.#destination.label} refused items, which were sent again`, {
      items: refusals.length,
      attempts: refusals.reduce((sum, { attempts }) => sum + attempts, 0),
      reasons: [...new Set(refusals.map(({ error }) => error.name))],
    })
  }
}

/**
 * Delivers items by the four invariants above and answers for each by index. It does not reject for what a destination
 * throws.
 */
export function deliverInOrder<Item>(
  items: readonly Item[],
  destination: Destination<Item>,
  ports: DeliveryPorts,
  signal: AbortSignal,
): Promise<readonly Outcome[]> {
  return new OrderedDelivery(items, destination, ports, signal).run()
}
