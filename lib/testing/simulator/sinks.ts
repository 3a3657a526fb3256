/**
 * The outside world of a run: sinks that keep everything that was ever delivered to them, with its identity, in the order
 * of its arrival. Outputs may be refused in part, or taken while the answer says refused.
 */
import { RetryableError, TerminalError } from '../../core/errors.ts'
import { outputIdentity } from '../../core/record.ts'
import { type DeliveryCall, delivered, type Outcome, type Output, type Sink } from '../../runtime/sink.ts'
import type { Faults } from './faults.ts'
import type { Random } from './random.ts'
import type { Owner, Scheduler } from './scheduler.ts'
import { outOfTime } from './streams.ts'

/** One output as it arrived. */
export interface Delivery {
  readonly sink: string
  readonly identity: string
  /** The coordinates in the identity. */
  readonly source: string
  readonly partition: string
  readonly position: string
  readonly index: number
  readonly key: string | undefined
  /** The value as JSON. */
  readonly content: string
}

/** One output as it arrived, with what the sink noted of it. */
export interface Arrival extends Delivery {
  /** Whether it was begun to be delivered when its invocation was past its deadline. */
  readonly isBegunLate: boolean
}

interface Item {
  readonly delivery: Delivery
  readonly orderKey: string
  readonly isRejected: boolean
}

export interface RecordingSinkOptions {
  readonly owner: Owner
  readonly scheduler: Scheduler
  readonly random: Random
  readonly faults: () => Faults
  /** Where deliveries are kept, for all environments. */
  readonly deliveries: Arrival[]
  /** Whether the sink never takes a value of so many cents. */
  readonly rejects: (cents: number) => boolean
  readonly count: (name: string) => void
}

/** The sink of one name as one environment sees it. */
export function recordingSink(name: string, options: RecordingSinkOptions): Sink<unknown, Item> {
  const { owner, scheduler, random, faults, deliveries, rejects, count } = options
  const deliverSome = (items: readonly Item[], isBegunLate: boolean): readonly Outcome[] => {
    const { refusedItem, lostAcknowledgement } = faults()
    // Nothing of a key overtakes an item of it that was refused.
    const heldUp = new Set<string>()
    return items.map(({ delivery, orderKey, isRejected }) => {
      if (isRejected) return { status: 'rejected', error: new TerminalError('the sink never takes this') }
      if (heldUp.has(orderKey)) return { status: 'retry', error: new RetryableError('behind a refused item') }
      const isRefused = random.chance(refusedItem / 4)
      if (!isRefused) deliveries.push({ ...delivery, isBegunLate })
      if (!isRefused && !random.chance(lostAcknowledgement / 4)) return delivered
      count(isRefused ? 'refused output' : 'output taken without an answer')
      heldUp.add(orderKey)
      return { status: 'retry', error: new RetryableError('refused by the simulator') }
    })
  }
  return {
    prepare({ value, key, record, index }: Output): Item {
      const content = contentOf(value)
      const { source, partition, position } = record
      const identity = `${name}:${outputIdentity(record, index)}`
      const delivery = { sink: name, identity, source, partition, position, index, key, content }
      const isRejected = rejects((value as { readonly cents?: number }).cents ?? 0)
      return { delivery, orderKey: key ?? partition, isRejected }
    },
    async deliver(items: readonly Item[], { signal }: DeliveryCall) {
      const retry = (): Outcome => ({ status: 'retry', error: outOfTime(`sink "${name}"`) })
      if (signal.aborted) return items.map(retry)
      const isBegunLate = scheduler.clockOf(owner).nowMs() > owner.deadlineMs
      return scheduler.call(
        owner,
        `deliver to ${name}`,
        () => deliverSome(items, isBegunLate),
        () =>
          items.map(({ delivery: { partition, position, index } }) => `${partition}/${position}/${index}`).join(' '),
      )
    },
  }
}

/** A value as JSON with its properties in one order: what was in a table comes back with them sorted. */
export function contentOf(value: unknown): string {
  if (typeof value === 'number') return Number.isFinite(value) ? `${value}` : 'null'
  if (typeof value === 'string') return quoted(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined'
  if (Array.isArray(value)) return `[${value.map(contentOf).join(',')}]`
  if (value instanceof Map) return contentOf(Object.fromEntries(value))
  // Each output goes through here: text that grows costs half of what lists of parts would.
  let fields = ''
  for (const name of sortedNames(value)) {
    const separator = fields === '' ? '' : ','
    fields += `${separator}${quoted(name)}:${contentOf((value as { [name: string]: unknown })[name])}`
  }
  return `{${fields}}`
}

/** Text that JSON has as it is, between quotes: to ask takes less than to have it made. */
const plain = /^[ !#-[\]-~]*$/
const quoted = (text: string): string => (plain.test(text) ? `"${text}"` : JSON.stringify(text))

function sortedNames(value: object): readonly string[] {
  const names = Object.keys(value)
  return names.every((name, i) => i === 0 || (names[i - 1] as string) <= name) ? names : names.sort()
}
