/** The application without time as a run takes it: every kind of state, no windows and no timers. */
import { decodeFrame } from '../../runtime/frames/frame-format.ts'
import type { Application, Touched } from './application.ts'
import { evidenceOf } from './evidence.ts'
import { findingsOf } from './findings.ts'
import { Random } from './random.ts'
import { referees } from './referees.ts'
import type { Simulation } from './simulation.ts'
import { isRejected, itemSlots, type Line, names, simulatedTopology, sourceRecords, userSlots } from './workload.ts'

/** Runs of one source number have the same source. */
export function keyedApplication(source: number, startMs: number, hasThirdStage: boolean): Application<Simulation> {
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
    topologyOf: (version, kill) => simulatedTopology({ hasThirdStage, keepsVisits: version === 1, kill }),
    touchedBy,
    rejects: isRejected,
    waiting: async () => [],
    async judge(run) {
      const evidence = evidenceOf(run, entries)
      const met = new Map([['innocent killed', evidence.killed.size]])
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
  return { keys: records.map(({ key }) => key), entries, audits }
}

function recordsOf(data: Uint8Array) {
  try {
    const frame = decodeFrame(data)
    return 'records' in frame ? frame.records : []
  } catch {
    return []
  }
}
