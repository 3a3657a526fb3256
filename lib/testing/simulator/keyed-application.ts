/** The application without time as a run takes it: every kind of state, no windows and no timers. */
import { decodeFrame } from '../../runtime/frames/frame-format.ts'
import type { Application, Touched } from './application.ts'
import { briefNames } from './briefs.ts'
import { evidenceOf } from './evidence.ts'
import { findingsOf } from './findings.ts'
import type { Line } from './lines.ts'
import { poisonMet } from './poison-met.ts'
import { Random } from './random.ts'
import { redeployMet } from './redeploy-met.ts'
import { referees } from './referees.ts'
import type { Simulation } from './simulation.ts'
import type { Variant } from './variant.ts'
import { added, isRejected, itemSlots, names, sourceRecords, userSlots } from './workload.ts'

/** Runs of one source number have the same source. */
export function keyedApplication(source: number, startMs: number, variant: Variant): Application<Simulation> {
  const { hasThirdStage } = variant
  const entries = sourceRecords(new Random(`source ${source}`), startMs)
  const keyedStages: { name: string; slots: number }[] = [{ name: names.keyed, slots: userSlots }]
  if (hasThirdStage) keyedStages.push({ name: names.second, slots: itemSlots })
  return {
    hasTime: false,
    topology: names.topology,
    source: names.source,
    keyedStages,
    records: entries,
    spanMs: 0,
    built: { kind: 'keyed', variant },
    touchedBy,
    rejects: isRejected,
    // What fades by event time stays: a silence is none in the times of the records.
    ttlTakes: (item) => !('state' in item && item.state === briefNames.byEventTime),
    waiting: async () => [],
    async judge(run) {
      const evidence = evidenceOf(run, entries, variant)
      const { killed, replay, deadLetters } = evidence
      const met = new Map([
        ['innocent killed', killed.size],
        ['value forgotten after its TTL', replay.forgotten],
        ...redeployMet(run, {
          source: names.source,
          keyed: names.keyed,
          second: names.second,
          operatorSink: added.outputs,
          sink: added.sink,
        }),
        ...poisonMet(deadLetters.map(({ letter }) => letter)),
      ])
      return { findings: await findingsOf(referees, evidence), met }
    },
  }
}

function touchedBy(stage: string, data: Uint8Array): Touched {
  const records = recordsOf(data)
  const lines =
    stage === names.keyed ? records.map(({ value }) => JSON.parse(Buffer.from(value).toString()) as Line) : []
  const entries = lines.flatMap(({ user, line, item, does }) =>
    does === 'audit' ? [`${user} once ${line}`] : [`${user} once ${line}`, `${user} ${item}`],
  )
  const audits = lines.filter(({ does }) => does === 'audit').length
  const oldestMs = Math.min(...records.map(({ origin }) => origin.arrivalTimeMs))
  return { keys: records.map(({ key }) => key), entries, audits, oldestMs }
}

function recordsOf(data: Uint8Array) {
  try {
    const frame = decodeFrame(data)
    return 'records' in frame ? frame.records : []
  } catch {
    return []
  }
}
