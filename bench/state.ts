/**
 * `npm run bench:state [-- --quick] [-- --json FILE]`: what a running count costs, in units, dollars and time, beside other
 * ways to count and beside the limit. Exits with 1 when a figure misses its goal. docs/bench-state.md has the numbers.
 */
import { parseArgs } from 'node:util'
import { type Figure, finish, table } from './figures.ts'
import { measureMapAlone } from './state/map-alone.ts'
import { dollarsPerMillionEvents, type Units } from './state/prices.ts'
import {
  type Contender,
  type FilledStages,
  filledStages,
  measureGrowth,
  measureTimes,
  type Time,
} from './state/times.ts'
import { allUnits, type BatchUnits, measureUnits } from './state/units.ts'

const { values } = parseArgs({ options: { json: { type: 'string' }, quick: { type: 'boolean', default: false } } })

const keyCounts = values.quick ? [1_000, 100_000] : [1_000, 100_000, 1_000_000]
const batchSizes = values.quick ? [100, 1_000] : [100, 500, 1_000, 5_000]
const unitBatches = values.quick ? 2 : 5
const rounds = values.quick ? 9 : 25
/** The batches at which few and many keys are compared. */
const growthRecords = 1_000

const mostUnitsAboveLimit = 8
const mostGrowth = 1.2

const ways = {
  limit: ({ distinctKeys }: BatchUnits): Units => ({ read: 0, write: distinctKeys }),
  warm: ({ warm }: BatchUnits) => warm,
  cold: ({ cold }: BatchUnits) => cold,
  ADD: ({ addPerRecord }: BatchUnits) => addPerRecord,
  Powertools: ({ powertools }: BatchUnits) => powertools,
} as const

const caseOf = (keys: number, records: number): string =>
  `${keys.toLocaleString('en')} keys x ${records.toLocaleString('en')} records`
const oneDigit = (value: number): string => value.toLocaleString('en', { maximumFractionDigits: 1 })
const rounded = (value: number): number => Math.round(value * 1_000) / 1_000

function unitFigures(name: string, records: number, units: BatchUnits): Figure[] {
  const figures: Figure[] = []
  for (const [way, of] of Object.entries(ways)) {
    const { read, write } = of(units)
    figures.push({ name: `${way}, ${name}: read units`, value: rounded(read), unit: 'units/batch' })
    figures.push({ name: `${way}, ${name}: write units`, value: rounded(write), unit: 'units/batch' })
    const dollars = dollarsPerMillionEvents({ read, write }, records)
    figures.push({ name: `${way}, ${name}: price`, value: rounded(dollars), unit: '$/million events' })
  }
  const above = allUnits(units.warm) - units.distinctKeys
  figures.push(
    {
      ...{ name: `warm above the limit, ${name}`, value: rounded(above), unit: 'units/batch' },
      ...{ goal: mostUnitsAboveLimit, better: 'lower' },
    },
    {
      ...{ name: `cold reads of a key, ${name}`, value: units.coldReadsPerKey, unit: 'units' },
      ...{ goal: 1, better: 'exactly' },
    },
    { name: `results of a key, ${name}`, value: rounded(units.resultsPerKey), unit: 'per batch' },
  )
  return figures
}

async function compareUnits(): Promise<Figure[]> {
  const figures: Figure[] = []
  const rows = [
    ['units per batch (read + write)', 'limit', 'warm', 'cold', 'ADD', 'Powertools', '$ per million events:'].concat([
      'limit',
      'warm',
      'cold',
      'ADD',
      'Powertools',
    ]),
  ]
  for (const keys of keyCounts) {
    for (const records of batchSizes) {
      const units = await measureUnits(keys, records, unitBatches)
      const all = Object.values(ways).map((of) => of(units))
      rows.push([
        caseOf(keys, records),
        ...all.map(({ read, write }) => (read === 0 ? oneDigit(write) : `${oneDigit(read)} + ${oneDigit(write)}`)),
        '',
        ...all.map((each) => dollarsPerMillionEvents(each, records).toFixed(3)),
      ])
      figures.push(...unitFigures(caseOf(keys, records), records, units))
    }
  }
  console.log(table(rows))
  return figures
}

