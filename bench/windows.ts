/**
 * `npm run bench:windows [-- --quick] [-- --json FILE]`: what windows cost, in units, dollars and time; what silence costs; and very
 * many windows that end at once. Exits with 1 when a figure misses its goal. docs/bench-windows.md has the numbers.
 */
import { parseArgs } from 'node:util'
import { type Figure, finish, table } from './figures.ts'
import { dollarsPerMillionEvents, type Units } from './state/prices.ts'
import type { MeasuredKind } from './windows/load.ts'
import { measureMassClose } from './windows/mass-close.ts'
import { measureSilence, type Stretch } from './windows/silence.ts'
import { windowLabels } from './windows/stages.ts'
import { measureTimes, type Time } from './windows/times.ts'
import { measureUnits, type WindowUnits } from './windows/units.ts'

const { values } = parseArgs({ options: { json: { type: 'string' }, quick: { type: 'boolean', default: false } } })

const kinds: readonly MeasuredKind[] = ['tumbling', 'hopping', 'session']
const keyCounts = values.quick ? [1_000, 10_000] : [1_000, 100_000]
const unitBatches = values.quick ? 2 : 5
const rounds = values.quick ? 7 : 25
const massWindows = values.quick ? 10_000 : 100_000
const massMemoryMiB = 256
const massInvocationMs = 30_000
const massKills = 2
const silentKeys = values.quick ? 1_000 : 10_000
const records = 1_000

const grouped = (value: number): string => value.toLocaleString('en', { maximumFractionDigits: 1 })
const rounded = (value: number): number => Math.round(value * 1_000) / 1_000
const shown = ({ read, write }: Units): string => `${grouped(read)} + ${grouped(write)}`
const caseOf = (kind: MeasuredKind, keys: number): string => `${windowLabels[kind]}, ${grouped(keys)} keys`
const exactly = (name: string, value: number, unit: string, goal: number): Figure => ({
  ...{ name, value: rounded(value), unit, goal },
  better: 'exactly',
})

const cases = kinds.flatMap((kind) => keyCounts.map((keys) => [kind, keys] as const))

function unitFigures(name: string, units: WindowUnits): Figure[] {
  const { warm, cold, perResult, writesPerKey, distinctKeys } = units
  const each = (what: string, of: Units, unit: string): Figure[] => [
    { name: `${name}, ${what}: read units`, value: rounded(of.read), unit },
    { name: `${name}, ${what}: write units`, value: rounded(of.write), unit },
  ]
  return [
    { name: `${name}: distinct keys`, value: rounded(distinctKeys), unit: 'per 1,000 records' },
    ...each('warm', warm, 'units/1,000 records'),
    ...each('cold', cold, 'units/1,000 records'),
    ...each('at the end of a window', perResult, 'units/result'),
    exactly(`${name}: writes of a key and batch`, writesPerKey, 'writes', 1),
  ]
}

async function compareUnits(): Promise<Figure[]> {
  const figures: Figure[] = []
  const head = ['units (read + write)', 'distinct keys', 'warm', 'cold', 'writes of a key', 'of a result']
  const rows = [[...head, '$ per million:', 'events, cold', 'results']]
  for (const [kind, keys] of cases) {
    const units = await measureUnits(kind, keys, unitBatches)
    const { distinctKeys, warm, cold, writesPerKey, perResult } = units
    rows.push([
      ...[caseOf(kind, keys), grouped(distinctKeys), shown(warm), shown(cold), writesPerKey.toFixed(2)],
      ...[shown(perResult), '', dollarsPerMillionEvents(cold, records).toFixed(3)],
      dollarsPerMillionEvents(perResult, 1).toFixed(3),
    ])
    figures.push(...unitFigures(caseOf(kind, keys), units))
  }
  console.log(table(rows))
  return figures
}

async function compareTimes(): Promise<Figure[]> {
  const figures: Figure[] = []
  const rows = [['ms per 1,000 records, µs of CPU per record', 'feeding', '', 'warm', '', 'cold', '', 'µs per result']]
  for (const [kind, keys] of cases) {
    const { feeding, warm, cold, cpuMicrosPerResult } = await measureTimes(kind, keys, rounds)
    const all: readonly (readonly [string, Time])[] = Object.entries({ feeding, warm, cold })
    rows.push([
      caseOf(kind, keys),
      ...all.flatMap(([, { batchMs, cpuMicrosPerRecord }]) => [batchMs.toFixed(2), cpuMicrosPerRecord.toFixed(2)]),
      cpuMicrosPerResult.toFixed(1),
    ])
    for (const [what, { batchMs, cpuMicrosPerRecord }] of all) {
      const name = `${caseOf(kind, keys)}, ${what}`
      figures.push({ name: `${name}: time`, value: rounded(batchMs), unit: 'ms/1,000 records' })
      figures.push({ name: `${name}: CPU`, value: rounded(cpuMicrosPerRecord), unit: 'us/record' })
    }
    const name = `${caseOf(kind, keys)}, at the end of a window: CPU`
    figures.push({ name, value: rounded(cpuMicrosPerResult), unit: 'us/result' })
  }
  console.log(table(rows))
  return figures
}

