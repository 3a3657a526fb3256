/**
 * Follows what becomes of the shards of a killed worker.
 *
 *   SIGKILL ── detection ──> the pool sees the process gone and names a new holder for each orphan
 *                 └─ take-over ──> the new holder's first invocation of that orphan begins
 *                                    └──> the orphan's first record is in the output stream
 *
 * 1. All times are of one machine's clock, in ms since 1970.
 * 2. An invocation was in flight when it ended unanswered with the process; only then may there be outputs that come again.
 * 3. An output counts for a take-over only when it arrived after the new holder began: by then the killed process is gone.
 */
import type { LocalInvocation } from '../../../lib/local/run/stage.ts'
import type { WorkerEvent } from '../../../lib/local/workers/index.ts'

/** What is done and saved of each shard: its last sequence number, undefined before the first. */
export type Checkpoints = ReadonlyMap<string, string | undefined>

/** How one orphan was taken over. */
export interface TakeOver {
  readonly shardId: string
  readonly workerId: string
  readonly startedAtMs: number
  /** Where the shard stood when the new holder began, and with which record it began. */
  readonly checkpoint: string | undefined
  readonly firstPosition: string
}

export interface Kill {
  readonly workerId: string
  readonly killedAtMs: number
  /** Where every shard stood at the kill. */
  readonly checkpoints: Checkpoints
  detectedAtMs: number | undefined
  wasInFlight: boolean
  orphans: readonly string[]
  readonly takeOvers: Map<string, TakeOver>
}

/** Times of one kill; undefined where it has not come so far for every orphan. */
export interface KillTimes {
  readonly detectionMs: number | undefined
  /** From the detection to the last orphan's first invocation. */
  readonly takeOverMs: number | undefined
  /** From SIGKILL to the first record of the orphan that took longest. */
  readonly firstRecordMs: number | undefined
}

export class Kills {
  readonly all: Kill[] = []

  /** Call it right before the signal is sent. */
  begin(workerId: string, killedAtMs: number, checkpoints: Checkpoints): void {
    const takeOvers = new Map<string, TakeOver>()
    const unknown = { detectedAtMs: undefined, wasInFlight: false, orphans: [] }
    this.all.push({ workerId, killedAtMs, checkpoints, ...unknown, takeOvers })
  }

  takeEvent(event: WorkerEvent): void {
    if (event.kind !== 'exited') return
    const kill = this.all.find(
      ({ workerId, detectedAtMs }) => workerId === event.workerId && detectedAtMs === undefined,
    )
    if (kill === undefined) return
    kill.detectedAtMs = event.atMs
    kill.orphans = [...event.orphans.keys()]
  }

  /** Takes an invocation before what it did is saved. */
  takeInvocation(invocation: LocalInvocation, checkpoints: () => Checkpoints): void {
    const { shardId, workerId, startedAtMs, endedAtMs, firstPosition, outcome } = invocation
    const ended = this.all.find((kill) => kill.workerId === workerId && endedAtMs >= kill.killedAtMs)
    if (ended !== undefined && outcome !== 'answered') ended.wasInFlight = true
    for (const { detectedAtMs, orphans, takeOvers } of this.all) {
      if (detectedAtMs === undefined || startedAtMs < detectedAtMs || outcome !== 'answered') continue
      if (!orphans.includes(shardId) || takeOvers.has(shardId)) continue
      takeOvers.set(shardId, {
        ...{ shardId, workerId, startedAtMs, firstPosition },
        checkpoint: checkpoints().get(shardId),
      })
    }
  }

  /** Whether every orphan so far has a first record. */
  areSettled(arrivalsMs: ReadonlyMap<string, readonly number[]>): boolean {
    return this.all.every((kill) => timesOf(kill, arrivalsMs).firstRecordMs !== undefined)
  }
}

/** `arrivalsMs` says, by shard, when its outputs reached the output stream. */
export function timesOf(kill: Kill, arrivalsMs: ReadonlyMap<string, readonly number[]>): KillTimes {
  const { killedAtMs, detectedAtMs, orphans, takeOvers } = kill
  if (detectedAtMs === undefined) return { detectionMs: undefined, takeOverMs: undefined, firstRecordMs: undefined }
  const startsMs = orphans.map((shardId) => takeOvers.get(shardId)?.startedAtMs)
  const firstsMs = orphans.map((shardId, index) => {
    const startMs = startsMs[index]
    return startMs === undefined ? undefined : arrivalsMs.get(shardId)?.find((atMs) => atMs >= startMs)
  })
  return {
    detectionMs: detectedAtMs - killedAtMs,
    takeOverMs: lastOf(startsMs, detectedAtMs),
    firstRecordMs: lastOf(firstsMs, killedAtMs),
  }
}

/** How long after a moment the last of several came; undefined where one has not come. A worker without shards leaves no orphans. */
function lastOf(timesMs: readonly (number | undefined)[], sinceMs: number): number | undefined {
  const known = timesMs.filter((atMs) => atMs !== undefined)
  if (known.length < timesMs.length) return undefined
  return Math.max(0, ...known.map((atMs) => atMs - sinceMs))
}
