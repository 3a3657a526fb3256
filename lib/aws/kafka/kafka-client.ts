/**
 * Producers and readers of a Kafka cluster: with kafka-admin.ts all that knows the client library. The rules, each of which a test in
 * test/kafka holds against a broker:
 *
 * 1. A producer is idempotent and has ONE send in flight. A request of which one partition fails is sent again whole; only with
 *    sequence numbers, and only with one in flight, does the broker know what it has already. Others wait in line.
 * 2. The client retries an idempotent send without end, so each has a deadline of ours. A producer that missed it is thrown away with
 *    its connections, as nobody knows what it still sends.
 * 3. Partitions are checked here: the client takes any number modulo their count.
 * 4. Messages are never split: whoever sends keeps a request below the topic's limit.
 * 5. Messages of one request and partition have timestamps less than 2^31 ms (24.8 days) from its first: the client writes others as
 *    times that nobody said (dynamic-buffer 0.3.1 has the zigzag form of 32 bits), so these go in a request of their own.
 * 6. A topic that is not there is said at once: the client would wait for it.
 * 7. Readers are in no group. What lies below the asked offset, control records and aborted transactions are dropped here. Places are
 *    those of all records, also of a transaction that is open: it holds back what may be read, and is no end.
 * 8. A reader has one fetch in flight: a broker numbers those of a session, and refuses one that comes out of turn.
 * 9. The tries of readers and groups have an end. `retries: true` keeps a consumer's stream of records alive, and there is none here: who
 *    asks for a page, a place or an offset tries again in its own time.
 * 10. Options are checked by the client (`strict`): it would leave out one that is misspelt.
 */
import {
  type BaseOptions,
  Consumer,
  FetchIsolationLevels,
  type MessageToProduce,
  Producer,
  type RecordsBatch,
} from '@platformatic/kafka'
import { ConfigurationError } from '../../core/errors.ts'
import type { RunnerClock } from '../../runtime/ports.ts'
import { systemClock } from '../system-clock.ts'
import { KafkaFailure, kafkaFailureOf } from './kafka-failure.ts'
import type {
  KafkaMessage,
  KafkaPage,
  KafkaPlace,
  KafkaProducer,
  KafkaReader,
  KafkaRecord,
  KafkaTopic,
} from './kafka-port.ts'

/** How a client reaches the cluster; {@link connectionOf} makes it of a binding. */
export type KafkaConnection = Pick<BaseOptions, 'bootstrapBrokers' | 'tls' | 'tlsServerName' | 'sasl'>

export interface ProducerOptions {
  /** How long a send may take, in ms, retries of the client included. @default 30,000 */
  readonly sendDeadlineMs?: number
  /** How long a send that is in flight may still take once its signal aborts, in ms. @default 400, less than half of a margin */
  readonly graceMs?: number
  /** @default the machine's */
  readonly clock?: Pick<RunnerClock, 'timer' | 'nowMs'>
}

/** What all our clients are made with. */
export const settings = {
  clientId: 'millrace',
  strict: true,
  connectTimeout: 3_000,
  /** A broker that hangs is given up before a send is. */
  requestTimeout: 5_000,
  timeout: 5_000,
  metadataMaxAge: 30_000,
  retryDelay: (_client: object, _operation: string, attempt: number) => Math.min(1_000, 50 * 2 ** attempt),
}

/** What the client says for an id where the protocol has none: zeros, or the topic's name. */
const noId = '00000000-0000-0000-0000-000000000000'

/** A topic as the cluster describes it; throws a {@link ConfigurationError} where nothing tells it from another of its name. */
export function described(
  name: string,
  { id, partitionsCount: partitions }: { readonly id: string; readonly partitionsCount: number },
): KafkaTopic {
  if (id !== noId && id !== name) return { id, partitions }
  throw new ConfigurationError(
    `the brokers give topic "${name}" no id, so that nothing would tell when it was deleted and made again, and its records would pass for done: that takes brokers of Kafka 2.8 or newer.`,
    { code: 'old-brokers' },
  )
}

