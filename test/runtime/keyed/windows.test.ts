/** Windows over the whole runner: marks close them, silence does, late records go their own way. */
import {
  count,
  epochMs,
  type Format,
  json,
  minutes,
  sum,
  Topology,
  tumbling,
  type WindowResult,
} from '../../../lib/index.ts'
import { TestDriver } from '../../../lib/testing/index.ts'

interface Booking {
  readonly hotel: string
  readonly at: number
  readonly price: number
}

const minute = 60_000

function bookings(emit: 'on-close' | 'final') {
  const app = new Topology('bookings')
  const source = app.source('requests', json() as Format<Booking>, {
    eventTime: epochMs((b: Booking) => b.at, { plausible: 'any' } as never),
  })
  const results = app.sink<WindowResult<string, { n: number; revenue: number | bigint | null }>>('results')
  const late = app.sink<Booking>('late')
  const windows = source
    .keyBy('by-hotel', (b) => b.hotel)
    .window(tumbling(minutes(5), { grace: minutes(2) }))
    .aggregate('per-hotel', { n: count(), revenue: sum((b: Booking) => b.price) }, { emit })
  windows.results.to(results as never)
  windows.late.to(late)
  return { app, source, results, late }
}

test('a window closes when marks pass its end, is corrected within grace, and sends the rest to the late output', async () => {
  const { app, source, results, late } = bookings('on-close')
  const start = Date.UTC(2026, 0, 1)
  const driver = new TestDriver(app, { nowMs: start + 60 * minute })
  const at = (m: number, price: number, hotel = 'h1'): Booking => ({ hotel, at: start + m * minute, price })
  await driver.send(source, [at(0, 10), at(1, 20), at(4, 30)])
  expect(driver.received(results)).toEqual([])
  await driver.send(source, [at(5, 1)])
  await driver.send(source, [at(2, 40), at(9, 1), at(3, 50)])
  const of = driver
    .received(results)
    .map(({ window, revision, value }) => [(window.startMs - start) / minute, revision, value.n, value.revenue])
  expect(of).toEqual([
    [0, 0, 3, 60],
    [0, 1, 4, 100],
  ])
  expect(driver.received(late)).toMatchObject([{ price: 50 }])
  await driver.advanceEventTime(minutes(9))
  expect(driver.received(results).at(-1)).toMatchObject({ value: { n: 2, revenue: 2 } })
})
