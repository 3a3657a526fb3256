/** Runs a query over lines in memory. */
import { QueryRun } from '../../bin/nexmark/query-run.ts'
import type { NexmarkEvent } from '../../functions/nexmark/events.ts'
import { queries } from '../../functions/nexmark/queries.ts'

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
}

export async function runLines(
  query: string,
  lines: readonly string[],
  { addition = 1_500, ...options }: LinesRunOptions = {},
): Promise<LinesRun> {
  const { app } = queries[query] as (typeof queries)[string]
  const [results, late]: [string[], string[]] = [[], []]
  const take = (sink: string, line: string) => void (sink === 'late' ? late : results).push(line)
  const run = new QueryRun({ app, take, ...options })
  for (let from = 0; from < lines.length; from += addition) {
    await run.add(lines.slice(from, from + addition).map((line) => Buffer.from(line)))
  }
  await run.end()
  return { results: results.toSorted(), late, deadLetters: run.deadLetters }
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
