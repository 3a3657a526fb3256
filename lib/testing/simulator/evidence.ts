/** What a finished run has left, in the form in which the referees compare it. */
import type { DeadLetter } from '../../runtime/dead-letter.ts'
import type { Line } from './lines.ts'
import {
  type BySource,
  bySource,
  type InternalLog,
  type Replay,
  readInternalLog,
  replay,
  type SoldItem,
} from './oracle.ts'
import type { Simulation } from './simulation.ts'
import type { Delivery } from './sinks.ts'
import type { Variant } from './variant.ts'
import { names, type SourceEntry } from './workload.ts'

/** One dead letter, as often as it was delivered. */
export interface DeadLettered {
  readonly identity: string
  readonly letter: DeadLetter
}

export interface Evidence {
  readonly run: Simulation
  readonly entries: readonly SourceEntry[]
  readonly lines: InternalLog<Line>
  readonly sold: InternalLog<SoldItem>
  readonly replay: Replay
  readonly source: BySource
  readonly deadLetters: readonly DeadLettered[]
  /** The dead letters of records that were wrongly taken for what killed the process: crashes may meet anybody. */
  readonly killed: ReadonlySet<string>
  /** The first delivery of each identity, in order. */
  readonly applied: readonly Delivery[]
  /** Places in the source by `partition/position`. */
  readonly sentAt: ReadonlyMap<string, number>
}

const nothing: InternalLog<never> = { records: [], contradictions: [], broken: [] }

export function evidenceOf(
  run: Simulation,
  entries: readonly SourceEntry[],
  { hasBriefs }: Pick<Variant, 'hasBriefs'>,
): Evidence {
  const lines = readInternalLog<Line>(run.streams.stream(names.keyed), names.keyed)
  const sold = run.hasThirdStage ? readInternalLog<SoldItem>(run.streams.stream(names.second), names.second) : nothing
  const deadLetters = run.deliveries
    .filter(({ sink }) => sink === 'dead-letters')
    .map(({ identity, content }) => ({ identity, letter: JSON.parse(content) as DeadLetter }))
  const killed = new Set(
    deadLetters
      .filter(({ letter }) => letter.reason.code === 'killed-process' && !isKiller(letter))
      .map(({ letter }) => letter.id),
  )
  const seen = new Set<string>()
  const applied = run.deliveries.filter(({ sink, identity }) => {
    if (sink === 'dead-letters' || seen.has(identity)) return false
    seen.add(identity)
    return true
  })
  const sentAt = new Map(run.sent.map(({ shard, sequenceNumber, index }) => [`${shard}/${sequenceNumber}`, index]))
  return {
    run,
    entries,
    lines,
    sold,
    replay: replay(lines.records, sold.records, killed, hasBriefs),
    source: bySource(entries),
    deadLetters,
    killed,
    applied,
    sentAt,
  }
}

/** Whether the step that meets the record ends its process indeed. */
function isKiller({ payload }: DeadLetter): boolean {
  const value = JSON.parse(Buffer.from(payload ?? '', 'base64').toString()) as Pick<Line, 'fails'>
  return value.fails === 'kills'
}