/** Gives up what does not end in time. It rejects with a failure that passes by itself. */
function inTime<T>(
  clock: Pick<RunnerClock, 'timer'>,
  ms: number,
  work: Promise<T>,
  signal: AbortSignal,
  graceMs: number,
) {
  const late = Promise.withResolvers<never>()
  const giveUp = (why: string) => () => late.reject(new KafkaFailure('DEADLINE', `no answer ${why}`, { passes: true }))
  let cancelGrace = () => {}
  const cancel = clock.timer(ms, giveUp(`within ${ms} ms`))
  const onAbort = () => {
    cancelGrace = clock.timer(graceMs, giveUp('before the deadline of the invocation'))
  }
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  // What ends later, ends unheard.
  work.catch(() => undefined)
  return Promise.race([work, late.promise]).finally(() => {
    cancel()
    cancelGrace()
    signal.removeEventListener('abort', onAbort)
  })
}

const { signal: never } = new AbortController()

/** Gives up what does not end in time; whatever it rejects with is a `KafkaFailure`. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  try {
    return await inTime(systemClock, ms, work, never, 0)
  } catch (thrown) {
    throw kafkaFailureOf(thrown)
  }
}

/** Ends a client at once. Its own `close` would first send what waits to be sent. */
export function destroy(client: Producer | Consumer): void {
  const sockets = [...client.connections].map(([, { socket }]) => socket)
  client.close().catch(() => undefined)
  for (const socket of sockets) socket?.destroy()
}

type TimedMessage = KafkaMessage & { readonly timestampMs: number }

function messageOf(topic: string, { partition, key, value, headers, timestampMs }: TimedMessage): MessageToProduce {
  return {
    topic,
    partition,
    value: (value === null ? null : Buffer.from(value)) as Buffer,
    ...(key === undefined ? {} : { key: Buffer.from(key) }),
    // By identity of their buffers, so that a name may come more than once.
    ...(headers && {
      headers: new Map(headers.map((header) => [Buffer.from(header.name), Buffer.from(header.value)])),
    }),
    timestamp: BigInt(timestampMs),
  }
}

/** The client writes a time by its distance from the first of its batch, right up to here. */
const farthestMs = 2 ** 31

/** Cuts messages where one is too far in time from the first of its partition. */
function withinReach(messages: readonly TimedMessage[]): readonly (readonly TimedMessage[])[] {
  const requests: TimedMessage[][] = []
  let firstMs = new Map<number, number>()
  for (const message of messages) {
    const { partition, timestampMs } = message
    const isFar = Math.abs(timestampMs - (firstMs.get(partition) ?? timestampMs)) >= farthestMs
    if (isFar || requests.length === 0) {
      requests.push([])
      firstMs = new Map()
    }
    if (!firstMs.has(partition)) firstMs.set(partition, timestampMs)
    requests.at(-1)?.push(message)
  }
  return requests
}

class IdempotentProducer implements KafkaProducer {
  readonly #connection: KafkaConnection
  readonly #options: ProducerOptions
  #producer: Producer | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(connection: KafkaConnection, options: ProducerOptions) {
    this.#connection = connection
    this.#options = options
  }

  async topic(name: string, signal: AbortSignal, asOf: 'now' | 'lately' = 'lately'): Promise<KafkaTopic> {
    return described(name, await this.#guarded(signal, (producer) => topicOf(producer, name, asOf === 'now')))
  }

  send(topic: string, messages: readonly KafkaMessage[], signal: AbortSignal): Promise<void> {
    const sent = this.#last.then(() => this.#sendNow(topic, messages, signal))
    this.#last = sent.catch(() => undefined)
    return sent
  }

  async close(): Promise<void> {
    await this.#last
    await this.#producer?.close()
    this.#producer = undefined
  }

  async #sendNow(topic: string, messages: readonly KafkaMessage[], signal: AbortSignal): Promise<void> {
    const { clock = systemClock } = this.#options
    if (messages.length === 0) return
    if (signal.aborted) throw new KafkaFailure('DEADLINE', 'the invocation was over before its turn', { passes: true })
    await this.#guarded(signal, async (producer) => {
      const { partitionsCount } = await topicOf(producer, topic, false)
      for (const { partition } of messages) {
        if (Number.isInteger(partition) && partition >= 0 && partition < partitionsCount) continue
        const message = `topic "${topic}" has ${partitionsCount} partitions, and a message is for partition ${partition}`
        throw new KafkaFailure('PARTITION_OUT_OF_BOUNDS', message, { passes: false })
      }
      const nowMs = clock.nowMs()
      const timed = messages.map((message) => ({ ...message, timestampMs: message.timestampMs ?? nowMs }))
      for (const request of withinReach(timed)) {
        await producer.send({ messages: request.map((message) => messageOf(topic, message)) })
      }
    })
  }

  async #guarded<T>(signal: AbortSignal, work: (producer: Producer) => Promise<T>): Promise<T> {
    const { clock = systemClock, sendDeadlineMs = 30_000, graceMs = 400 } = this.#options
    this.#producer ??= new Producer({ ...settings, ...this.#connection, idempotent: true })
    const producer = this.#producer
    try {
      return await inTime(clock, sendDeadlineMs, work(producer), signal, graceMs)
    } catch (thrown) {
      const failure = kafkaFailureOf(thrown)
      if (failure.name === 'DEADLINE' && this.#producer === producer) {
        this.#producer = undefined
        destroy(producer)
      }
      throw failure
    }
  }
}

