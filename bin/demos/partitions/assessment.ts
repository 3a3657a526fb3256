/** What a run of the demo came to, held against what was sent. */
import type { Figure } from '../../../bench/figures.ts'
import { type Kill, type KillTimes, timesOf } from './kills.ts'
import type { RideTable } from './ride-table.ts'

/** A ride as it was sent. */
export interface SentRide {
  readonly shardId: string
  readonly position: string
  /** Whether the filter lets it through. */
  readonly isKept: boolean
}

export interface RunRecord {
  readonly shards: number
  readonly workers: number
  readonly sent: readonly SentRide[]
  readonly table: RideTable
  readonly kills: readonly Kill[]
  /** When each invocation ran, ms since 1970. */
  readonly invocations: readonly { readonly startedAtMs: number; readonly endedAtMs: number }[]
}

const takeOverGoalMs = 300
const firstRecordGoalMs = 1_000

/** The figures, with the goals that the demo states. */
export function figuresOf(run: RunRecord): readonly Figure[] {
  const { shards, workers, sent, table, kills, invocations } = run
  const expected = new Set(sent.filter(({ isKept }) => isKept).map(identityOf))
  const times = kills.map((kill) => timesOf(kill, table.arrivalsMs))
  const parallelism = { value: mostAtOnce(invocations), goal: Math.min(shards, workers) }
  return [
    { name: 'shards', value: shards, unit: '' },
    { name: 'workers', value: workers, unit: '' },
    { name: 'parallelism: min(shards, workers)', ...parallelism, unit: 'invocations at once', better: 'exactly' },
    { name: 'sent', value: sent.length, unit: 'records' },
    { name: 'kept by the filter', value: expected.size, unit: 'records' },
    { name: 'in the output table', value: table.rows.size, unit: 'records' },
    zero('lost', [...expected].filter((identity) => !table.rows.has(identity)).length),
    zero('in the table without reason', [...table.rows.keys()].filter((identity) => !expected.has(identity)).length),
    { name: 'duplicates absorbed', value: table.duplicates, unit: 'records' },
    zero('duplicates with other content', table.contradictions),
    { name: 'workers killed', value: kills.length, unit: '' },
    ...(kills.length === 0 ? [] : killFigures(run, times)),
  ]
}

function killFigures({ kills, sent, table }: RunRecord, times: readonly KillTimes[]): readonly Figure[] {
  const takeOvers = kills.flatMap((kill) => [...kill.takeOvers.values()])
  const next = nextPositions(sent)
  const resumed = takeOvers.filter(
    ({ shardId, checkpoint, firstPosition }) => next(shardId, checkpoint) === firstPosition,
  )
  const orphans = kills.reduce((sum, kill) => sum + kill.orphans.length, 0)
  const slowest = (of: (time: KillTimes) => number | undefined): number =>
    Math.max(...times.map((time) => of(time) ?? Number.POSITIVE_INFINITY))
  const ms = { unit: 'ms', better: 'lower' } as const
  const firstRecord = slowest((time) => time.firstRecordMs)
  return [
    { name: 'killed with an invocation in flight', value: kills.filter((kill) => kill.wasInFlight).length, unit: '' },
    { name: 'orphaned shards', value: orphans, unit: '' },
    { name: 'resumed at the last checkpoint', value: resumed.length, unit: 'orphaned shards', goal: orphans },
    zero('checkpointed before the output was there', early(kills, sent, table)),
    { name: 'SIGKILL to detection', value: slowest((time) => time.detectionMs), ...ms },
    {
      name: 'detection to take-over, slowest orphan',
      value: slowest((time) => time.takeOverMs),
      goal: takeOverGoalMs,
      ...ms,
    },
    { name: 'SIGKILL to first record, slowest orphan', value: firstRecord, goal: firstRecordGoalMs, ...ms },
  ]
}

const zero = (name: string, value: number): Figure => ({ name, value, unit: 'records', goal: 0, better: 'lower' })

/** The identity that the topology gives to the one output of a record. */
export const identityOf = ({ shardId, position }: SentRide): string => `rides/${shardId}/${position}/0/0`

/** Finds what was sent to a shard next after a position. */
function nextPositions(sent: readonly SentRide[]) {
  const byShard = new Map<string, string[]>()
  for (const { shardId, position } of sent) {
    const positions = byShard.get(shardId)
    if (positions) positions.push(position)
    else byShard.set(shardId, [position])
  }
  return (shardId: string, after: string | undefined): string | undefined => {
    const positions = byShard.get(shardId) ?? []
    return after === undefined ? positions[0] : positions[positions.indexOf(after) + 1]
  }
}

/** Records that a checkpoint had passed at the time of a kill, although their output reached the stream later or never. */
function early(kills: readonly Kill[], sent: readonly SentRide[], { rows }: RideTable): number {
  return kills.reduce((sum, { checkpoints, killedAtMs }) => {
    const passed = sent.filter(({ shardId, position, isKept }) => {
      const checkpoint = checkpoints.get(shardId)
      return isKept && checkpoint !== undefined && BigInt(position) <= BigInt(checkpoint)
    })
    return sum + passed.filter((ride) => !((rows.get(identityOf(ride))?.arrivalMs ?? Infinity) <= killedAtMs)).length
  }, 0)
}

/** The most invocations that ran at one time. One that ends when another begins is not beside it. */
export function mostAtOnce(invocations: RunRecord['invocations']): number {
  const changes = invocations.flatMap(({ startedAtMs, endedAtMs }) =>
    // What began and ended within one millisecond ran for a part of it.
    endedAtMs > startedAtMs
      ? [
          { atMs: startedAtMs, by: 1 },
          { atMs: endedAtMs, by: -1 },
        ]
      : [],
  )
  changes.sort((one, other) => one.atMs - other.atMs || one.by - other.by)
  let [running, most] = [0, 0]
  for (const { by } of changes) {
    running += by
    most = Math.max(most, running)
  }
  return most
}
