/**
 * What a topology costs on AWS in a month: an estimate from its plan, a rate and what is assumed of records.
 *
 * 1. Each source brings `rate` records a second, and every stage passes on as many as it gets: a plan does not say what a filter
 *    leaves out or how often a window emits.
 * 2. What is always paid stands apart from what follows the rate, so that a quiet application's cost shows.
 * 3. The source's and the sinks' own streams and tables are the user's, whoever processes them: they are no part of it, here and
 *    for Managed Flink.
 */
import type { Plan, StagePlan } from './plan.ts'
import { hoursPerMonth, prices, secondsPerMonth } from './prices.ts'
import { topicPartitionsOf } from './topic-request.ts'

/** What the estimate goes by. */
export interface Load {
  /** Records a second of each source. */
  readonly rate: number
  /** Records of a batch per key that it changes, 1 or more: see the metric `collapse`. */
  readonly collapse: number
  /** What all state tables hold, in GB. */
  readonly stateGb: number
  /** Groups of provisioned pollers of Kafka mappings; a mapping without a group is one. @default 0 */
  readonly pollerGroups?: number
  /** What keyed stages read: Kinesis streams, or topics of Kafka, whose brokers are not priced. @default 'streams' */
  readonly keyedLogs?: 'streams' | 'topics'
}

/** What is assumed where nothing is known before the application runs. docs/cli.md explains each. */
export const assumptions = {
  recordKb: 1,
  /** A stream on demand begins with four shards; a shard takes 1,000 records or 1 MB a second. */
  leastShards: 4,
  recordsPerShardSecond: 1_000,
  /** The defaults of a stage: one batch a second and shard while it has records, of at most 500. */
  batchSize: 500,
  memoryGb: 0.5,
  invocationMs: 30,
  msPerRecord: { stateless: 0.03, feeding: 0.03, keyed: 0.15 },
  logKbPerInvocation: 1.2,
  metrics: { stateless: 5, feeding: 11, keyed: 19 },
  alarms: { stateless: 6, feeding: 8, keyed: 15, announcer: 2 },
  announcerMs: 200,
  announcerMemoryGb: 0.25,
  /** How many records with state a KPU of Managed Flink takes in a second. */
  flinkRecordsPerKpuSecond: 10_000,
} as const

/** Dollars a month of one part. */
export interface CostPart {
  readonly part:
    | 'Lambda'
    | 'Kinesis'
    | 'DynamoDB writes'
    | 'DynamoDB reads'
    | 'DynamoDB storage'
    | 'CloudWatch'
    | 'announcer'
    | 'Kafka pollers'
  readonly atRest: number
  /** At the rate, what is paid at rest included. */
  readonly atRate: number
}

export interface Cost {
  readonly parts: readonly CostPart[]
  readonly atRest: number
  readonly atRate: number
  /** What the same rate takes of Managed Flink. */
  readonly flink: number
}

/** Dollars a month of a topology under a load. */
export function costOf(planned: Plan, load: Load): Cost {
  const atRest = dollarsOf(planned, { ...load, rate: 0 })
  const atRate = dollarsOf(planned, load)
  const absent = new Set<CostPart['part']>()
  if (load.pollerGroups === undefined) absent.add('Kafka pollers')
  if (load.keyedLogs === 'topics') absent.add('Kinesis')
  const named = (Object.keys(atRate) as CostPart['part'][]).filter((part) => !absent.has(part))
  const parts = named.map((part) => ({ part, atRest: atRest[part], atRate: atRate[part] }))
  return { parts, atRest: sumOf(atRest), atRate: sumOf(atRate), flink: flinkOf(totalRate(planned, load.rate)) }
}

/** The rate of each source from which on Managed Flink is cheaper; 0 where it is at any, undefined where it is at none up to a million. */
export function flinkIsCheaperFrom(planned: Plan, load: Omit<Load, 'rate'>): number | undefined {
  const isCheaper = (rate: number): boolean => {
    const { flink, atRate } = costOf(planned, { ...load, rate })
    return flink < atRate
  }
  if (isCheaper(0)) return 0
  let [below, above] = [0, 1]
  // Flink's cost grows in steps, so its first crossing is looked for, in steps smaller than those.
  while (!isCheaper(above)) {
    if (above > 1_000_000) return undefined
    below = above
    above = Math.max(above + 1, above * 1.05)
  }
  while (above - below > 0.01 * above) {
    const middle = (below + above) / 2
    if (isCheaper(middle)) above = middle
    else below = middle
  }
  return above
}

type Dollars = Record<CostPart['part'], number>

const sumOf = (dollars: Dollars): number => Object.values(dollars).reduce((sum, part) => sum + part, 0)

