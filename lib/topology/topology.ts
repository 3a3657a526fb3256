/** The topology builder: inert data, safe to load at synth time and in tests. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type Duration, msOf } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'
import { type Format, json } from '../core/format.ts'
import type { RecordInfo } from '../core/record.ts'
import type { EventTime } from '../time/event-time.ts'
import { describeGraph } from './describe.ts'
import type { Graph, GraphNode, SinkDeclaration, SourceNode } from './graph.ts'
import type { SinkHandle } from './handles.ts'
import { type GraphBuilder, SourceStream } from './stream.ts'

/** What every source may say. */
export interface SourceOptions<T> {
  /** Where the event time is and in which unit. @default the time at which the broker took the record in */
  readonly eventTime?: EventTime<T>
  /** How far event times trail the largest one seen. @default none */
  readonly outOfOrderness?: Duration
  /**
   * How far ahead of its arrival at the broker an event time may be. A record beyond that moves no time, so one clock that is
   * wrong makes no other record late; it is late itself for every window, and goes to their late output. Needs times of arrival
   * that the broker sets: Kinesis does, Kafka where the topic says `message.timestamp.type=LogAppendTime`.
   * @default none: every event time counts
   */
  readonly skewLimit?: Duration
  /**
   * What a Kafka tombstone (a null value) means: gives the value to go on with, or undefined to leave it out.
   * @default a tombstone is a dead letter, code `unexpected-delete`
   */
  readonly onDelete?: (key: string | undefined, record: RecordInfo) => T | undefined
}

/** What a source with a schema may say. */
export interface SchemaSourceOptions<T> extends SourceOptions<T> {
  /** How bytes become the value that the schema validates. @default json() */
  readonly format?: Format<unknown>
}

export interface SinkOptions<T> {
  /**
   * The key of a value: its partition key, message key or table key. Outputs of one key keep their order.
   * @default none: outputs are spread evenly and keep no order, whatever key their input had
   */
  readonly key?: (value: T) => string
}

/** Schemas may be functions, as arktype's are. */
function isSchemaOrFormat(what: unknown): boolean {
  if (what === null || (typeof what !== 'object' && typeof what !== 'function')) return false
  return '~standard' in what || typeof (what as { decode?: unknown }).decode === 'function'
}

const namePattern = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/
const longestName = 64

/** Checks a name that will own something persistent. */
function checkName(what: string, name: string): void {
  if (typeof name === 'string' && namePattern.test(name) && name.length <= longestName) return
  throw new ConfigurationError(
    `${JSON.stringify(name)} cannot name a ${what}: use lower-case words joined by "-", at most ${longestName} characters, such as "booking-requests".`,
  )
}

function checkEventTime(source: string, eventTime: unknown): void {
  if (eventTime === undefined || typeof Object(eventTime).extract === 'function') return
  throw new ConfigurationError(
    `source "${source}": its eventTime does not say how to read the time: give epochMs(...), epochSeconds(...) or isoTime(...), such as epochMs((booking) => booking.bookedAt).`,
  )
}

/** The ms of an option of a source; undefined where it is left out. */
const lengthOf = (source: string, option: string, length: Duration | undefined): number | undefined =>
  length === undefined
    ? undefined
    : msOf(`source "${source}": ${option} is`, length, 0, 'give a length of time, such as minutes(5), or leave it out.')

/**
 * Declares what a stream application reads, does and writes.
 *
 * @example
 * const app = new Topology('payments')
 * const requests = app.source('payment-requests', Payment)
 * const validated = app.sink<Payment>('payments-validated', { key: (p) => p.id })
 * requests.filter((p) => p.amount > 0).to(validated)
 */
export class Topology {
  readonly name: string
  readonly #sources: SourceNode[] = []
  readonly #sinks: SinkDeclaration[] = []
  readonly #nodes: GraphNode[] = []
  /** Every name that is taken, and by what. */
  readonly #names = new Map<string, string>()
  #sealed = false
  /** One for all streams, which are of one topology where they share it. */
  readonly #builder: GraphBuilder = { add: (node) => this.#add(node) }

