/** The demo of bounded state: the table hour by hour, beside what TTL allows. */
import type { Figure } from '../../../bench/figures.ts'
import { visibleFor } from '../../../functions/bounded-state/topology.ts'
import { hours } from '../../../lib/index.ts'
import { grouped, table } from '../../../lib/local/display/run-display.ts'
import { Day, type DaySettings, type Hour, hoursUntilEmpty, retention } from './day.ts'

const hourMs = hours(1).ms

/** Runs the demo and resolves with its figures. */
export async function runBoundedState(settings: DaySettings, signal: AbortSignal): Promise<readonly Figure[]> {
  const { hours: inputHours, devices, steady } = settings
  console.log(
    [
      `For ${grouped(inputHours)} hours ${grouped(devices)} new devices report each hour, and never again; ${grouped(steady)} report every hour until the end.`,
      `Of each device every kind of state is kept (value, list, map, reducing, aggregating), once with a TTL by event time and once by`,
      `processing time: ${visibleFor.ms / hourMs} hours. TTL may remove an item once its last value has expired and the retentions of the source and of the`,
      `stage's stream (${retention.ms / hourMs} h each) and a day have passed: a record that finds the value may have waited in both. Two clocks are`,
      `virtual: that of the function and that of DynamoDB.`,
      '',
    ].join('\n'),
  )
  const day = new Day(settings)
  const seen: Hour[] = []
  while (!day.isOver && !signal.aborted) seen.push(await day.nextHour())
  console.log(hourLines(seen).join('\n'))
  return figuresOf(seen, settings, signal.aborted)
}

function hourLines(seen: readonly Hour[]): readonly string[] {
  const head = ['hour', 'keys so far', 'key items', 'allowed', 'map entries', 'allowed', 'bytes', 'visible per map']
  const rows = seen.map(({ hour, keysSoFar, keyItems, allowedKeyItems, entries, allowedEntries, bytes, mostVisible }) =>
    [hour, keysSoFar, keyItems, allowedKeyItems, entries, allowedEntries, bytes, mostVisible].map(grouped),
  )
  return table(
    [head, ...rows],
    head.map(() => true),
  )
}

function figuresOf(
  seen: readonly Hour[],
  { steady, devices, hours: inputHours }: DaySettings,
  isCut: boolean,
): Figure[] {
  const last = seen.at(-1)
  const most = (of: (hour: Hour) => number): number => Math.max(0, ...seen.map(of))
  const exactly = (name: string, value: number, unit: string, goal: number): Figure => ({
    ...{ name, value, unit, goal },
    better: 'exactly',
  })
  const figures: Figure[] = [
    { name: 'distinct keys', value: last?.keysSoFar ?? 0, unit: 'keys' },
    { name: 'most key items at a time', value: most(({ keyItems }) => keyItems), unit: 'items' },
    { name: 'most bytes at a time', value: most(({ bytes }) => bytes), unit: 'bytes' },
    exactly(
      'hours with other key items than TTL allows',
      count(seen, (h) => h.keyItems !== h.allowedKeyItems),
      'hours',
      0,
    ),
    exactly(
      'hours with other map entries than TTL allows',
      count(seen, (h) => h.entries !== h.allowedEntries),
      'hours',
      0,
    ),
    {
      ...{
        name: 'visible entries of a map that is written each hour',
        value: most((h) => h.mostVisible),
        unit: 'entries',
      },
      ...{ goal: visibleFor.ms / hourMs, better: 'lower' },
    },
  ]
  if (isCut) return figures
  return [
    ...figures,
    { name: 'hours without new devices at the end', value: hoursUntilEmpty, unit: 'hours' },
    exactly(
      `key items at the end, of ${grouped(inputHours * devices + steady)} keys`,
      last?.keyItems ?? 0,
      'items',
      steady,
    ),
  ]
}

const count = (seen: readonly Hour[], is: (hour: Hour) => boolean): number => seen.filter(is).length