export async function topicOf(client: Producer | Consumer, name: string, forceUpdate: boolean) {
  const { topics } = await client.metadata({ topics: [name], forceUpdate, retries: 2 })
  const topic = topics.get(name)
  if (topic !== undefined) return topic
  throw new KafkaFailure('UNKNOWN_TOPIC_OR_PARTITION', `there is no topic "${name}"`, { passes: false })
}

const isControl = ({ attributes }: RecordsBatch): boolean => (attributes & 0b10_0000) !== 0
const isTransactional = ({ attributes }: RecordsBatch): boolean => (attributes & 0b1_0000) !== 0
const hasAppendTime = ({ attributes }: RecordsBatch): boolean => (attributes & 0b1000) !== 0
/** A marker of an aborted transaction; that of a committed one has type 1. */
const isAbort = ({ records }: RecordsBatch): boolean => records[0]?.key?.readInt16BE(2) === 0

/** The records of a page that count, by rule 7. */
function recordsFrom(
  offset: bigint,
  partition: number,
  batches: readonly RecordsBatch[],
  aborted: readonly { readonly producerId: bigint; readonly firstOffset: bigint }[],
): readonly KafkaRecord[] {
  const begins = [...aborted].sort((a, b) => Number(a.firstOffset - b.firstOffset))
  const open = new Set<bigint>()
  return batches.flatMap((batch) => {
    while (begins[0] !== undefined && begins[0].firstOffset <= batch.firstOffset + BigInt(batch.lastOffsetDelta)) {
      open.add((begins.shift() as { producerId: bigint }).producerId)
    }
    if (isControl(batch)) {
      if (isAbort(batch)) open.delete(batch.producerId)
      return []
    }
    if (isTransactional(batch) && open.has(batch.producerId)) return []
    return batch.records.flatMap((record): KafkaRecord[] => {
      const at = batch.firstOffset + BigInt(record.offsetDelta)
      if (at < offset) return []
      const timestampMs = Number(
        hasAppendTime(batch) ? batch.maxTimestamp : batch.firstTimestamp + record.timestampDelta,
      )
      const headers = record.headers.map(([name, value]) => ({
        name: String(name ?? ''),
        value: value ?? Buffer.alloc(0),
      }))
      const timestampType = hasAppendTime(batch) ? 'LOG_APPEND_TIME' : 'CREATE_TIME'
      const [key, value] = [record.key ?? undefined, record.value ?? null]
      return [{ partition, offset: at, key, value, headers, timestampMs, timestampType }]
    })
  })
}

const pageBytes = 4 * 1_048_576

class GrouplessReader implements KafkaReader {
  readonly #connection: KafkaConnection
  #consumer: Consumer | undefined
  #lastFetch: Promise<unknown> = Promise.resolve()

  constructor(connection: KafkaConnection) {
    this.#connection = connection
  }