const contenders: readonly Contender[] = ['feeding', 'warm', 'cold', 'ADD', 'Powertools']

async function compareTimes(filled: readonly FilledStages[]): Promise<Figure[]> {
  const figures: Figure[] = []
  const rows = [['ms per batch, µs of CPU per record', ...contenders.flatMap((name) => [name, ''])]]
  for (const own of filled) {
    for (const records of batchSizes) {
      const times = await measureTimes(own, records, rounds)
      const all = contenders.map((name) => [name, times.get(name) as Time] as const)
      rows.push([
        caseOf(own.keys, records),
        ...all.flatMap(([, { batchMs, cpuMicrosPerRecord }]) => [batchMs.toFixed(2), cpuMicrosPerRecord.toFixed(2)]),
      ])
      for (const [name, { batchMs, cpuMicrosPerRecord }] of all) {
        const what = `${name}, ${caseOf(own.keys, records)}`
        figures.push({ name: `${what}: time`, value: rounded(batchMs), unit: 'ms/batch' })
        figures.push({ name: `${what}: CPU`, value: rounded(cpuMicrosPerRecord), unit: 'us/record' })
      }
    }
  }
  console.log(table(rows))
  return figures
}

async function compareGrowth(filled: readonly FilledStages[]): Promise<Figure[]> {
  const [few, many] = [filled[0], filled.at(-1)] as [FilledStages, FilledStages]
  const growth = await measureGrowth(few, many, growthRecords, rounds * 3)
  const sizes = `${many.keys.toLocaleString('en')} keys for ${few.keys.toLocaleString('en')}`
  console.log(
    `\nCPU of a batch of ${growthRecords.toLocaleString('en')} records with equal distinct keys, ${sizes} (goal: at most ${mostGrowth} times, without the store)\n`,
  )
  const ways = ['warm', 'cold'] as const
  console.log(
    table([
      ['', 'runner', 'with the look-ups in memory, which a table makes elsewhere'],
      ...ways.map((way) => [way, growth[way].runner.toFixed(2), growth[way].whole.toFixed(2)]),
    ]),
  )
  const alone = measureMapAlone(few.keys, many.keys, growthRecords, rounds * 3)
  console.log(
    `\nThe look-ups of such a batch in a Map alone, without a store: ${alone.few.toFixed(0)} µs among few keys, ${alone.many.toFixed(0)} µs among many, ${(alone.many / alone.few).toFixed(1)} times.`,
  )
  return [
    ...ways.flatMap((way): Figure[] => [
      {
        ...{ name: `CPU per batch, ${way}, ${sizes}`, value: rounded(growth[way].runner), unit: 'times' },
        ...{ goal: mostGrowth, better: 'lower' },
      },
      { name: `the same with the store in memory, ${way}`, value: rounded(growth[way].whole), unit: 'times' },
    ]),
    { name: `look-ups of a batch in a Map alone, ${sizes}`, value: rounded(alone.many / alone.few), unit: 'times' },
  ]
}

async function main(): Promise<void> {
  console.log(
    'A running count, one result per key and batch, over Zipf keys (s = 1.0). Units: the DynamoDB model, both stages together, means of',
    `${unitBatches} batches. Warm: all keys of the batch are in memory; cold: none is. Limit: one write unit per distinct key.\n`,
  )
  const figures = await compareUnits()
  const filled: FilledStages[] = []
  for (const keys of keyCounts) filled.push(await filledStages(keys))
  console.log(
    `\nTime on a store in memory that holds all the keys, medians of ${rounds} rounds. The peers' table answers at once and keeps nothing.\n`,
  )
  figures.push(...(await compareTimes(filled)))
  figures.push(...(await compareGrowth(filled)))
  finish('npm run bench:state', figures, values.json)
}

await main()
