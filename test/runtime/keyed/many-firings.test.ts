/** How many timers of one key fire in one step: any number that follow each other in time, and an end where time stands still. */
import { epochMs, eventTimer, type Format, hours, json, Topology, valueState } from '../../../lib/index.ts'
import { TestDriver } from '../../../lib/testing/index.ts'

interface Call {
  readonly line: string
  readonly atMs: number
}

const startMs = Date.UTC(2026, 0, 1)

/** A call rings a bell, which sets itself again until it has rung 1,500 times: each time so much later. */
async function ringing(stepMs: number) {
  const app = new Topology('bells-app')
  const source = app.source('calls', json() as Format<Call>, { eventTime: epochMs(({ atMs }: Call) => atMs) })
  const out = app.sink<string>('out')
  source
    .keyBy('by-line', ({ line }) => line)
    .process('ring', {
      state: { rung: valueState<number>() },
      timers: { bell: eventTimer() },
      step({ atMs }, { timers }): string[] {
        timers.bell.set(atMs + 1)
        return []
      },
      onTimer: {
        bell(timeMs, { state, timers }): string[] {
          const rung = (state.rung.get() ?? 0) + 1
          state.rung.set(rung)
          if (rung < 1_500) timers.bell.set(timeMs + stepMs)
          return rung < 1_500 ? [] : [`rang ${rung} times`]
        },
      },
    })
    .to(out)
  const driver = new TestDriver(app, { nowMs: startMs })
  await driver.send(source, [{ line: 'a', atMs: startMs }])
  await driver.advanceEventTime(hours(1))
  return { received: driver.received(out), dead: driver.deadLetters.map(({ reason }) => reason.code) }
}

test('timers that follow each other in time all fire in one step', async () => {
  expect(await ringing(1)).toEqual({ received: ['rang 1500 times'], dead: [] })
})

test('one that sets itself again at its own time is given up after a thousand firings', async () => {
  expect(await ringing(0)).toEqual({ received: [], dead: ['too-many-timers'] })
})
