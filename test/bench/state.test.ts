import { measureMapAlone } from '../../bench/state/map-alone.ts'
import { dollarsPerMillionEvents } from '../../bench/state/prices.ts'
import { StoreMeter } from '../../bench/state/store-meter.ts'
import { filledStages } from '../../bench/state/times.ts'
import { allUnits, measureUnits } from '../../bench/state/units.ts'
import { batchOf, keyOf, seeded, zipf } from '../../bench/state/zipf.ts'
import { MemoryStateStore } from '../../lib/state/memory-store.ts'
import { VirtualClock } from '../../lib/testing/index.ts'

test('keys come as Zipf says: the n-th one n times as seldom as the first', () => {
  const draw = zipf(1_000, seeded(1))
  const counts = new Map<number, number>()
  for (let i = 0; i < 200_000; i++) {
    const rank = draw()
    counts.set(rank, (counts.get(rank) ?? 0) + 1)
  }
  const first = counts.get(0) ?? 0
  expect(first / (counts.get(1) ?? 0)).toBeCloseTo(2, 0)
  expect(first / (counts.get(9) ?? 0)).toBeCloseTo(10, -1)
  expect(Math.min(...counts.keys())).toBe(0)
  expect(Math.max(...counts.keys())).toBeLessThan(1_000)
})

test('every run draws the same keys', () => {
  const draws = () => batchOf(zipf(100, seeded(7)), 50)
  expect(draws()).toEqual(draws())
})

test('a batch costs its distinct keys and little more warm, a read of each cold, and others more', async () => {
  const units = await measureUnits(100, 200, 2)
  expect(units.coldReadsPerKey).toBe(1)
  expect(units.resultsPerKey).toBe(1)
  expect(units.addPerRecord).toEqual({ read: 0, write: 200 })
  // Powertools writes its record before the step and after it.
  expect(units.powertools).toEqual({ read: 0, write: 600 })
  const above = allUnits(units.warm) - units.distinctKeys
  expect(above).toBeGreaterThan(0)
  expect(above).toBeLessThanOrEqual(8)
  // Beside the keys: the manifests of both stages.
  expect(units.cold.read - units.warm.read).toBe(units.distinctKeys + 2)
})

test('prices are per million events', () => {
  expect(dollarsPerMillionEvents({ read: 0, write: 500 }, 500)).toBe(0.625)
  expect(dollarsPerMillionEvents({ read: 500, write: 0 }, 500)).toBe(0.125)
})

test('stages are filled with a count of every key, which goes on', async () => {
  const { stages } = await filledStages(10)
  await stages.count(await stages.feed(stages.clicks([keyOf(3), keyOf(3), keyOf(9)])))
  expect(stages.takeMetric('records-in')).toBe(6)
  expect(stages.takeOutputs()).toBe(2)
})

test('a Map alone is asked for the same keys, few and many', () => {
  const { few, many } = measureMapAlone(10, 1_000, 50, 3)
  expect([few > 0, many > 0, Number.isFinite(many / few)]).toEqual([true, true, true])
})

test('what is spent inside the store is told, where asked', async () => {
  const meter = new StoreMeter()
  const store = meter.meter(new MemoryStateStore({ stage: 'x', clock: new VirtualClock() }))
  const { signal } = new AbortController()
  const work = () => store.readKeys([keyOf(1)], signal)
  await work()
  expect(meter.takeMicros()).toBe(0)
  meter.isOn = true
  // Where the clock goes in ticks, one call may take none, and a thousand on a fast machine too.
  let spent = 0
  while (spent === 0) {
    await work()
    spent = meter.takeMicros()
  }
  expect(spent).toBeGreaterThan(0)
  expect(meter.takeMicros()).toBe(0)
})
