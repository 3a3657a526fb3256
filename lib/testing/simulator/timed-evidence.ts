/** What a finished run of the application with time has left, in the form in which its referees compare it. */
import { slotOf } from '../../core/slot.ts'
import type { DeadLetter } from '../../runtime/dead-letter.ts'
import type { Simulation } from './simulation.ts'
import type { Delivery } from './sinks.ts'
import { SlidingWindows } from './sliding-oracle.ts'
import { emptyLog, readTimedLog, type TimedLine, type TimedLog, type TimedRecord } from './timed-log.ts'
import {
  CountedWindows,
  FixedWindows,
  type KeyOracle,
  type KeyWindows,
  type Put,
  replayTimed,
  Sessions,
  type TimedReplay,
  Watch,
} from './timed-oracle.ts'
import { type TimedBySource, timedBySource } from './timed-source.ts'
import {
  type GroupResult,
  groupSlots,
  type Hit,
  type TimedEntry,
  timedNames,
  totals,
  visitorSlots,
  type WindowSpec,
} from './timed-workload.ts'

/** What the first keyed stage keeps of a user. */
export class VisitorOracle implements KeyOracle<Hit> {
  readonly watch: Watch
  readonly #windows: readonly KeyWindows[]

  constructor(user: string, specs: readonly WindowSpec[]) {
    const behind = specs.find(({ isBehindTimers }) => isBehindTimers)
    this.watch = new Watch(user, behind && windowsFor(behind, user))
    this.#windows = specs.filter((spec) => spec !== behind).map((spec) => windowsFor(spec, user))
  }

  fire(line: TimedLine<Hit>, put: Put, behind?: TimedRecord<Hit>): readonly string[] {
    for (const windows of this.#windows) windows.fire(line.watermarkMs, put)
    return this.watch.fire(line, put, behind)
  }

  take(record: TimedRecord<Hit>, { watermarkMs }: TimedLine<Hit>, put: Put): void {
    const { eventTimeMs, ownMarkMs, value } = record
    this.watch.take(record, watermarkMs, put)
    for (const windows of this.#windows) {
      windows.take({ eventTimeMs, ownMarkMs, cents: value.cents, value }, watermarkMs, put)
    }
  }
}

function windowsFor(spec: WindowSpec, user: string): KeyWindows {
  if (spec.count !== undefined) return new CountedWindows(spec, user)
  if (spec.slides) return new SlidingWindows(spec, user)
  return spec.everyMs === undefined ? new Sessions(spec, user) : new FixedWindows(spec, user)
}

/** What the second keyed stage keeps of a group. */
class GroupOracle implements KeyOracle<GroupResult> {
  readonly #windows: FixedWindows

  constructor(group: string) {
    this.#windows = new FixedWindows(totals, group)
  }

  fire({ watermarkMs }: TimedLine<GroupResult>, put: Put): readonly string[] {
    this.#windows.fire(watermarkMs, put)
    return []
  }

  take({ eventTimeMs, ownMarkMs, value }: TimedRecord<GroupResult>, line: TimedLine<GroupResult>, put: Put): void {
    this.#windows.take({ eventTimeMs, ownMarkMs, cents: value.cents, value }, line.watermarkMs, put)
  }
}

/** One dead letter, as often as it was delivered. */
export interface TimedDeadLetter {
  readonly identity: string
  readonly letter: DeadLetter
}

export interface TimedEvidence {
  readonly run: Simulation
  readonly entries: readonly TimedEntry[]
  readonly windows: readonly WindowSpec[]
  readonly hits: TimedLog<Hit>
  readonly results: TimedLog<GroupResult>
  readonly visitors: TimedReplay<Hit, VisitorOracle>
  readonly groups: TimedReplay<GroupResult, KeyOracle<GroupResult>>
  readonly deadLetters: readonly TimedDeadLetter[]
  /** The dead letters of records that were wrongly taken for what killed the process. */
  readonly killed: ReadonlySet<string>
  /** The first delivery of each identity, in order. */
  readonly applied: readonly Delivery[]
  readonly source: TimedBySource
  /** Why what is late may differ from what the source says; undefined where it may not. */
  readonly exemption: string | undefined
}

export function timedEvidenceOf(
  run: Simulation,
  entries: readonly TimedEntry[],
  windows: readonly WindowSpec[],
): TimedEvidence {
  const hits = readTimedLog<Hit>(run.streams.stream(timedNames.keyed))
  const results = run.hasThirdStage ? readTimedLog<GroupResult>(run.streams.stream(timedNames.second)) : emptyLog
  const deadLetters = run.deliveries
    .filter(({ sink }) => sink === 'dead-letters')
    .map(({ identity, content }) => ({ identity, letter: JSON.parse(content) as DeadLetter }))
  const killed = new Set(deadLetters.filter(({ letter }) => isInnocent(letter)).map(({ letter }) => letter.id))
  const seen = new Set<string>()
  const applied = run.deliveries.filter(({ sink, identity }) => {
    if (sink === 'dead-letters' || seen.has(identity)) return false
    seen.add(identity)
    return true
  })
  // Whom crashes met by chance is well when it is redriven.
  const isKilled = ({ redrive }: TimedRecord<unknown>, id: string) => redrive === undefined && killed.has(id)
  const visitors = replayTimed({
    stage: timedNames.keyed,
    log: hits,
    slotOf: (key) => slotOf(key, visitorSlots),
    newKey: (user) => new VisitorOracle(user, windows),
    fails: (record, id) => record.value.fails !== 'never' || isKilled(record, id),
  })
  const groups = replayTimed<GroupResult, KeyOracle<GroupResult>>({
    stage: timedNames.second,
    log: results,
    slotOf: (key) => slotOf(key, groupSlots),
    newKey: (group) => new GroupOracle(group),
    fails: isKilled,
  })
  const source = timedBySource(run, entries, windows)
  const exemption = exemptionOf(run, hits, killed)
  return { run, entries, windows, hits, results, visitors, groups, deadLetters, killed, applied, source, exemption }
}

function isInnocent({ reason, payload }: DeadLetter): boolean {
  if (reason.code !== 'killed-process') return false
  const value = JSON.parse(Buffer.from(payload ?? '', 'base64').toString()) as Pick<Hit, 'fails'>
  return value.fails !== 'kills'
}

/** P4 makes an exception of idle clocks that were wrong; and what the stream inverted may be late by its watermark. */
function exemptionOf(run: Simulation, { lines }: TimedLog<Hit>, killed: ReadonlySet<string>): string | undefined {
  if (run.announcers?.wasIdleClockWrong()) return 'an idle clock was wrong'
  if (run.met.has('partition added to the source')) return 'a partition without a parent was added to the source'
  if (killed.size > 0) return 'a record was taken for what ended the process'
  if (lines.some(({ record }) => record?.isOvertaken)) return 'the stream inverted frames'
  return undefined
}
