/** Days of 23 and of 25 hours, and days before 1970, all the way through the runner. */
import { calendarDays, hours, milliseconds } from '../../lib/index.ts'
import { Windowed } from './windowed.ts'

const hour = hours(1).ms
const grace = milliseconds(0)

test.each([
  ['Europe/Berlin', 23, '2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z'],
  ['Europe/Berlin', 25, '2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z'],
  ['America/New_York', 23, '2026-03-08T05:00:00Z', '2026-03-09T04:00:00Z'],
  ['America/New_York', 25, '2026-11-01T04:00:00Z', '2026-11-02T05:00:00Z'],
  ['Asia/Kolkata', 24, '1969-12-30T18:30:00Z', '1969-12-31T18:30:00Z'],
])('%s: a day of %p hours, from %s to %s', async (zone, length, from, to) => {
  const [startMs, endMs] = [Date.parse(from), Date.parse(to)]
  expect(endMs - startMs).toBe(length * hour)
  const windowed = new Windowed(calendarDays(zone, { grace }))
  await windowed.send([startMs - 1, startMs, startMs + 12 * hour, endMs - 1])
  await windowed.send([endMs])
  await windowed.driver.advanceEventTime(hours(26))
  expect(windowed.windows.map(([start, , n]) => [start, n]).slice(1)).toEqual([
    [startMs, 3],
    [endMs, 1],
  ])
  // One ms before is of the day before, whatever its length.
  expect(windowed.windows[0]?.slice(1)).toEqual([startMs, 1])
  expect(windowed.windows[1]?.[1]).toBe(endMs)
})

test('a day closes with its own midnight, not a day of 24 hours after its start', async () => {
  const startMs = Date.parse('2026-10-24T22:00:00Z')
  const windowed = new Windowed(calendarDays('Europe/Berlin', { grace }))
  await windowed.send([startMs])
  await windowed.driver.advanceEventTime(milliseconds(25 * hour - 1))
  expect(windowed.windows).toEqual([])
  await windowed.driver.advanceEventTime(milliseconds(1))
  expect(windowed.windows).toEqual([[startMs, startMs + 25 * hour, 1]])
})
