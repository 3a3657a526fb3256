/** Runs a query over lines in memory. */
import { disorderOf, eventTimesOf } from '../../bin/nexmark/event-times.ts'
import { QueryRun } from '../../bin/nexmark/query-run.ts'
import type { NexmarkEvent } from '../../functions/nexmark/events.ts'
import { queries } from '../../functions/nexmark/queries.ts'
import type { MakeQuery } from '../../functions/nexmark/query.ts'
import { type Duration, milliseconds } from '../../lib/index.ts'

export interface LinesRun {
  /** In the order of their texts: results are a bag. */
  readonly results: readonly string[]
  readonly late: readonly string[]
  readonly deadLetters: readonly string[]
}

export interface LinesRunOptions {
  readonly partitions?: number
  readonly batchSize?: number
  /** Lines that are added at a time. @default 1500 */
  readonly addition?: number
  /** What the source allows. @default as much as the lines are out of order */
  readonly outOfOrderness?: Duration
}

export async function runLines(
  query: string,
  lines: readonly string[],
  { addition = 1_500, outOfOrderness, ...options }: LinesRunOptions = {},
): Promise<LinesRun> {
  const make = queries[query] as MakeQuery
  const payloads = lines.map((line) => Buffer.from(line))
  const app = make(outOfOrderness ?? disorderOf(eventTimesOf(make(milliseconds(0))), [payloads]))
  const [results, late, deadLetters]: [string[], string[], string[]] = [[], [], []]
  const take = (sink: string, line: string) => void (sink === 'late' ? late : results).push(line)
  const run = new QueryRun({ app, take, refuse: (reason) => void deadLetters.push(reason), ...options })
  for (let from = 0; from < payloads.length; from += addition) await run.add(payloads.slice(from, from + addition))
  await run.end()
  return { results: results.toSorted(), late, deadLetters }
}

/** Runs a query over events and gives the results as objects, in the order of their texts. */
export async function resultsOf(
  query: string,
  events: readonly NexmarkEvent[],
  options: LinesRunOptions = {},
): Promise<readonly unknown[]> {
  const { results, deadLetters } = await runLines(
    query,
    events.map((event) => JSON.stringify(event)),
    options,
  )
  expect(deadLetters).toEqual([])
  return results.map((line) => JSON.parse(line))
}
