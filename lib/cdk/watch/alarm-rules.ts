/**
 * Which alarms a stage has, and when they go off. docs/operations.md says of each what to do then.
 *
 * 1. Each looks at one metric: ratios are emitted as metrics, and shares of a setting are computed at synth. Metric math is
 *    dearer, and not every emulator takes it.
 * 2. A metric that is emitted only where something happens is missing while all is well: that breaches nothing. One whose
 *    absence says that nobody reads, or keeps what it said last, says so in its rule.
 */
import { type Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch'
import { look, type WatchedStage } from './metrics.ts'

/** The alarms that a stage may have. */
export type StageAlarm =
  | 'iterator-age'
  | 'stream-age'
  | 'offset-lag'
  | 'watermark-lag'
  | 'late'
  | 'skewed'
  | 'dead-letters'
  | 'conflicts'
  | 'overtaken'
  | 'collapse'
  | 'item-size'
  | 'units'
  | 'duration'
  | 'errors'
  | 'throttles'
  | 'table-throttles'
  | 'stream-throttles'

export interface AlarmRule {
  /** What it looks at; undefined where the stage has no such thing. */
  metric(stage: WatchedStage): Metric | undefined
  /** The default; undefined where it cannot be known at synth. */
  threshold(stage: WatchedStage): number | undefined
  /** It goes off above its threshold, unless this says `below`. */
  readonly side?: 'below'
  /** Of so many periods so many must breach. */
  readonly periods: readonly [breaching: number, of: number]
  readonly missing?: TreatMissingData
  /** What it says when it goes off. */
  readonly says: string
}

const tenMinutesMs = 600_000
const fifteenMinutesMs = 900_000

const isKeyed = ({ plan }: WatchedStage): boolean => plan.kind === 'keyed'
const keepsProgress = ({ plan }: WatchedStage): boolean => plan.kind !== 'stateless'
const always =
  (threshold: number): AlarmRule['threshold'] =>
  () =>
    threshold

export const alarmRules: Readonly<Record<StageAlarm, AlarmRule>> = {
  'iterator-age': {
    metric: (stage) => (stage.reads === 'stream' ? stage.ofFunction('IteratorAge', look('Maximum')) : undefined),
    // Deployments and short bursts take minutes; a stream keeps its records for a day at least.
    threshold: always(tenMinutesMs),
    periods: [5, 5],
    // A stage that is behind and is not invoked any more has not caught up.
    missing: TreatMissingData.IGNORE,
    says: 'what the function is given is old: it fails, or is too slow',
  },
  'stream-age': {
    metric: (stage) => stage.ofStream('GetRecords.IteratorAgeMilliseconds', look('Maximum')),
    threshold: always(tenMinutesMs),
    periods: [5, 5],
    // Nobody reads the stream: neither well nor too slow.
    missing: TreatMissingData.MISSING,
    says: 'some reader of the stream is behind: Lambda stops telling an age when it delivers nothing, the stream does not',
  },
  'offset-lag': {
    metric: (stage) => (stage.reads === 'topic' ? stage.ofFunction('OffsetLag', look('Maximum')) : undefined),
    // Lambda counts records, of whose age it says nothing: a hundred seconds of a thousand a second.
    threshold: always(100_000),
    periods: [5, 5],
    // As the age of a stream.
    missing: TreatMissingData.IGNORE,
    says: 'the topic holds many records that are not done: the function fails, or is too slow',
  },
  'watermark-lag': {
    metric: (stage) => (keepsProgress(stage) ? stage.emitted('watermark-lag', look('Maximum')) : undefined),
    // What the topology holds back itself is no delay.
    threshold: ({ usualLagMs }) => fifteenMinutesMs + usualLagMs,
    periods: [5, 5],
    says: 'event time does not come on: windows close so much later',
  },
  late: {
    metric: (stage) => (isKeyed(stage) ? stage.emitted('late-per-1000-records', look('Maximum', 5)) : undefined),
    // Some records are late by nature; one in twenty says that the grace is too short, or a source has changed.
    threshold: always(50),
    periods: [3, 3],
    says: 'many records come too late for their windows, and go to the late output',
  },
  skewed: {
    metric: (stage) =>
      stage.plan.kind === 'feeding' && stage.plan.source.skewLimitMs !== undefined
        ? stage.emitted('records-skewed', look('Sum', 5))
        : undefined,
    threshold: always(0),
    periods: [1, 1],
    says: 'event times are further ahead of their arrival than the source allows: a clock or a unit is wrong',
  },
  'dead-letters': {
    metric: (stage) => stage.emitted('dead-letters', look('Sum', 5)),
    threshold: always(0),
    periods: [1, 1],
    says: 'records could not be processed, and wait to be redriven',
  },
  conflicts: {
    metric: (stage) => (isKeyed(stage) ? stage.emitted('commit-conflicts', look('Sum', 5)) : undefined),
    // Two attempts at one batch meet when Lambda hands a shard on; that passes.
    threshold: always(100),
    periods: [3, 3],
    says: 'two attempts keep working on the same batches: each of them is paid for',
  },
  overtaken: {
    metric: (stage) => (isKeyed(stage) ? stage.emitted('records-overtaken', look('Sum', 5)) : undefined),
    threshold: always(0),
    periods: [1, 1],
    says: 'frames of one upstream came out of their order: nothing is lost, but a key may have seen its records so',
  },
  collapse: {
    metric: (stage) => (isKeyed(stage) ? stage.emitted('collapse', look('Average', 15)) : undefined),
    // Below one, keys are written that no record of the batch touched: firings. Twice as many as records, for an hour, are too many.
    threshold: always(0.5),
    side: 'below',
    periods: [4, 4],
    says: 'far more keys are written than records come: timers fire too often, or batches are too small',
  },
  'item-size': {
    metric: (stage) => (isKeyed(stage) ? stage.emitted('largest-item', look('Maximum', 5)) : undefined),
    // An item takes 400 KB, and at 380 KB its record becomes a dead letter.
    threshold: always(300_000),
    periods: [1, 1],
    says: "a key's state comes near what an item can hold",
  },
  units: {
    metric: (stage) => (isKeyed(stage) ? stage.emitted('units-per-1000-records', look('Average', 15)) : undefined),
    // A lone record of a cold key takes four, with a timer six.
    threshold: always(10_000),
    periods: [4, 4],
    says: 'the table takes more capacity units per record than even lone records explain',
  },
  duration: {
    metric: (stage) => stage.ofFunction('Duration', look('Maximum')),
    threshold: ({ timeout }) =>
      timeout === undefined || timeout.isUnresolved() ? undefined : timeout.toMilliseconds() * 0.8,
    periods: [3, 5],
    says: 'invocations take more than four fifths of their time: batches are soon cut',
  },
  errors: {
    metric: (stage) => stage.ofFunction('Errors', look('Sum')),
    threshold: always(0),
    // One that fails once comes again by itself.
    periods: [3, 5],
    says: 'invocations fail as a whole: time, memory, permissions or the configuration',
  },
  throttles: {
    metric: (stage) => stage.ofFunction('Throttles', look('Sum')),
    threshold: always(0),
    periods: [3, 5],
    says: 'Lambda has no concurrency left for the function',
  },
  'table-throttles': {
    metric: (stage) => (keepsProgress(stage) ? stage.emitted('throttles', look('Sum', 5)) : undefined),
    // A table on demand refuses some calls while it grows.
    threshold: always(100),
    periods: [3, 3],
    says: "DynamoDB keeps refusing calls to the stage's table",
  },
  'stream-throttles': {
    metric: (stage) =>
      isKeyed(stage) ? stage.ofStream('WriteProvisionedThroughputExceeded', look('Sum', 5)) : undefined,
    threshold: always(100),
    periods: [3, 3],
    says: "the stage's stream keeps refusing what is written to it",
  },
}

/** The alarms that an announcer has. */
export type AnnouncerAlarm = 'errors' | 'silent'
