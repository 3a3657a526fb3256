/** The demo of map states: the cost of one entry, for maps of four sizes side by side. */
import type { Figure } from '../../../bench/figures.ts'
import { grouped, table } from '../../../lib/local/display/run-display.ts'
import { type MapCost, measureMap } from './measure.ts'

/** A transaction costs two write units per KB of each item: here of the key item and of the entry. */
const expectedWritten = 4
/** One read unit each for the key item and the entry. */
const expectedRead = 2

/** Runs the demo and resolves with its figures. */
export async function runMapState(largest: number, signal: AbortSignal): Promise<readonly Figure[]> {
  console.log(
    [
      'A store keeps its stock in a map state: an entry per product, each in an item of its own. One movement of one product is',
      'processed by the deployed handler and the production state store; units are what DynamoDB reports (ReturnConsumedCapacity).',
      '',
    ].join('\n'),
  )
  const sizes = [10, 100, 1_000, 10_000].filter((size) => size < largest)
  const costs: MapCost[] = []
  for (const size of [...sizes, largest]) {
    if (signal.aborted) break
    costs.push(await measureMap(size))
    console.log(`measured a map of ${grouped(size)} entries`)
  }
  console.log(['', ...costLines(costs)].join('\n'))
  return figuresOf(costs)
}

function costLines(costs: readonly MapCost[]): readonly string[] {
  const head = [
    'entries',
    'bytes in the table',
    'write units',
    'read units, cold',
    'read units, warm',
    'as one item: write units',
  ]
  const rows = costs.map(({ entries, bytes, written, readCold, readWarm, asOneItem }) => [
    ...[entries, bytes, written, readCold, readWarm].map(grouped),
    asOneItem === undefined ? 'too large' : grouped(asOneItem),
  ])
  return table(
    [head, ...rows],
    head.map(() => true),
  )
}

function figuresOf(costs: readonly MapCost[]): Figure[] {
  return costs.flatMap(({ entries, written, readCold, readWarm }) => {
    const map = `map of ${grouped(entries)}`
    const lower = (what: string, value: number, unit: string, goal: number): Figure => ({
      ...{ name: `${map}: ${what}`, value, unit, goal },
      better: 'lower',
    })
    return [
      lower('one entry written', written, 'write units', expectedWritten),
      lower('one entry read, cold', readCold, 'read units', expectedRead),
      lower('one entry read, warm', readWarm, 'read units', 0),
    ]
  })
}
