/**
 * Runs one query over events in memory, through Millrace and as a loop by hand, and measures processor time: all that the
 * process took, in every thread, so that it is the time on one core whatever else the machine does.
 */
import { eventLines } from '../../bin/nexmark/delivery.ts'
import { QueryRun } from '../../bin/nexmark/query-run.ts'
import { queries } from '../../functions/nexmark/queries.ts'
import type { MakeQuery } from '../../functions/nexmark/query.ts'
import { milliseconds } from '../../lib/core/duration.ts'
import { median } from '../figures.ts'
import { byHand, runByHand, type Take } from './by-hand.ts'
import { profiled, type TimeShares } from './where-time-goes.ts'

export interface RaceOptions {
  readonly query: string
  readonly events: number
  readonly rounds: number
}

export interface RaceResult {
  readonly query: string
  readonly results: number
  /** Events a second of processor time, medians. */
  readonly millracePerSecond: number
  readonly byHandPerSecond: number
  /** The median of each round's ratio. */
  readonly ratio: number
  readonly shares: TimeShares
}

/** Bids are held back by up to four seconds, and every query allows as much. */
const disorderMs = 4_000
const seed = 1
/** Each partition's function is given so many records at a time: less than a MB of them. */
const batchSize = 2_500
const partitions = 4
/** Runs before anything is measured, until the compiler has seen enough. */
const warmUps = 3

export function linesOf(events: number): readonly Buffer[] {
  return Array.from(eventLines({ events, seed, disorderMs }), (line) => Buffer.from(line))
}

/** Runs the query once through the whole stack. */
async function throughMillrace(query: string, lines: readonly Buffer[], take: Take): Promise<void> {
  const app = (queries[query] as MakeQuery)(milliseconds(disorderMs))
  const refuse = (reason: string) => {
    throw new Error(`${query} made a dead letter: ${reason}`)
  }
  const run = new QueryRun({ app, take: (_sink, line) => take(line), refuse, partitions, batchSize })
  const addition = partitions * batchSize
  for (let from = 0; from < lines.length; from += addition) await run.add(lines.slice(from, from + addition))
  await run.end()
}

function asLoop(query: string, lines: readonly Buffer[], take: Take): void {
  const make = byHand[query] as (typeof byHand)[string]
  runByHand(make(take), lines)
}

/** Turns each result into the bytes that would leave, and keeps none of them. */
function outward(): Take {
  const bytes = Buffer.alloc(1 << 16)
  return (line) => void bytes.write(line)
}

async function processorSeconds(run: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}

/** Throws where the two do not come to the same results. */
export async function race({ query, events, rounds }: RaceOptions): Promise<RaceResult> {
  const lines = linesOf(events)
  const rows = await refuseDifference(query, lines)
  const take = outward()
  for (let i = 0; i < warmUps; i++) {
    await throughMillrace(query, lines, take)
    asLoop(query, lines, take)
  }
  const [own, other]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    own.push(events / (await processorSeconds(() => throughMillrace(query, lines, take))))
    other.push(events / (await processorSeconds(() => asLoop(query, lines, take))))
  }
  const shares = await profiled(() => throughMillrace(query, lines, take))
  return {
    query,
    results: rows,
    millracePerSecond: median(own),
    byHandPerSecond: median(other),
    ratio: median(own.map((speed, round) => speed / (other[round] as number))),
    shares,
  }
}

/** Answers how many results there are. */
async function refuseDifference(query: string, lines: readonly Buffer[]): Promise<number> {
  const [ours, others]: [string[], string[]] = [[], []]
  await throughMillrace(query, lines, (line) => void ours.push(line))
  asLoop(query, lines, (line) => void others.push(line))
  ours.sort()
  others.sort()
  if (ours.length === others.length && ours.every((line, i) => line === others[i])) return ours.length
  throw new Error(`${query}: Millrace and the loop by hand differ (${ours.length} and ${others.length} rows)`)
}
