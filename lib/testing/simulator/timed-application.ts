/** The application with time as a run takes it. */
import { decodeFrame } from '../../runtime/frames/frame-format.ts'
import type { Application, Touched } from './application.ts'
import { waitsFor } from './due-watch.ts'
import { findingsOf } from './findings.ts'
import { poisonMet } from './poison-met.ts'
import { Random } from './random.ts'
import { redeployMet } from './redeploy-met.ts'
import type { Simulation } from './simulation.ts'
import { timedEvidenceOf } from './timed-evidence.ts'
import { timedReferees } from './timed-referees.ts'
import {
  addedWindows,
  auditedVisits,
  farMs,
  finals,
  groupSlots,
  moreWindows,
  otherWindows,
  slidingWindows,
  type TimedEntry,
  timedNames,
  timedRecords,
  visitorSlots,
  type WindowSpec,
  windowsBehindTimers,
} from './timed-workload.ts'
import type { Variant } from './variant.ts'

const never = new AbortController().signal

/** Runs of one source number have the same source and the same windows. */
export function timedApplication(source: number, startMs: number, variant: Variant): Application<Simulation> {
  const { hasThirdStage } = variant
  const random = new Random(`timed source ${source}`)
  const [one, other] = [random.pick(otherWindows), random.pick(otherWindows)]
  const more = random.fork('more windows')
  // The numbers are the first with which no kept seed draws any: what was drawn before is as it was.
  const slides = random.fork('sliding windows 659')
  const behind = random.fork('windows behind timers 517')
  const drawn = [
    ...new Set([finals, one, other]),
    ...(more.chance(0.5) ? [more.pick(moreWindows)] : []),
    ...(slides.chance(1 / 3) ? [slides.pick(slidingWindows)] : []),
    ...(behind.chance(1 / 3) ? [behind.pick(windowsBehindTimers)] : []),
  ]
  const entries = timedRecords(random, startMs)
  const hasWrongClocks = entries.some(({ visit }) => visit && visit.atMs >= startMs + farMs)
  const windows = drawn.filter((spec) => !variant.mixesReleases || isAsInFormerRelease(spec, hasWrongClocks))
  const keyedStages: { name: string; slots: number }[] = [{ name: timedNames.keyed, slots: visitorSlots }]
  if (hasThirdStage) keyedStages.push({ name: timedNames.second, slots: groupSlots })
  return {
    hasTime: true,
    topology: timedNames.topology,
    source: timedNames.source,
    keyedStages,
    records: entries,
    spanMs: spanOf(entries, startMs),
    built: { kind: 'timed', variant, windows },
    touchedBy: (_, data) => touchedBy(data),
    rejects: () => false,
    ttlTakes: () => true,
    async waiting({ stages }) {
      const waiting: string[] = []
      for (const { name } of keyedStages) {
        const items = await stages.table(name).readKeys(name === timedNames.keyed ? users : groups, never)
        for (const [key, { own }] of items) {
          for (const { domain, timeMs } of waitsFor(own)) {
            if (timeMs < startMs + farMs) waiting.push(`${name}/${key} waits for ${domain} ${timeMs}`)
          }
        }
      }
      return waiting
    },
    async judge(run) {
      const evidence = timedEvidenceOf(run, entries, windows)
      const { exemption, killed, visitors, hits, results } = evidence
      const unnamed = new Set([...hits.unnamed, ...results.unnamed])
      const unheardOf = [...run.unheardOf].filter((name) => unnamed.has(name)).length
      const met = new Map([
        ['innocent killed', killed.size],
        ['partition nobody has heard of', unheardOf],
        ...redeployMet(run, {
          source: timedNames.source,
          keyed: timedNames.keyed,
          second: timedNames.second,
          operatorSink: addedWindows.name,
          sink: auditedVisits,
        }),
        ...poisonMet(evidence.deadLetters.map(({ letter }) => letter)),
        ...windows.map(({ name }) => [`windows: ${name}`, 1] as const),
        ['redriven keys', visitors.redriven.size],
        [exemption === undefined ? 'compared with the source' : `not compared: ${exemption}`, 1],
      ])
      return { findings: await findingsOf(timedReferees, evidence), met }
    },
  }
}

/** The release before this one took what timers put out for late where this one does not, and the times of wrong clocks for bounds. */
const isAsInFormerRelease = ({ isBehindTimers, count }: WindowSpec, hasWrongClocks: boolean): boolean =>
  !isBehindTimers && (count === undefined || !hasWrongClocks)

function spanOf(entries: readonly TimedEntry[], startMs: number): number {
  const times = entries.flatMap(({ visit }) => (visit && visit.atMs < startMs + farMs ? [visit.atMs] : []))
  return Math.max(...times) - Math.min(...times)
}

const users = Array.from({ length: 10 }, (_, i) => `user-${i}`)
const groups = Array.from({ length: 3 }, (_, i) => `group-${i}`)
const nothingTouched: Touched = { keys: [], entries: [], audits: 0, oldestMs: Number.POSITIVE_INFINITY }

function touchedBy(data: Uint8Array): Touched {
  try {
    const frame = decodeFrame(data)
    if (!('records' in frame)) return nothingTouched
    const oldestMs = Math.min(...frame.records.map(({ origin }) => origin.arrivalTimeMs))
    return { ...nothingTouched, keys: frame.records.map(({ key }) => key), oldestMs }
  } catch {
    return nothingTouched
  }
}
