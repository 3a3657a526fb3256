/** The application with time as a run takes it. */
import { decodeFrame } from '../../runtime/frames/frame-format.ts'
import type { Application, Touched } from './application.ts'
import { waitsFor } from './due-watch.ts'
import { findingsOf } from './findings.ts'
import { Random } from './random.ts'
import type { Simulation } from './simulation.ts'
import { timedEvidenceOf } from './timed-evidence.ts'
import { timedReferees } from './timed-referees.ts'
import {
  finals,
  groupSlots,
  otherWindows,
  type TimedEntry,
  timedNames,
  timedRecords,
  timedTopology,
  visitorSlots,
} from './timed-workload.ts'

const never = new AbortController().signal

/** Runs of one source number have the same source and the same windows. */
export function timedApplication(source: number, startMs: number, hasThirdStage: boolean): Application<Simulation> {
  const random = new Random(`timed source ${source}`)
  const [one, other] = [random.pick(otherWindows), random.pick(otherWindows)]
  const windows = one === other ? [finals, one] : [finals, one, other]
  const entries = timedRecords(random, startMs)
  const keyedStages: { name: string; slots: number }[] = [{ name: timedNames.keyed, slots: visitorSlots }]
  if (hasThirdStage) keyedStages.push({ name: timedNames.second, slots: groupSlots })
  return {
    hasTime: true,
    topology: timedNames.topology,
    source: timedNames.source,
    keyedStages,
    records: entries,
    spanMs: spanOf(entries),
    topologyOf: (_, kill) => timedTopology({ windows, hasThirdStage, kill }),
    touchedBy: (_, data) => ({ ...nothingTouched, keys: keysOf(data) }),
    rejects: () => false,
    async waiting({ stages }) {
      const waiting: string[] = []
      for (const { name } of keyedStages) {
        const items = await stages.table(name).readKeys(name === timedNames.keyed ? users : groups, never)
        for (const [key, { own }] of items) {
          for (const { domain, timeMs } of waitsFor(own)) waiting.push(`${name}/${key} waits for ${domain} ${timeMs}`)
        }
      }
      return waiting
    },
    async judge(run) {
      const evidence = timedEvidenceOf(run, entries, windows)
      const { exemption, killed, visitors } = evidence
      const met = new Map([
        ['innocent killed', killed.size],
        ['redriven keys', visitors.redriven.size],
        [exemption === undefined ? 'compared with the source' : `not compared: ${exemption}`, 1],
      ])
      return { findings: await findingsOf(timedReferees, evidence), met }
    },
  }
}

function spanOf(entries: readonly TimedEntry[]): number {
  const times = entries.flatMap(({ visit }) => (visit ? [visit.atMs] : []))
  return Math.max(...times) - Math.min(...times)
}

const users = Array.from({ length: 10 }, (_, i) => `user-${i}`)
const groups = Array.from({ length: 3 }, (_, i) => `group-${i}`)
const nothingTouched: Touched = { keys: [], entries: [], audits: 0 }

function keysOf(data: Uint8Array): readonly string[] {
  try {
    const frame = decodeFrame(data)
    return 'records' in frame ? frame.records.map(({ key }) => key) : []
  } catch {
    return []
  }
}