/** Everything that is not a look at what two stages have stored of their progress. */
const otherCalls = ({ calls }: Stretch): number =>
  [...calls].reduce((sum, [method, count]) => (method === 'readProgress' ? sum : sum + count), 0)

async function compareSilence(): Promise<Figure[]> {
  const { waiting, closing, idle } = await measureSilence(silentKeys)
  const row = (name: string, stretch: Stretch) => {
    const calls = [...stretch.calls].map(([method, count]) => `${grouped(count)} ${method}`).join(', ')
    return [name, grouped(stretch.minutes), grouped(stretch.frames), grouped(stretch.results), calls]
  }
  console.log(
    table([
      [`${grouped(silentKeys)} keys`, 'minutes', 'frames to the stage', 'results', 'calls of the table'],
      row('windows are open, none ends', waiting),
      row('all of them end', closing),
      row('a day of silence behind it', idle),
    ]),
  )
  return [
    exactly('frames while windows are open and none ends', waiting.frames, 'frames', 0),
    exactly('frames that end all windows', closing.frames, 'frames', 1),
    exactly('results of them', closing.results, 'results', silentKeys),
    exactly('frames in a day of silence', idle.frames, 'frames', 0),
    exactly('calls in silence but for progress', otherCalls(waiting) + otherCalls(idle), 'calls', 0),
    {
      ...{
        name: 'reads of progress in a minute of silence',
        value: (idle.calls.get('readProgress') ?? 0) / idle.minutes,
      },
      ...{ unit: 'reads', goal: 4, better: 'lower' },
    },
  ]
}

async function closeMany(): Promise<Figure[]> {
  const options = { windows: massWindows, memoryMiB: massMemoryMiB, invocationMs: massInvocationMs, kills: massKills }
  const close = await measureMassClose(options)
  const { invocations, killed, largestRssMiB, seconds, repeated } = close
  console.log(
    `${grouped(massWindows)} windows ended in ${grouped(invocations)} invocations of at most ${massInvocationMs / 1_000} s, ${killed} of them killed, in ${seconds.toFixed(1)} s; the largest process had ${grouped(largestRssMiB)} MiB resident, all its code included. ${grouped(repeated)} results were published twice, under the same identity.`,
  )
  const name = `${grouped(massWindows)} windows at once`
  return [
    exactly(`${name}: missed`, close.missed, 'windows', 0),
    exactly(`${name}: doubled`, close.doubled, 'windows', 0),
    exactly(`${name}: invocations past their deadline`, close.pastDeadline, 'invocations', 0),
    exactly(`${name}: invocations killed`, killed, 'invocations', massKills),
    exactly(`${name}: invocations that crashed`, close.crashed, 'invocations', 0),
    {
      ...{ name: `${name}: largest resident set`, value: rounded(largestRssMiB), unit: 'MiB' },
      ...{ goal: massMemoryMiB, better: 'lower' },
    },
    { name: `${name}: longest past a deadline`, value: close.mostPastMs, unit: 'ms' },
    { name: `${name}: time`, value: rounded(seconds), unit: 's' },
  ]
}

async function main(): Promise<void> {
  const figures: Figure[] = []
  console.log(
    `Count and sum of windows over Zipf keys (s = 1.0), emitted at close. Units of ${grouped(records)} records at which no window ends: the DynamoDB model, both stages together, means of ${unitBatches} batches. Of a result: what its window costs when it ends, cold, with its timers.\n`,
  )
  figures.push(...(await compareUnits()))
  console.log(
    `\nTime on a store in memory in which every key has a window open, medians of ${rounds} rounds; a result's is its window's end.\n`,
  )
  figures.push(...(await compareTimes()))
  console.log('\nSilence, on a virtual clock with an announcer each minute.\n')
  figures.push(...(await compareSilence()))
  console.log(
    `\nMany at once, over HTTP to an embedded DynamoDB, in processes with the heap that a function of ${massMemoryMiB} MB has.\n`,
  )
  figures.push(...(await closeMany()))
  finish('npm run bench:windows', figures, values.json)
}

await main()
