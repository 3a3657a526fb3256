/** Windows behind timers and behind other windows: nothing is late for having waited, however far the watermark has jumped. */
import {
  count,
  epochMs,
  eventTimer,
  type Format,
  hours,
  json,
  minutes,
  sum,
  Topology,
  tumbling,
  valueState,
} from '../../../lib/index.ts'
import { TestDriver } from '../../../lib/testing/index.ts'

interface Call {
  readonly line: string
  readonly minute: number
}

const startMs = Date.UTC(2026, 0, 1)
const atMs = ({ minute }: Call) => startMs + minute * 60_000
const nowMs = startMs + hours(1).ms
const endOf = (endMs: number) => (endMs - startMs) / 60_000

function calls() {
  const app = new Topology('calls-app')
  const source = app.source('calls', json() as Format<Call>, { eventTime: epochMs(atMs), outOfOrderness: minutes(0) })
  return { app, source, out: app.sink<string>('out'), late: app.sink<unknown>('late') }
}

test('what a timer puts out counts in the window of its own time, in the stage where it fires', async () => {
  const { app, source, out, late } = calls()
  const windows = source
    .keyBy('by-line', ({ line }) => line)
    .process('silence', {
      state: { calls: valueState<number>() },
      timers: { silent: eventTimer() },
      step: (call, { timers }): string[] => {
        timers.silent.set(atMs(call) + 60_000)
        return []
      },
      onTimer: { silent: () => ['silent'] },
    })
    .window(tumbling(minutes(1), { grace: minutes(0) }))
    .aggregate('silences', { n: count() }, { emit: 'on-close' })
  windows.results.map(({ key, window, value }) => `${key} ${endOf(window.endMs)}: ${value.n}`).to(out)
  windows.late.to(late)
  const driver = new TestDriver(app, { nowMs })
  await driver.send(source, [{ line: 'a', minute: 0 }])
  // Half an hour goes by at once: it ends the window of the firing together with the timer.
  await driver.advanceEventTime(minutes(30))
  expect(driver.received(late)).toEqual([])
  expect(driver.received(out)).toEqual(['a 2: 1'])
})

describe("windows behind 'final' windows, in the next stage", () => {
  /** Calls per minute and line, put out two minutes later; of those, calls per minute. */
  const chained = () => {
    const { app, source, out, late } = calls()
    const perLine = source
      .keyBy('by-line', ({ line }) => line)
      .window(tumbling(minutes(1), { grace: minutes(2) }))
      .aggregate('per-line', { n: count() }, { emit: 'final' })
    perLine.late.to(late)
    const perMinute = perLine.results
      .keyBy('all', () => 'all')
      .window(tumbling(minutes(1), { grace: minutes(0) }))
      .aggregate('per-minute', { n: sum(({ value }: { value: { n: number } }) => value.n) }, { emit: 'on-close' })
    perMinute.results.map(({ window, value }) => `${endOf(window.endMs)}: ${value.n}`).to(out)
    perMinute.late.to(late)
    const driver = new TestDriver(app, { nowMs })
    return {
      driver,
      send: (...sent: Call[]) => driver.send(source, sent),
      received: () => driver.received(out),
      late: () => driver.received(late),
    }
  }

  const lines = (minute: number): Call[] => ['a', 'b', 'c'].map((line) => ({ line, minute }))

  test('take each result, though it comes when its grace is over', async () => {
    const { driver, send, received, late } = chained()
    for (const minute of [0, 1, 2, 3, 4, 5, 6, 7, 8]) await send(...lines(minute + 0.5))
    await driver.advanceEventTime(minutes(30))
    expect(late()).toEqual([])
    expect(received()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map((endMinute) => `${endMinute}: 3`))
  })

  test('and those of a watermark that jumps', async () => {
    const { driver, send, received, late } = chained()
    await send(...lines(0.5), ...lines(1.5), ...lines(2.5))
    await send({ line: 'd', minute: 3.9 })
    await send({ line: 'd', minute: 20.5 }, { line: 'd', minute: 20.6 })
    await driver.advanceEventTime(minutes(30))
    expect(late()).toEqual([])
    expect(received()).toEqual(['1: 3', '2: 3', '3: 3', '4: 1', '21: 2'])
  })
})