  async topic(name: string, signal: AbortSignal): Promise<KafkaTopic | undefined> {
    const looked = this.#guarded(signal, (consumer) => topicOf(consumer, name, true))
    const found = await looked.catch((thrown) => {
      const failure = kafkaFailureOf(thrown)
      if (failure.names.has('UNKNOWN_TOPIC_OR_PARTITION')) return undefined
      throw failure
    })
    return found && described(name, found)
  }

  offsetOf(topic: string, partition: number, place: KafkaPlace, signal: AbortSignal): Promise<bigint | undefined> {
    const timestamp = place === 'earliest' ? -2n : place === 'latest' ? -1n : BigInt(place)
    return this.#guarded(signal, async (consumer) => {
      const offsets = await consumer.listOffsets({ topics: [topic], partitions: { [topic]: [partition] }, timestamp })
      const offset = offsets.get(topic)?.[partition]
      return offset === undefined || offset < 0n ? undefined : offset
    })
  }

  fetch(topic: string, partition: number, offset: bigint, signal: AbortSignal, waitMs = 500): Promise<KafkaPage> {
    return this.#guarded(signal, (consumer) => {
      const page = this.#lastFetch.then(() => this.#fetchNow(consumer, topic, partition, offset, waitMs))
      this.#lastFetch = page.catch(() => undefined)
      return page
    })
  }

  async #fetchNow(
    consumer: Consumer,
    topic: string,
    partition: number,
    offset: bigint,
    waitMs: number,
  ): Promise<KafkaPage> {
    const { id: topicId, partitions } = await topicOf(consumer, topic, false)
    const node = partitions[partition]?.leader ?? -1
    const wanted = {
      partition,
      fetchOffset: offset,
      currentLeaderEpoch: -1,
      lastFetchedEpoch: -1,
      partitionMaxBytes: pageBytes,
    }
    const { responses } = await consumer.fetch({
      node,
      topics: [{ topicId, partitions: [wanted] }],
      isolationLevel: FetchIsolationLevels.READ_COMMITTED,
      maxWaitTime: waitMs,
    })
    const page = responses[0]?.partitions.find(({ partitionIndex }) => partitionIndex === partition)
    // In a fetch session a broker leaves out what has nothing new.
    if (page === undefined) return { records: [], nextOffset: offset, endOffset: offset }
    const batches = page.records ?? []
    const last = batches.at(-1)
    const behind = last === undefined ? offset : last.firstOffset + BigInt(last.lastOffsetDelta) + 1n
    return {
      records: recordsFrom(offset, partition, batches, page.abortedTransactions ?? []),
      nextOffset: behind > offset ? behind : offset,
      endOffset: page.lastStableOffset,
    }
  }

  async close(): Promise<void> {
    await this.#consumer?.close()
    this.#consumer = undefined
  }

  async #guarded<T>(signal: AbortSignal, work: (consumer: Consumer) => Promise<T>): Promise<T> {
    this.#consumer ??= new Consumer({
      ...settings,
      ...this.#connection,
      groupId: 'millrace-without-group',
      // Of places; that of a call to list them is refused in strict mode, whatever it is.
      isolationLevel: FetchIsolationLevels.READ_UNCOMMITTED,
      retries: 2,
    })
    const consumer = this.#consumer
    try {
      return await inTime(systemClock, 15_000, work(consumer), signal, 0)
    } catch (thrown) {
      const failure = kafkaFailureOf(thrown)
      if (failure.name === 'DEADLINE' && this.#consumer === consumer) {
        this.#consumer = undefined
        this.#lastFetch = Promise.resolve()
        destroy(consumer)
      }
      throw failure
    }
  }
}

/**
 * A producer that connects with its first call.
 *
 * @example
 * const producer = openProducer(connection)
 * await producer.send('orders', [{ partition: 0, key: Buffer.from('o-1'), value: Buffer.from('{}') }], signal)
 */
export const openProducer = (connection: KafkaConnection, options: ProducerOptions = {}): KafkaProducer =>
  new IdempotentProducer(connection, options)

/** A reader that connects with its first call. */
export const openReader = (connection: KafkaConnection): KafkaReader => new GrouplessReader(connection)
