import type {
  Checkpoint,
  CheckpointStore,
  FailureDestination,
  FailureMessage,
  InvocationInfo,
  InvocationOutcome,
  Invoker,
  ReadPosition,
  ShardDescription,
  ShardRead,
  ShardReader,
  SourceRecord,
} from '../../../lib/emulator/event-source-mapping/index.ts'
import type { VirtualClock } from './virtual-clock.ts'

interface MemoryShard extends ShardDescription {
  readonly records: SourceRecord[]
  isClosed: boolean
}

/** A stream in memory. Sequence numbers are what the test says. */
export class MemoryStream implements ShardReader {
  readonly #clock: VirtualClock
  readonly #shards = new Map<string, MemoryShard>()
  readonly reads: string[] = []
  readonly opened: { shardId: string; position: ReadPosition }[] = []
  /** Rejects every call with this message while it is set. */
  failure: string | undefined

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  addShard(shardId: string, parentIds: readonly string[] = []): void {
    this.#shards.set(shardId, { shardId, parentIds, records: [], isClosed: false })
  }

  close(shardId: string): void {
    this.#shard(shardId).isClosed = true
  }

  remove(shardId: string): void {
    this.#shards.delete(shardId)
  }

  put(shardId: string, sequenceNumber: number | string, given: Partial<SourceRecord> & { json?: unknown } = {}): void {
    const text = given.json === undefined ? `data-${sequenceNumber}` : JSON.stringify(given.json)
    this.#shard(shardId).records.push({
      sequenceNumber: String(sequenceNumber),
      partitionKey: given.partitionKey ?? 'k',
      data: given.data ?? new TextEncoder().encode(text),
      arrivalMs: given.arrivalMs ?? this.#clock.nowMs(),
    })
  }

  async listShards(): Promise<readonly ShardDescription[]> {
    this.#fail()
    return [...this.#shards.values()].map(({ shardId, parentIds }) => ({ shardId, parentIds }))
  }

  async open(shardId: string, position: ReadPosition): Promise<string> {
    this.#fail()
    this.opened.push({ shardId, position })
    return `${shardId}|${this.#indexOf(this.#shard(shardId).records, position)}`
  }

  async read(iterator: string, limit: number): Promise<ShardRead> {
    this.#fail()
    const [shardId = '', from = '0'] = iterator.split('|')
    this.reads.push(shardId)
    const { records, isClosed } = this.#shard(shardId)
    const page = records.slice(Number(from), Number(from) + limit)
    const next = Number(from) + page.length
    const left = records.length - next
    return {
      records: page,
      nextIterator: isClosed && left === 0 ? null : `${shardId}|${next}`,
      millisBehindLatest: left === 0 ? 0 : 1,
    }
  }

  #fail(): void {
    if (this.failure !== undefined) throw new Error(this.failure)
  }

  #shard(shardId: string): MemoryShard {
    const shard = this.#shards.get(shardId)
    if (shard === undefined) throw new Error(`no shard ${shardId}`)
    return shard
  }

  #indexOf(records: readonly SourceRecord[], position: ReadPosition): number {
    if (position.at === 'trim-horizon') return 0
    if (position.at === 'latest') return records.length
    const found =
      position.at === 'timestamp'
        ? records.findIndex((record) => record.arrivalMs >= position.timestampMs)
        : records.findIndex((record) => BigInt(record.sequenceNumber) > BigInt(position.sequenceNumber))
    return found === -1 ? records.length : found
  }
}

export interface Delivery {
  readonly sequenceNumbers: readonly string[]
  readonly info: InvocationInfo
  readonly atMs: number
}

/** Answers as the test says and remembers what was delivered. */
export class ScriptedInvoker implements Invoker {
  readonly deliveries: Delivery[] = []
  readonly events: unknown[] = []
  readonly #clock: VirtualClock
  /** What becomes of a delivery. */
  answer: (delivery: Delivery, index: number) => InvocationOutcome | Promise<InvocationOutcome> = () => answered(null)

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  async invoke(event: unknown, info: InvocationInfo): Promise<InvocationOutcome> {
    const { Records: records } = event as {
      Records: { kinesis?: { sequenceNumber: string }; dynamodb?: { SequenceNumber: string } }[]
    }
    const sequenceNumbers = records.map(
      ({ kinesis, dynamodb }) => kinesis?.sequenceNumber ?? dynamodb?.SequenceNumber ?? '',
    )
    const delivery = { sequenceNumbers, info, atMs: this.#clock.nowMs() }
    this.events.push(event)
    return this.answer(delivery, this.deliveries.push(delivery) - 1)
  }

  /** The sequence numbers of every delivery, such as `['1 2 3', '3']`. */
  get batches(): readonly string[] {
    return this.deliveries.map((delivery) => delivery.sequenceNumbers.join(' '))
  }
}

export const answered = (payload: unknown): InvocationOutcome => ({ kind: 'answered', payload })
export const failed = (reason = 'Error: boom'): InvocationOutcome => ({ kind: 'function-error', reason })
export const throttled: InvocationOutcome = { kind: 'not-run', reason: 'TooManyRequests' }
export const reports = (...identifiers: unknown[]): InvocationOutcome =>
  answered({ batchItemFailures: identifiers.map((itemIdentifier) => ({ itemIdentifier })) })

/** Checkpoints that outlive a mapping. */
export class MemoryCheckpoints implements CheckpointStore {
  readonly saved = new Map<string, Checkpoint>()
  readonly history: { shardId: string; checkpoint: Checkpoint }[] = []
  failure: string | undefined

  async load(): Promise<ReadonlyMap<string, Checkpoint>> {
    return new Map(this.saved)
  }

  async save(shardId: string, checkpoint: Checkpoint): Promise<void> {
    if (this.failure !== undefined) throw new Error(this.failure)
    this.saved.set(shardId, checkpoint)
    this.history.push({ shardId, checkpoint })
  }

  /** The sequence number that a shard is saved at. */
  at(shardId: string): string | undefined {
    const position = this.saved.get(shardId)?.position
    return position?.at === 'after' ? position.sequenceNumber : undefined
  }
}

/** The envelope's parts that tests look at. */
export interface SeenEnvelope {
  readonly requestContext: { requestId: string; functionArn: string; condition: string; approximateInvokeCount: number }
  readonly responseContext?: { statusCode: number; executedVersion: string; functionError: string | null }
  readonly version: string
  readonly timestamp: string
  readonly KinesisBatchInfo: {
    shardId: string
    startSequenceNumber: string
    endSequenceNumber: string
    batchSize: number
  }
  readonly payload?: string
}

export class MemoryDestination implements FailureDestination {
  readonly messages: FailureMessage[] = []
  carriesPayload = false
  failure: string | undefined

  async send(message: FailureMessage): Promise<void> {
    if (this.failure !== undefined) throw new Error(this.failure)
    this.messages.push(message)
  }

  get envelopes(): readonly SeenEnvelope[] {
    return this.messages.map((message) => message.envelope as unknown as SeenEnvelope)
  }
}
