/** What the batches of a stage that keeps progress have in common, opened once per execution environment. */
import type { Duration } from '../core/duration.ts'
import { ConfigurationError } from '../core/errors.ts'
import { SlotMemo } from '../core/slot.ts'
import type { FeedingStage, KeyedStage } from '../plan/plan.ts'
import type { StateStore } from '../state/state-store.ts'
import { FeedLane } from './feed-lane.ts'
import type { FramePublisher } from './frames/publisher.ts'
import { Sender } from './frames/sender.ts'
import { StageManifest } from './manifest.ts'
import { MarkTeller } from './mark-teller.ts'
import type { OutboxParts } from './outbox.ts'
import type { Ports } from './ports.ts'
import { StageProgram } from './program.ts'
import { upstreamName } from './progress/generation.ts'
import type { PartitionLineage } from './progress/lineage.ts'
import { LogIdentity } from './progress/log-identity.ts'
import type { ProgressOfAny } from './progress/progress.ts'
import { type StageSink, sinksOf } from './sinks.ts'

/** What is the same in every batch of a stage that keeps progress. */
export interface StageParts<S extends FeedingStage | KeyedStage = FeedingStage | KeyedStage> {
  readonly topology: string
  readonly stage: S
  readonly ports: Ports
  readonly sinks: readonly StageSink[]
  readonly publishers: readonly FramePublisher[]
  readonly store: StateStore
  readonly lineage: PartitionLineage
  readonly log: LogIdentity
  readonly manifest: StageManifest
  readonly program: StageProgram
  /** Failures of one record before it is a dead letter. */
  readonly attempts: number
  readonly maxPendingOutputs: number
  readonly maxOutputsPerRecord: number
  readonly retentionMs: number
  /** The longest way of a record, in ms, from the source to an attempt at it: what may still find a value outlives that. */
  readonly chainRetentionMs: number
  /** Whether a batch that ends the process comes again in halves: until an entry is alone, no record is suspected. */
  readonly isBisected: boolean
  readonly marks: MarkTeller
  /** By feed, the slots of keys that were sent before. */
  readonly slotMemos: readonly SlotMemo[]
}

export interface StagePartsOptions {
  readonly attempts?: number
  readonly maxPendingOutputs?: number
  readonly maxOutputsPerRecord?: number
  readonly retention?: Duration
  readonly marksEvery?: Duration
}

const sevenDaysMs = 7 * 86_400_000

/** Opens what the stage needs. Throws a {@link ConfigurationError} that names what is not bound. */
export function openStageParts<S extends FeedingStage | KeyedStage>(
  topology: string,
  stage: S,
  ports: Ports,
  options: StagePartsOptions,
): StageParts<S> {
  const what = `stage "${stage.name}" of topology "${topology}"`
  const store = ports.state?.(stage.name)
  if (!store)
    throw new ConfigurationError(`${what} has no state table: deploy it with StreamApplication, or give its ports one.`)
  const lineage = ports.lineage?.(stage.name)
  if (!lineage)
    throw new ConfigurationError(`${what} cannot ask which partitions its stream has: give its ports a lineage.`)
  const publishers = stage.feeds.map((feed) => {
    const publisher = ports.frames?.(feed.stage)
    if (publisher) return publisher
    throw new ConfigurationError(
      `${what} feeds "${feed.stage}", whose stream is not bound: deploy both with one StreamApplication.`,
    )
  })
  const retentionMs = longerOf(options.retention?.ms, ports.retentionMs?.(stage.name))
  return {
    topology,
    stage,
    ports,
    sinks: sinksOf(stage, ports),
    publishers,
    store,
    lineage,
    log: new LogIdentity(stage.name, lineage),
    manifest: new StageManifest({ topology, stage, store, lineage, lineageOf: (name) => ports.lineage?.(name) }),
    program: new StageProgram(stage, { traces: ports.checksPurity === true }),
    attempts: options.attempts ?? 3,
    maxPendingOutputs: options.maxPendingOutputs ?? 10_000,
    maxOutputsPerRecord: options.maxOutputsPerRecord ?? 10_000,
    retentionMs,
    chainRetentionMs: retentionMs + longerOf(options.retention?.ms, ports.upstreamRetentionMs?.(stage.name)),
    isBisected: ports.readsAnswers?.(stage.name) !== false,
    slotMemos: stage.feeds.map(({ slots }) => new SlotMemo(slots)),
    marks: new MarkTeller({ stage: stage.name, feeds: stage.feeds, ports, everyMs: options.marksEvery?.ms ?? 1_000 }),
  }
}

/** The longer of what the handler and its stack say: what guards against repetitions must outlive every record. */
const longerOf = (toldMs: number | undefined, boundMs: number | undefined): number =>
  Math.max(toldMs ?? 0, boundMs ?? toldMs ?? sevenDaysMs)

/** The lanes of an attempt at a batch of one partition: each feed has a sender of its own. */
export function openFeeds(
  parts: StageParts,
  partition: string,
  { sent, generation }: Pick<ProgressOfAny, 'sent' | 'generation'>,
): OutboxParts['feeds'] {
  return parts.stage.feeds.map((feed, index) => {
    const sender = new Sender({
      upstream: { name: upstreamName(parts.stage.name, generation), partition },
      schemaVersion: feed.keyBy.schema.version,
      sent: sent.get(feed.stage) ?? new Map(),
      slots: feed.slots,
    })
    return {
      publisher: parts.publishers[index] as FramePublisher,
      sender,
      lane: new FeedLane(feed, sender, parts.slotMemos[index] as SlotMemo),
    }
  })
}
