/** C10: one clock that is a day ahead makes no other record late. */
import { days, minutes, tumbling } from '../../lib/index.ts'
import { Windowed, type WindowedOptions } from './windowed.ts'

const tenMs = Date.UTC(2026, 0, 1, 10)
const second = 1_000
const minute = 60_000
const first = tenMs + 5 * second
const rogue = tenMs + days(1).ms + 6 * second
const ten = Array.from({ length: 10 }, (_, i) => tenMs + (i + 1) * minute)

/** They arrive while they happen, at the latest at a quarter past. */
const world = (options: WindowedOptions) =>
  new Windowed(tumbling(minutes(1), { grace: minutes(1) }), { nowMs: tenMs + 15 * minute, ...options })

test.each([
  ['one batch', [[first, rogue, ...ten]]],
  ['a batch each', [first, rogue, ...ten].map((time) => [time])],
])('with a skew limit all ten count, and the rogue goes to the late output: %s', async (_, batches) => {
  const windowed = world({ skewLimit: minutes(30) })
  for (const batch of batches) await windowed.send(batch)
  await windowed.driver.advanceEventTime(minutes(5))
  expect(windowed.windows.map(([startMs, , n]) => [startMs, n])).toEqual([
    [tenMs, 1],
    ...ten.map((startMs) => [startMs, 1]),
  ])
  expect(windowed.late).toEqual([rogue])
  expect(windowed.driver.deadLetters).toEqual([])
  expect(windowed.driver.ports.counted('records-skewed')).toBe(1)
})

test('what is exactly at the limit counts, what is a ms beyond does not', async () => {
  const nowMs = tenMs + 15 * minute
  const windowed = world({ skewLimit: minutes(30) })
  await windowed.send([nowMs + minutes(30).ms, nowMs + minutes(30).ms + 1])
  await windowed.driver.advanceEventTime(minutes(5))
  expect(windowed.windows.map(([, , n]) => n)).toEqual([1])
  expect(windowed.late).toEqual([nowMs + minutes(30).ms + 1])
})

test('without a limit the rogue moves time, and the ten are in the late output: nothing is dropped in silence', async () => {
  const windowed = world({})
  await windowed.send([first, rogue, ...ten])
  await windowed.driver.advanceEventTime(minutes(5))
  expect(windowed.late).toEqual(ten)
  expect(windowed.windows.map(([startMs, , n]) => [startMs, n])).toEqual([
    [tenMs, 1],
    [tenMs + days(1).ms, 1],
  ])
})
