/** The event source mappings of a run: that of a stage reads the stream of its name. */
import {
  type Checkpoint,
  type CheckpointStore,
  EventSourceMapping,
  type Invoker,
  KafkaEventSourceMapping,
  kafkaFormat,
  type MappingSettings,
} from '../../emulator/event-source-mapping/index.ts'
import type { BatchEvent } from './environments.ts'
import type { Mapped, MappingKind } from './mapped.ts'
import type { Random } from './random.ts'
import { newOwner, type Scheduler } from './scheduler.ts'
import type { Streams } from './streams.ts'

export interface MappingsOptions {
  readonly kind: MappingKind
  readonly random: Random
  /** What only runs on Kafka draw. */
  readonly kafkaRandom: Random
  readonly scheduler: Scheduler
  readonly streams: Streams
  readonly invokerOf: (stage: string) => Invoker
  /** What a canary sets. */
  readonly settings: Partial<MappingSettings> | undefined
  readonly count: (name: string) => void
}

/** Batches go to environments as they are read: no service's JSON in between. */
const batchFormat = {
  event: (records: BatchEvent['records'], shardId: string): BatchEvent => ({ records, shardId }),
  emptyEventBytes: 0,
  eventBytes: ({ data }: { readonly data: Uint8Array }) => data.byteLength,
  filterKey: 'data',
  filterText: () => undefined,
  filterMetadata: () => ({}),
  batchInfo: () => ({}),
}

/** What both kinds of mappings draw. */
function settingsOf(stage: string, { random, settings }: MappingsOptions) {
  return {
    uuid: `mapping-${stage}`,
    functionArn: `function-${stage}`,
    startingPosition: 'TRIM_HORIZON',
    batchSize: random.pick([3, 10, 40, 100]),
    maximumBatchingWindowInSeconds: random.pick([0, 0, 1, 5]),
    // As the constructs set it: without it a record that ends the process would never come alone.
    bisectBatchOnFunctionError: true,
    functionResponseTypes: ['ReportBatchItemFailures'],
    ...settings,
    emulation: {
      pollIntervalMs: random.pick([1_000, 10_000]),
      backlogPollIntervalMs: 1_000,
      shardSyncIntervalMs: 5_000,
      retriedBatch: random.pick(['stays', 'regroups']),
      // The whole backoff would be longer than a run has time for; what counts is that there is one.
      backoff: { initialMs: 400, factor: 2, maxMs: 20_000 },
    },
  } satisfies MappingSettings
}

/** Makes the mapping of a stage. */
export function mappingOf(stage: string, options: MappingsOptions): Mapped {
  return options.kind === 'kinesis' ? kinesisMapping(stage, options) : kafkaMapping(stage, options, options.kind)
}

function kinesisMapping(stage: string, options: MappingsOptions): Mapped {
  const { scheduler, streams, invokerOf } = options
  const owner = newOwner(`mapping of ${stage}`)
  const checkpoints = new Map<string, Checkpoint>()
  const mapping = new EventSourceMapping({
    settings: settingsOf(stage, options),
    format: batchFormat,
    reader: streams.reader(owner, stage),
    invoker: invokerOf(stage),
    checkpoints: {
      load: async () => checkpoints,
      save: async (shardId, checkpoint) => void checkpoints.set(shardId, checkpoint),
    },
    clock: scheduler.clockOf(owner),
  })
  return {
    ...{ stage, checkpoints, stream: streams.stream(stage) },
    start: () => mapping.start(),
    failOver: (shardId, after) =>
      mapping.failOver(shardId, after === undefined ? undefined : { at: 'after', sequenceNumber: after }),
  }
}

function kafkaMapping(stage: string, options: MappingsOptions, mode: 'on-demand' | 'provisioned'): Mapped {
  const { scheduler, streams, invokerOf, kafkaRandom: random, count } = options
  const owner = newOwner(`mapping of ${stage}`)
  const group = new Group()
  const mapping = new KafkaEventSourceMapping({
    settings: { ...settingsOf(stage, options), mode, pollers: random.integer(1, 3) },
    format: {
      ...kafkaFormat({
        topic: stage,
        bootstrapServers: 'simulated',
        retriedItems: random.pick(['reported', 'and-later'] as const),
      }),
      ...batchFormat,
    },
    reader: streams.topicReader(owner, stage),
    group,
    invoker: invokerOf(stage),
    clock: scheduler.clockOf(owner),
  })
  return {
    ...{ stage, checkpoints: group.committed, stream: streams.stream(stage) },
    start: () => mapping.start(),
    failOver: (partition, after) => {
      count('rebalance')
      // As somebody does who sets the offset of the group by hand.
      if (after !== undefined)
        group.set(partition, { position: { at: 'after', sequenceNumber: after }, drained: false })
      mapping.rebalance(random.integer(1, 3))
    },
  }
}

/** A consumer group: members of an older generation commit nothing. */
class Group {
  readonly committed = new Map<string, Checkpoint>()
  #generation = 0

  async join(): Promise<CheckpointStore> {
    this.#generation += 1
    const generation = this.#generation
    return {
      load: async () => this.committed,
      save: async (partition, checkpoint) => {
        if (generation !== this.#generation) throw new Error('ILLEGAL_GENERATION')
        this.committed.set(partition, checkpoint)
      },
    }
  }

  /** Sets an offset by hand: nobody commits until the group is joined again. */
  set(partition: string, checkpoint: Checkpoint): void {
    this.#generation += 1
    this.committed.set(partition, checkpoint)
  }
}
