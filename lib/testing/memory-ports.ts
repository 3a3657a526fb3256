/** Ports that keep everything in memory, for tests that invoke the real handler. */
import { describeError, RetryableError, TerminalError } from '../core/errors.ts'
import { refuseLossy } from '../core/lossless.ts'
import { outputIdentity } from '../core/record.ts'
import type { DeadLetter } from '../runtime/dead-letter.ts'
import type { EventSource, GaugeName, HandlerPorts, Logger, MetricName, RunnerClock } from '../runtime/ports.ts'
import { type DeliveryCall, delivered, type Outcome, type Output, type Sink } from '../runtime/sink.ts'
import type { SinkHandle } from '../topology/handles.ts'
import { VirtualClock } from './virtual-clock.ts'

interface StoredItem {
  readonly identity: string
  readonly partition: string
  readonly value: unknown
}

/** A sink that applies each identity once and keeps a copy of the value, so that a later change to it does not show. */
export class MemorySink implements Sink<unknown, StoredItem> {
  readonly #items = new Map<string, unknown>()
  /** What is answered instead of storing, while tests set it. */
  refuse: ((value: unknown) => Outcome | undefined) | undefined

  prepare({ value, record, index }: Output): StoredItem {
    refuseLossy(value)
    try {
      return { identity: outputIdentity(record, index), partition: record.partition, value: structuredClone(value) }
    } catch (error) {
      throw new TerminalError(`the value cannot be stored: ${describeError(error).message}`, {
        code: 'not-serialisable',
      })
    }
  }

  async deliver(items: readonly StoredItem[], { signal }: DeliveryCall): Promise<readonly Outcome[]> {
    if (signal.aborted) {
      const error = new RetryableError('the invocation has no time left', { code: 'deadline' })
      return items.map(() => ({ status: 'retry', error }))
    }
    // Nothing of a partition overtakes an item that is to come again, so nothing of a key does.
    const returned = new Map<string, Outcome>()
    return items.map(({ identity, partition, value }) => {
      const refused = returned.get(partition) ?? this.refuse?.(value)
      if (refused) {
        if (refused.status === 'retry') returned.set(partition, refused)
        return refused
      }
      if (!this.#items.has(identity)) this.#items.set(identity, value)
      return delivered
    })
  }

  /** What was delivered, in order, each identity once. */
  get values(): readonly unknown[] {
    return [...this.#items.values()]
  }
}

/** One line that was logged. */
export interface LogLine {
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** {@link HandlerPorts} in memory, with everything that went through them. */
export interface MemoryPorts extends HandlerPorts {
  /** What a sink received, in order. */
  received<T>(sink: SinkHandle<T>): readonly T[]
  /** The dead letters, in order. */
  readonly deadLettered: readonly DeadLetter[]
  readonly lines: readonly LogLine[]
  /** The sum of everything counted under a name. */
  counted(name: MetricName): number
  /** The last value of a gauge. */
  measured(name: GaugeName): number | undefined
  /** Makes a sink answer for a value as the function says; undefined stores it. Call it without a function to stop. */
  refuse<T>(sink: SinkHandle<T>, answer?: (value: T) => Outcome | undefined): void
}

/** The stream or topic that an event names: a test stream's name is that of its source. */
function nameOf(eventSource: EventSource): string | undefined {
  return eventSource.topic ?? eventSource.arn?.split('/').at(-1)
}

/** Names that event builders use where the test names no source. */
export const defaultStream = 'the-only-source'

/**
 * Ports for `streamHandler` in tests. A source is found by the name of the stream or topic; an event of the default
 * stream belongs to the topology's only source.
 *
 * @example
 * const ports = memoryPorts()
 * const handler = streamHandler(bookings, { ports })
 * await handler(kinesisEvent([booking]), lambdaContext())
 * expect(ports.received(hotelBookings)).toEqual([...])
 */
export function memoryPorts(options: { readonly clock?: RunnerClock } = {}): MemoryPorts {
  const sinks = new Map<string, MemorySink>()
  const deadLetters = new MemorySink()
  const lines: LogLine[] = []
  const counts = new Map<MetricName, number>()
  const gauges = new Map<GaugeName, number>()
  const sink = (name: string): MemorySink => {
    const known = sinks.get(name) ?? new MemorySink()
    sinks.set(name, known)
    return known
  }
  const log =
    (level: LogLine['level']) =>
    (message: string, fields: LogLine['fields'] = {}) =>
      void lines.push({ level, message, fields })
  const logger: Logger = { info: log('info'), warn: log('warn'), error: log('error') }
  return {
    clock: options.clock ?? new VirtualClock(),
    logger,
    metrics: {
      count: (name, value) => void counts.set(name, (counts.get(name) ?? 0) + value),
      gauge: (name, value) => void gauges.set(name, value),
    },
    sink,
    deadLetters: deadLetters as unknown as Sink<DeadLetter>,
    sourceOf(eventSource, declared) {
      const name = nameOf(eventSource)
      if (name === defaultStream && declared.length === 1) return declared[0]
      return declared.find((source) => source === name)
    },
    freezesValues: true,
    flush: () => undefined,
    received: <T>(handle: SinkHandle<T>) => sink(handle.name).values as readonly T[],
    get deadLettered() {
      return deadLetters.values as readonly DeadLetter[]
    },
    lines,
    counted: (name) => counts.get(name) ?? 0,
    measured: (name) => gauges.get(name),
    refuse(handle, answer) {
      sink(handle.name).refuse = answer as MemorySink['refuse']
    },
  }
}
