/** C10: one clock that is a day ahead makes no other record late. */
import { z } from 'zod'
import { count, countWindow, days, epochMs, minutes, sum, Topology, tumbling } from '../../lib/index.ts'
import { TestDriver } from '../../lib/testing/index.ts'
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

test.each([
  [2, [tenMs, rogue, tenMs, tenMs], 4, []],
  [1, [tenMs, rogue, tenMs], 2, [1]],
  [2, [tenMs, tenMs, rogue, rogue], 2, [2]],
])(
  'windows behind windows of %d records take what the rogue is counted in, unless it is counted in no other',
  async (size, times, total, late) => {
    const app = new Topology('app')
    const source = app.source('events', z.object({ t: z.number() }), {
      ...{ eventTime: epochMs(({ t }) => t), skewLimit: minutes(30) },
    })
    const [out, lateOut] = [app.sink<number>('out'), app.sink<number>('late')]
    const windows = source
      .keyBy('by-key', () => 'k')
      .window(countWindow(size))
      .aggregate('counted', { n: count() }, { emit: 'on-close' })
      .results.keyBy('all', () => 'all')
      .window(tumbling(minutes(1), { grace: minutes(0) }))
      .aggregate('behind', { n: sum(({ value }) => value.n) }, { emit: 'final' })
    windows.results.map(({ value }) => value.n ?? 0).to(out)
    windows.late.map(({ value }) => value.n).to(lateOut)
    const driver = new TestDriver(app, { nowMs: tenMs })
    for (const t of times) await driver.send(source, [{ t }])
    await driver.advanceEventTime(days(2))
    expect(driver.received(out).reduce((a, b) => a + b, 0)).toBe(total)
    expect(driver.received(lateOut)).toEqual(late)
    expect(await driver.stateOf('all', 'all')).toEqual({})
  },
)
