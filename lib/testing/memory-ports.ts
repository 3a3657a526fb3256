/** Ports that keep everything in memory, for tests that invoke the real handler. */
import type { KinesisStreamEvent } from 'aws-lambda'
import { ConfigurationError, describeError, RetryableError, TerminalError } from '../core/errors.ts'
import { refuseLossy } from '../core/lossless.ts'
import { outputIdentity } from '../core/record.ts'
import type { DeadLetter } from '../runtime/dead-letter.ts'
import type { EventSource, GaugeName, HandlerPorts, Logger, MetricName, RunnerClock } from '../runtime/ports.ts'
import { type DeliveryCall, delivered, type Outcome, type Output, type Sink } from '../runtime/sink.ts'
import type { StateStore } from '../state/state-store.ts'
import type { SinkHandle } from '../topology/handles.ts'
import { defaultStream, kinesisEvent } from './events.ts'
import { MemoryStages } from './memory-stages.ts'
import type { StreamedFrame } from './memory-streams.ts'
import { VirtualClock } from './virtual-clock.ts'

interface StoredItem {
  readonly identity: string
  readonly output: Output
}

/** A sink that applies each identity once and keeps a copy of the value, so that a later change to it does not show. */
export class MemorySink implements Sink<unknown, StoredItem> {
  readonly #items = new Map<string, Output>()
  /** What is answered instead of storing, while tests set it. */
  refuse: ((value: unknown) => Outcome | undefined) | undefined

  prepare(output: Output): StoredItem {
    const { value, record, index } = output
    refuseLossy(value)
    try {
      return { identity: outputIdentity(record, index), output: { ...output, value: structuredClone(value) } }
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
    return items.map(({ identity, output }) => {
      const { partition } = output.record
      const refused = returned.get(partition) ?? this.refuse?.(output.value)
      if (refused) {
        if (refused.status === 'retry') returned.set(partition, refused)
        return refused
      }
      if (!this.#items.has(identity)) this.#items.set(identity, output)
      return delivered
    })
  }

  /** What was delivered, in order, each identity once. */
  get outputs(): readonly Output[] {
    return [...this.#items.values()]
  }

  /** The values alone. */
  get values(): readonly unknown[] {
    return this.outputs.map(({ value }) => value)
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
  /** The same with what a sink is told beside each value: its key, its record with the headers, and its place. */
  outputs<T>(sink: SinkHandle<T>): readonly Output<T>[]
  /** The dead letters, in order. */
  readonly deadLettered: readonly DeadLetter[]
  readonly lines: readonly LogLine[]
  /** The sum of everything counted under a name. */
  counted(name: MetricName): number
  /** The last value of a gauge. */
  measured(name: GaugeName): number | undefined
  /**
   * What was published to the stream of a keyed stage and not yet taken, as the events that Lambda would invoke the handler
   * with: one per shard. Throws a {@link ConfigurationError} where the topology has no keyed stage of that name.
   */
  takeFrames(stage: string): readonly KinesisStreamEvent[]
  /** The state of a keyed stage, once a handler or a driver runs on the ports. */
  state(stage: string): StateStore | undefined
  /** Makes a sink answer for a value as the function says; undefined stores it. Call it without a function to stop. */
  refuse<T>(sink: SinkHandle<T>, answer?: (value: T) => Outcome | undefined): void
}

function eventOf(stage: string, shardId: string, frames: readonly StreamedFrame[]): KinesisStreamEvent {
  const [{ index: firstIndex }] = frames as [StreamedFrame]
  const frame = (index: number): StreamedFrame => frames[index - firstIndex] as StreamedFrame
  return kinesisEvent(
    frames.map(({ bytes }) => bytes),
    {
      source: { name: stage },
      shardId,
      firstIndex,
      partitionKey: (index) => String(frame(index).slot),
      arrivalTimeMs: (index) => frame(index).arrivalTimeMs,
    },
  )
}

/** The stream, topic, queue or table that an event names: in tests its name is that of its source. */
function nameOf({ kind, arn, topic }: EventSource): string | undefined {
  if (kind === 'sqs')
    return arn
      ?.split(':')
      .at(-1)
      ?.replace(/\.fifo$/, '')
  if (kind === 'dynamodb-stream') return arn?.split('/')[1]
  return topic ?? arn?.split('/').at(-1)
}

/**
 * Ports for `streamHandler` in tests. A source is found by the name of the stream, topic, queue or table; an event of the default
 * stream belongs to the topology's only source. What a stage publishes for a keyed one waits for `takeFrames`; state is kept
 * in memory by stage, and every step runs twice, so that an impure one is refused.
 *
 * @example
 * const ports = memoryPorts()
 * const handler = streamHandler(bookings, { ports })
 * await handler(kinesisEvent([booking]), lambdaContext())
 * for (const event of ports.takeFrames('by-hotel')) await handler(event, lambdaContext())
 * expect(ports.received(hotelBookings)).toEqual([...])
 */
export function memoryPorts(
  options: {
    /** @default a virtual one */
    readonly clock?: RunnerClock
    /** How the event source mapping of Kafka works: without provisioned pollers it reads no answers. @default 'provisioned' */
    readonly kafka?: 'on-demand' | 'provisioned'
  } = {},
): MemoryPorts {
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
  const clock = options.clock ?? new VirtualClock()
  const stages = new MemoryStages(clock, logger)
  return {
    clock,
    logger,
    metrics: {
      count: (name, value) => void counts.set(name, (counts.get(name) ?? 0) + value),
      gauge: (name, value) => void gauges.set(name, value),
    },
    sink,
    deadLetters: deadLetters as unknown as Sink<DeadLetter>,
    sourceOf(eventSource, declared) {
      const name = nameOf(eventSource)
      const sources = declared.filter((stage) => !stages.isKeyed(stage))
      if (name === defaultStream && sources.length === 1) return sources[0]
      return declared.find((stage) => stage === name)
    },
    readsAnswers: () => options.kafka !== 'on-demand',
    serve: (planned) => stages.serve(planned),
    state: (stage) => stages.state(stage),
    frames: (stage) => stages.stream(stage)?.publisher,
    lineage: (stage) => stages.lineage(stage),
    takeFrames: (stage) => {
      const stream = stages.stream(stage)
      if (stream) return stream.take().map(({ shardId, frames }) => eventOf(stage, shardId, frames))
      throw new ConfigurationError(
        `no keyed stage "${stage}" was served with these ports: there are ${stages.keyed.join(', ') || 'none yet'}.`,
      )
    },
    checksPurity: true,
    freezesValues: true,
    flush: () => undefined,
    received: <T>(handle: SinkHandle<T>) => sink(handle.name).values as readonly T[],
    outputs: <T>(handle: SinkHandle<T>) => sink(handle.name).outputs as readonly Output<T>[],
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
