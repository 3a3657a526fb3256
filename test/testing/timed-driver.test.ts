/** Time in the test driver: windows and timers by marks, by silence and by the clock. */
import { z } from 'zod'
import { hours, milliseconds, minutes, seconds } from '../../lib/core/duration.ts'
import { count } from '../../lib/operators/aggregators/count.ts'
import { eventTimer, processingTimer } from '../../lib/operators/keyed/timers.ts'
import { valueState } from '../../lib/state/states.ts'
import { TestDriver } from '../../lib/testing/test-driver.ts'
import { epochMs } from '../../lib/time/event-time.ts'
import { tumbling } from '../../lib/time/windows/hopping.ts'
import { Topology } from '../../lib/topology/topology.ts'

const booking = z.object({ hotel: z.string(), at: z.number() })
type Booking = z.infer<typeof booking>
const startMs = Date.UTC(2026, 0, 1)
const minuteMs = minutes(1).ms

/** A booking so many minutes after the start. */
const at = (minute: number, hotel = 'h'): Booking => ({ hotel, at: startMs + minute * minuteMs })

/** Bookings per hotel in five minutes, a minute out of order, two of grace; then the busiest numbers, in ten minutes. */
function world() {
  const app = new Topology('bookings-app')
  const source = app.source('bookings', booking, { eventTime: epochMs((b) => b.at), outOfOrderness: minutes(1) })
  const out = app.sink<{ hotel: string; from: number; n: number; revision: number }>('out')
  const hotels = app.sink<{ from: number; n: number }>('hotels')
  const late = app.sink<unknown>('late')
  const perHotel = source
    .keyBy('by-hotel', (b) => b.hotel)
    .window(tumbling(minutes(5), { grace: minutes(2) }))
    .aggregate('per-hotel', { n: count() }, { emit: 'on-close' })
  const fromOf = (window: { readonly startMs: number }) => (window.startMs - startMs) / minuteMs
  perHotel.results
    .map(({ key, window, revision, value }) => ({ hotel: key, from: fromOf(window), n: value.n, revision }))
    .to(out)
  perHotel.late.to(late)
  const perNumber = perHotel.results
    .filter(({ revision }) => revision === 0)
    .keyBy('by-number', ({ value }) => String(value.n))
    .window(tumbling(minutes(10), { grace: minutes(0) }))
    .aggregate('hotels-of-number', { n: count() }, { emit: 'on-close' })
  perNumber.results.map(({ window, value }) => ({ from: fromOf(window), n: value.n })).to(hotels)
  perNumber.late.to(late)
  const driver = new TestDriver(app, { nowMs: startMs })
  return { app, source, out, hotels, late, driver }
}

