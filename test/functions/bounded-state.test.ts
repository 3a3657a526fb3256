import { Day, type Hour } from '../../bin/demos/bounded-state/day.ts'
import {
  boundedStateApp,
  foundByEventTime,
  foundByProcessingTime,
  type Report,
  reports,
  visibleFor,
} from '../../functions/bounded-state/topology.ts'
import { hours, milliseconds } from '../../lib/index.ts'
import { TestDriver } from '../../lib/testing/index.ts'

const startMs = Date.UTC(2026, 2, 1)
const kinds = ['last', 'recent', 'byHour', 'highest', 'mean'] as const
const report = (afterMs: number): Report => ({ device: 'd-1', atMs: startMs + afterMs, celsius: 20 })
const nothing = { last: 0, recent: 0, byHour: 0, highest: 0, mean: 0 }
const one = { last: 1, recent: 1, byHour: 1, highest: 1, mean: 1 }

test.each(kinds)('S6: %s state by event time is visible until its TTL, and gone from then on', async (kind) => {
  for (const [afterMs, found] of [[visibleFor.ms - 1, 1] as const, [visibleFor.ms, 0] as const]) {
    const driver = new TestDriver(boundedStateApp, { nowMs: startMs })
    await driver.send(reports, [report(0), report(afterMs)])
    expect(driver.received(foundByEventTime).map((finding) => finding.found[kind])).toEqual([0, found])
  }
})

test.each(kinds)('S6: %s state by processing time is visible until its TTL, and gone from then on', async (kind) => {
  for (const [afterMs, found] of [[visibleFor.ms - 1, 1] as const, [visibleFor.ms, 0] as const]) {
    const driver = new TestDriver(boundedStateApp, { nowMs: startMs })
    await driver.send(reports, [report(0)])
    await driver.advanceProcessingTime(milliseconds(afterMs))
    await driver.send(reports, [report(0)])
    expect(driver.received(foundByProcessingTime).map((finding) => finding.found[kind])).toEqual([0, found])
  }
})

test('the two times are apart: what only one of them has passed is gone from that one alone', async () => {
  const driver = new TestDriver(boundedStateApp, { nowMs: startMs })
  await driver.send(reports, [report(0), report(visibleFor.ms)])
  expect(driver.received(foundByEventTime).at(-1)?.found).toEqual(nothing)
  expect(driver.received(foundByProcessingTime).at(-1)?.found).toEqual(one)
})

test('what has expired leaves the item of the key with its next report', async () => {
  const driver = new TestDriver(boundedStateApp, { nowMs: startMs })
  await driver.send(reports, [report(0)])
  await driver.advanceProcessingTime(visibleFor)
  await driver.send(reports, [report(visibleFor.ms)])
  expect(await driver.stateOf('by-device', 'd-1')).toMatchObject({
    'event-time.recent': [20],
    'processing-time.recent': [20],
    'event-time.mean': { count: 1, sum: 20 },
    'processing-time.mean': { count: 1, sum: 20 },
  })
})

test('S6: after a day of distinct keys the table holds what TTL allows, hour by hour, and in the end none of them', async () => {
  const day = new Day({ hours: 24, devices: 8, steady: 2 })
  const seen: Hour[] = []
  while (!day.isOver) seen.push(await day.nextHour())
  for (const hour of seen) expect([hour.keyItems, hour.entries]).toEqual([hour.allowedKeyItems, hour.allowedEntries])
  expect(Math.max(...seen.map(({ keyItems }) => keyItems))).toBe(24 * 8 + 2)
  expect(seen.at(-1)).toMatchObject({ keysSoFar: 24 * 8 + 2, keyItems: 2 })
  // A map that is written every hour shows no more entries than its TTL allows.
  expect(Math.max(...seen.map(({ mostVisible }) => mostVisible))).toBeLessThanOrEqual(visibleFor.ms / hours(1).ms)
}, 60_000)