  constructor(name: string) {
    checkName('topology', name)
    this.name = name
  }

  /**
   * Declares a source. Its values are what any Standard Schema (zod, valibot, arktype and others) makes of the decoded
   * payload or, without a schema, what a format reads. Throws a {@link ConfigurationError} for a name that is taken or
   * cannot be one, and for an option that is no length of time.
   *
   * @example
   * const orders = app.source('orders', Order, { eventTime: isoTime((order) => order.placedAt) })
   * const lines = app.source('lines', text())
   */
  source<S extends StandardSchemaV1>(
    name: string,
    schema: S,
    options?: SchemaSourceOptions<StandardSchemaV1.InferOutput<S>>,
  ): SourceStream<StandardSchemaV1.InferOutput<S>, StandardSchemaV1.InferInput<S>>
  source<T>(name: string, format: Format<T>, options?: SourceOptions<T>): SourceStream<T, T>
  source<T>(
    name: string,
    what: StandardSchemaV1 | Format<unknown>,
    options: SchemaSourceOptions<T> = {},
  ): SourceStream<T, unknown> {
    this.#claim('source', name)
    if (!isSchemaOrFormat(what)) {
      throw new ConfigurationError(
        `source "${name}" was given neither a Standard Schema (of zod, valibot, arktype ...) nor a format such as json(), text() or bytes().`,
      )
    }
    checkEventTime(name, options.eventTime)
    const [schema, format] = '~standard' in what ? [what, options.format ?? json()] : [undefined, what]
    const node: SourceNode = {
      type: 'source',
      name,
      format,
      schema,
      eventTime: options.eventTime as EventTime<unknown> | undefined,
      outOfOrdernessMs: lengthOf(name, 'outOfOrderness', options.outOfOrderness) ?? 0,
      skewLimitMs: lengthOf(name, 'skewLimit', options.skewLimit),
      onDelete: options.onDelete,
    }
    const added = this.#add(node)
    this.#sources.push(added)
    return new SourceStream<T, unknown>(this.#builder, added)
  }

  /** Declares a sink. Throws a {@link ConfigurationError} for a name that is taken or cannot be one. */
  sink<T>(name: string, options: SinkOptions<T> = {}): SinkHandle<T> {
    this.#claim('sink', name)
    const declaration: SinkDeclaration = { name, key: options.key as SinkDeclaration['key'] }
    this.#sinks.push(declaration)
    return { type: 'sink', name, declaration }
  }

  /** The topology as text, or as a Mermaid flowchart. */
  describe(format: 'text' | 'mermaid' = 'text'): string {
    return describeGraph(this.graph(), format)
  }

  /**
   * The graph, complete from here on: a step, source or sink that is added later throws, because whoever read the graph
   * would not know of it.
   */
  graph(): Graph {
    this.#sealed = true
    return { name: this.name, sources: this.#sources, sinks: this.#sinks, nodes: this.#nodes }
  }

  #claim(what: string, name: string): void {
    checkName(what, name)
    this.#refuseIfSealed(`${what} "${name}"`)
    const taken = this.#names.get(name)
    if (taken) {
      throw new ConfigurationError(
        `topology "${this.name}" has two things named "${name}" (a ${taken} and a ${what}): names own what is persistent, so give each its own.`,
      )
    }
    this.#names.set(name, what)
  }

  #add<N extends GraphNode>(node: N): N {
    if (node.type === 'key-by' || node.type === 'keyed') this.#claim(node.kind, node.name)
    else if (node.type !== 'source') this.#refuseIfSealed(`a ${'kind' in node ? node.kind : node.type} step`)
    this.#nodes.push(node)
    return node
  }

  #refuseIfSealed(what: string): void {
    if (!this.#sealed) return
    throw new ConfigurationError(
      `${what} was added to topology "${this.name}" after it had been planned or described: declare everything first.`,
    )
  }
}