describe('windows', () => {
  test('close by the marks of later records', async () => {
    const { driver, source, out } = world()
    await driver.send(source, [at(1), at(3), at(5.9)])
    expect(driver.received(out)).toEqual([])
    await driver.send(source, [at(6)])
    await driver.send(source, [at(6.5)])
    expect(driver.received(out)).toEqual([{ hotel: 'h', from: 0, n: 2, revision: 0 }])
  })

  test('close by silence, when the largest event time and it reach their end, less the disorder', async () => {
    const { driver, source, out } = world()
    await driver.send(source, [at(1), at(3)])
    await driver.advanceEventTime(milliseconds(3 * minuteMs - 1))
    expect(driver.received(out)).toEqual([])
    await driver.advanceEventTime(milliseconds(1))
    expect(driver.received(out)).toEqual([{ hotel: 'h', from: 0, n: 2, revision: 0 }])
  })

  test('what comes within the grace is a revision, what comes later is late', async () => {
    const { driver, source, out, late } = world()
    await driver.send(source, [at(3)])
    await driver.advanceEventTime(minutes(4))
    await driver.send(source, [at(4)])
    expect(driver.received(out)).toEqual([
      { hotel: 'h', from: 0, n: 1, revision: 0 },
      { hotel: 'h', from: 0, n: 2, revision: 1 },
    ])
    // Silence counts from the record that was sent last.
    await driver.advanceEventTime(milliseconds(4 * minuteMs - 1))
    await driver.send(source, [at(4)])
    expect(driver.received(out)).toHaveLength(3)
    await driver.advanceEventTime(minutes(4))
    await driver.send(source, [at(4)])
    expect(driver.received(out)).toHaveLength(3)
    expect(driver.received(late)).toHaveLength(1)
  })

  test('wait for the slowest partition: with silence it passes them too', async () => {
    const { driver, source, out } = world()
    await driver.send(source, [at(1)], { partition: 'slow' })
    await driver.send(source, [at(2), at(30)], { partition: 'fast' })
    expect(driver.received(out)).toEqual([])
    await driver.advanceEventTime(minutes(5))
    expect(driver.received(out)).toEqual([{ hotel: 'h', from: 0, n: 2, revision: 0 }])
  })

  test('wait for a partition that has records pending, however long the others are silent', async () => {
    const { driver, source, out } = world()
    await driver.send(source, [at(1, 'a')], { partition: 'p-0' })
    await driver.send(source, [at(1, 'b')], { partition: 'p-1' })
    // The store takes no more of this partition.
    const store = driver.ports.state('bookings')
    const { writeProgress } = store as NonNullable<typeof store>
    const refuse = async (partition: string, ...rest: [number, never, AbortSignal]) => {
      if (partition === 'bookings/p-1') throw new Error('throttled')
      return writeProgress.call(store, partition, ...rest)
    }
    Object.assign(store as object, { writeProgress: refuse })
    await driver.send(source, [at(2, 'b')], { partition: 'p-1' })
    expect(driver.pending(source)).toBe(1)
    await driver.advanceEventTime(hours(1))
    expect(driver.received(out)).toEqual([])
    Object.assign(store as object, { writeProgress })
    await driver.retry()
    await driver.advanceEventTime(minutes(5))
    expect(
      driver
        .received(out)
        .map(({ hotel, n }) => `${hotel} ${n}`)
        .sort(),
    ).toEqual(['a 1', 'b 2'])
  })

  test('of a stage behind another close with it, in one call', async () => {
    const { driver, source, hotels } = world()
    await driver.send(source, [at(1, 'a'), at(2, 'b'), at(3, 'c'), at(3, 'c')])
    await driver.advanceEventTime(milliseconds(8 * minuteMs - 1))
    expect(driver.received(hotels)).toEqual([])
    await driver.advanceEventTime(milliseconds(1))
    expect(driver.received(hotels).toSorted((a, b) => a.n - b.n)).toEqual([
      { from: 0, n: 1 },
      { from: 0, n: 2 },
    ])
  })

  test('close by the clock too, as all sources are silent while it moves; both kinds of silence add up', async () => {
    const { driver, source, out } = world()
    await driver.send(source, [at(3)])
    await driver.advanceProcessingTime(minutes(2))
    await driver.advanceEventTime(seconds(59))
    expect(driver.received(out)).toEqual([])
    await driver.advanceProcessingTime(seconds(1))
    expect(driver.received(out)).toEqual([{ hotel: 'h', from: 0, n: 1, revision: 0 }])
  })

  test('while nothing waits, time moves and no stage is woken', async () => {
    const { driver, source } = world()
    await driver.send(source, [at(3)])
    await driver.advanceEventTime(hours(1))
    const { signal } = new AbortController()
    const versions = () =>
      Promise.all(
        ['by-hotel', 'by-number'].flatMap((stage) =>
          [0, 1].map(
            async (n) =>
              (await driver.ports.state(stage)?.readProgress(`${stage}/shardId-00000000000${n}`, signal))?.version,
          ),
        ),
      )
    const before = await versions()
    expect(before.every((version) => version !== undefined)).toBe(true)
    await driver.advanceEventTime(hours(1))
    await driver.advanceProcessingTime(hours(1))
    expect(await versions()).toEqual(before)
  })
})

describe('timers', () => {
  function timers() {
    const app = new Topology('carts-app')
    const source = app.source('carts', booking, { eventTime: epochMs((b) => b.at), outOfOrderness: minutes(1) })
    const out = app.sink<string>('out')
    source
      .keyBy('by-cart', (b) => b.hotel)
      .process('cart-timers', {
        state: { n: valueState<number>() },
        timers: { idle: eventTimer(), poll: processingTimer() },
        step(cart, { state, timers, record }): string[] {
          state.n.set((state.n.get() ?? 0) + 1)
          timers.idle.set(cart.at + 10 * minuteMs)
          timers.poll.set(record.arrivalTimeMs + 10 * minuteMs)
          return []
        },
        onTimer: {
          idle: (timeMs, { state }) => [`idle ${(timeMs - startMs) / minuteMs} ${state.n.get()}`],
          poll: (timeMs, { state }) => [`poll ${(timeMs - startMs) / minuteMs} ${state.n.get()}`],
        },
      })
      .to(out)
    return { source, out, driver: new TestDriver(app, { nowMs: startMs }) }
  }

  test('of event time fire by silence, those of processing time do not', async () => {
    const { driver, source, out } = timers()
    await driver.send(source, [at(0), at(1)])
    await driver.advanceEventTime(milliseconds(11 * minuteMs - 1))
    expect(driver.received(out)).toEqual([])
    await driver.advanceEventTime(milliseconds(1))
    expect(driver.received(out)).toEqual(['idle 11 2'])
    await driver.advanceEventTime(hours(5))
    expect(driver.received(out)).toHaveLength(1)
  })

  test('of processing time fire with the clock', async () => {
    const { driver, source, out } = timers()
    // So far ahead that event time waits for hours.
    await driver.send(source, [at(600)])
    await driver.advanceProcessingTime(milliseconds(10 * minuteMs - 1))
    expect(driver.received(out)).toEqual([])
    await driver.advanceProcessingTime(milliseconds(1))
    expect(driver.received(out)).toEqual(['poll 10 1'])
  })

  test('that are replaced fire at their new time only', async () => {
    const { driver, source, out } = timers()
    await driver.send(source, [at(600)])
    await driver.advanceProcessingTime(minutes(9))
    await driver.send(source, [at(601)])
    await driver.advanceProcessingTime(minutes(9))
    expect(driver.received(out)).toEqual([])
    await driver.advanceProcessingTime(minutes(1))
    expect(driver.received(out)).toEqual(['poll 19 2'])
  })
})
