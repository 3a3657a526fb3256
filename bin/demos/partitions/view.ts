/** How the demo looks while it runs: who holds which shard, how fast it goes, how far behind it is, who was killed. */
import { grouped, table } from '../../../lib/local/display/run-display.ts'
import type { Kill, KillTimes } from './kills.ts'

export interface PartitionsView {
  readonly sent: number
  readonly outputs: number
  readonly duplicates: number
  readonly recordsPerSecond: number
  readonly workers: readonly WorkerView[]
  readonly shards: readonly ShardView[]
  readonly kills: readonly KillView[]
  /** What keys do; empty without a terminal. */
  readonly keys: string
}

export interface WorkerView {
  readonly id: string
  readonly pid: number | undefined
  readonly state: string
  /** Shard ids. */
  readonly holds: readonly string[]
  readonly recordsPerSecond: number
}

export interface ShardView {
  readonly shardId: string
  readonly holder: string
  readonly recordsPerSecond: number
  readonly lagMs: number
  readonly state: string
}

export type KillView = KillTimes & Pick<Kill, 'workerId' | 'orphans' | 'wasInFlight'>

/** `shardId-000000000007` is shard 7. */
export const shardNumber = (shardId: string): string => String(Number(shardId.slice(-12)))

const numbers = (shardIds: readonly string[]): string =>
  shardIds
    .map((shardId) => Number(shardNumber(shardId)))
    .sort((one, other) => one - other)
    .join(' ')

const perSecond = (rate: number): string => `${grouped(rate)}/s`
const lag = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
const since = (ms: number | undefined): string => (ms === undefined ? '…' : `${grouped(ms)} ms`)
const columns = 3

export const partitionsRenderer = { block, line }

function block(view: PartitionsView): readonly string[] {
  const { workers, shards, kills, keys } = view
  const parallelism = `min(${shards.length} shards, ${workers.length} workers) = ${Math.min(shards.length, workers.length)}`
  const workerRows = workers.map(({ id, pid, state, holds, recordsPerSecond }) => [
    id,
    String(pid ?? '-'),
    state,
    perSecond(recordsPerSecond),
    numbers(holds),
  ])
  return [
    `sent ${grouped(view.sent)}   out ${grouped(view.outputs)} (${grouped(view.duplicates)} duplicates absorbed)   ${perSecond(view.recordsPerSecond)}   parallelism ${parallelism}`,
    ...table(
      [['worker', 'process', 'state', 'records', 'holds shards'], ...workerRows],
      [false, true, false, true, false],
    ),
    ...shardGrid(shards),
    ...kills.map(killLine),
    keys,
  ]
}

/** The shards side by side, so that 24 of them fit on a terminal of 24 lines. */
function shardGrid(shards: readonly ShardView[]): readonly string[] {
  const height = Math.ceil(shards.length / columns)
  const cells = (shard: ShardView | undefined): readonly string[] =>
    shard === undefined
      ? ['', '', '', '', '']
      : [
          shardNumber(shard.shardId),
          shard.holder,
          perSecond(shard.recordsPerSecond),
          lag(shard.lagMs),
          shard.state === 'running' ? '' : shard.state,
        ]
  const rows = Array.from({ length: height }, (_, row) =>
    Array.from({ length: columns }, (_, column) => cells(shards[row + column * height])).flat(),
  )
  const head = ['shard', 'holder', 'records', 'lag', '']
  const numeric = [true, false, true, true, false]
  return table(
    [Array.from({ length: columns }, () => head).flat(), ...rows],
    Array.from({ length: columns }, () => numeric).flat(),
  )
}

/** One kill in words. */
export function killLine({ workerId, orphans, wasInFlight, detectionMs, takeOverMs, firstRecordMs }: KillView): string {
  const whose = orphans.length === 0 ? 'no shards' : `shards ${numbers(orphans)}`
  const flight =
    detectionMs === undefined ? '' : wasInFlight ? ', with an invocation in flight' : ', none was in flight'
  return `killed ${workerId}, which held ${whose}${flight}: detected after ${since(detectionMs)}, taken over ${since(takeOverMs)} later, first record of each within ${since(firstRecordMs)} of SIGKILL`
}

function line(view: PartitionsView, nowMs: number): string {
  const { sent, outputs, duplicates, recordsPerSecond, workers, shards, kills } = view
  const map = workers.map(({ id, holds }) => `${id} holds ${numbers(holds) || 'none'}`).join(', ')
  return [
    `${new Date(nowMs).toISOString().slice(0, 19)}Z`,
    `sent ${grouped(sent)}, out ${grouped(outputs)}, ${grouped(duplicates)} duplicates absorbed`,
    perSecond(recordsPerSecond),
    `lag ${lag(Math.max(0, ...shards.map(({ lagMs }) => lagMs)))}`,
    map,
    `${kills.length} killed`,
  ].join(' | ')
}