function dollarsOf(planned: Plan, load: Load): Dollars {
  const rates = ratesOf(planned, load.rate)
  const total: Dollars = {
    Lambda: 0,
    Kinesis: 0,
    'DynamoDB writes': 0,
    'DynamoDB reads': 0,
    'DynamoDB storage': 0,
    CloudWatch: prices.cloudwatch.perDashboardMonth,
    announcer: 0,
    'Kafka pollers': pollersOf(polledRate(planned, rates, load), load.pollerGroups ?? 0),
  }
  for (const stage of planned.stages) {
    const rate = rates.get(stage.name) ?? 0
    const invocations = invocationsOf(rate, partitionsOf(stage, rate, load)) * secondsPerMonth
    const records = rate * secondsPerMonth
    const seconds = (invocations * assumptions.invocationMs + records * assumptions.msPerRecord[stage.kind]) / 1_000
    total.Lambda += lambdaOf(invocations, seconds * assumptions.memoryGb)
    total.CloudWatch += cloudWatchOf(stage, invocations)
    if (stage.kind === 'keyed' && load.keyedLogs !== 'topics') total.Kinesis += streamOf(rate)
    if (stage.kind === 'stateless') continue
    // Progress is read and written once a batch; of a keyed stage each key that changes, and none of them is in memory.
    const units = invocations + (stage.kind === 'keyed' ? records / load.collapse : 0)
    total['DynamoDB writes'] += (units / 1e6) * prices.dynamodb.perMillionWriteUnits
    total['DynamoDB reads'] += (units / 1e6) * prices.dynamodb.perMillionReadUnits
  }
  if (!planned.stages.some(({ kind }) => kind === 'keyed')) return total
  total['DynamoDB storage'] = load.stateGb * (prices.dynamodb.perGbMonth + prices.dynamodb.recoveryPerGbMonth)
  total.announcer = announcerOf(planned, rates, load)
  total.CloudWatch += assumptions.alarms.announcer * prices.cloudwatch.perAlarmMonth
  return total
}

/** What each stage gets, each after those that feed it. */
function ratesOf(planned: Plan, rate: number): ReadonlyMap<string, number> {
  const rates = new Map<string, number>()
  for (const stage of planned.stages) {
    const fed = stage.kind === 'keyed' ? stage.fedBy.map((name) => rates.get(name) ?? 0) : [rate]
    rates.set(
      stage.name,
      fed.reduce((sum, one) => sum + one, 0),
    )
  }
  return rates
}

const totalRate = ({ graph }: Plan, rate: number): number => graph.sources.length * rate

/** A stream on demand has more shards where more comes; a topic has its partitions whatever comes. */
const partitionsOf = (stage: StagePlan, rate: number, { keyedLogs }: Load): number =>
  stage.kind === 'keyed' && keyedLogs === 'topics'
    ? topicPartitionsOf(stage.slots)
    : Math.max(assumptions.leastShards, Math.ceil(rate / assumptions.recordsPerShardSecond))

/** A second: one of each partition that has records, more where they do not fit in a batch. */
const invocationsOf = (rate: number, partitions: number): number =>
  Math.max(Math.min(rate, partitions), rate / assumptions.batchSize)

const lambdaOf = (invocations: number, gbSeconds: number): number =>
  (invocations / 1e6) * prices.lambda.perMillionRequests + gbSeconds * prices.lambda.perGbSecondArm

/** The stream of a keyed stage, on demand, which keeps seven days: a day is free. */
function streamOf(rate: number): number {
  const { perStreamHour, perGbIn, perGbOut, perGbMonthBeyondOneDay } = prices.kinesis
  const gbPerSecond = (rate * assumptions.recordKb) / 1024 ** 2
  const keptGb = gbPerSecond * 6 * 86_400
  return (
    perStreamHour * hoursPerMonth +
    gbPerSecond * secondsPerMonth * (perGbIn + perGbOut) +
    keptGb * perGbMonthBeyondOneDay
  )
}

/** Metrics are paid while they are emitted, alarms always. */
function cloudWatchOf({ kind }: StagePlan, invocations: number): number {
  const { perMetricMonth, perAlarmMonth, perGbOfLogs } = prices.cloudwatch
  const logsGb = (invocations * assumptions.logKbPerInvocation) / 1024 ** 2
  const metrics = invocations > 0 ? assumptions.metrics[kind] * perMetricMonth : 0
  return metrics + assumptions.alarms[kind] * perAlarmMonth + logsGb * perGbOfLogs
}

/** A round a minute, which reads the progress of every partition. */
function announcerOf(planned: Plan, rates: ReadonlyMap<string, number>, load: Load): number {
  const rounds = secondsPerMonth / 60
  const keeping = planned.stages.filter(({ kind }) => kind !== 'stateless')
  const partitions = keeping.reduce((sum, stage) => sum + partitionsOf(stage, rates.get(stage.name) ?? 0, load), 0)
  const gbSeconds = (rounds * assumptions.announcerMs * assumptions.announcerMemoryGb) / 1_000
  return lambdaOf(rounds, gbSeconds) + ((rounds * partitions) / 1e6) * prices.dynamodb.perMillionReadUnits
}

/** What pollers of Kafka read: the sources, and the topics of keyed stages. */
function polledRate(planned: Plan, rates: ReadonlyMap<string, number>, { rate, keyedLogs }: Load): number {
  const keyed = keyedLogs === 'topics' ? planned.stages.filter(({ kind }) => kind === 'keyed') : []
  return keyed.reduce((sum, { name }) => sum + (rates.get(name) ?? 0), totalRate(planned, rate))
}

/** Each group pays for one unit at least, whatever comes, and all for what goes through them. */
function pollersOf(rate: number, groups: number): number {
  if (groups === 0) return 0
  const { perUnitHour, mbPerUnitSecond } = prices.kafkaPollers
  const mbPerSecond = (rate * assumptions.recordKb) / 1_024
  return Math.max(groups, Math.ceil(mbPerSecond / mbPerUnitSecond)) * perUnitHour * hoursPerMonth
}

/** One KPU at least, and one that steers the application. */
function flinkOf(rate: number): number {
  const { perKpuHour, storageGbPerKpu, storagePerGbMonth } = prices.flink
  const kpus = Math.max(1, Math.ceil(rate / assumptions.flinkRecordsPerKpuSecond))
  return (kpus + 1) * perKpuHour * hoursPerMonth + kpus * storageGbPerKpu * storagePerGbMonth
}
