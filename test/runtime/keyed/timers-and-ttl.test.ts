/** What a timer sees of state that has expired by then: the same whether or not the table has taken its items. */
import * as z from 'zod'
import { days, hours, minutes } from '../../../lib/core/duration.ts'
import { eventTimer } from '../../../lib/operators/keyed/timers.ts'
import { listState, mapState, valueState } from '../../../lib/state/states.ts'
import { TestDriver } from '../../../lib/testing/test-driver.ts'
import { epochMs } from '../../../lib/time/event-time.ts'
import { Topology } from '../../../lib/topology/topology.ts'

const startMs = Date.UTC(2026, 0, 1)
const visit = z.object({ key: z.string(), at: z.number() })

/** What is there so long after its only record, of states that live for an hour, where the key is read again for each batch or is not. */
async function seenAfter(
  waitMs: number,
  by: 'event-time' | 'processing-time',
  options: { readonly warmKeys?: number; readonly quietUntilMs?: number } = {},
) {
  const app = new Topology('visits-app')
  const source = app.source('visits', visit, { eventTime: epochMs(({ at }) => at), outOfOrderness: minutes(0) })
  const out = app.sink<readonly [entry: boolean, value: boolean, list: boolean]>('out')
  const ttl = { by, after: hours(1) } as const
  source
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .process('seen', {
      state: {
        entry: mapState<number>({ ttl }),
        value: valueState<number>({ ttl }),
        list: listState<number>({ ttl, atMost: 2 }),
      },
      timers: { later: eventTimer() },
      step({ key, at }, { state, timers }): (readonly [boolean, boolean, boolean])[] {
        if (key !== 'a') return []
        state.entry.set('e', 1)
        state.value.set(1)
        state.list.add(1)
        timers.later.set(at + waitMs)
        return []
      },
      onTimer: {
        later: (_, { state }) => [
          [state.entry.has('e'), state.value.get() !== undefined, state.list.get().length > 0] as const,
        ],
      },
    })
    .to(out)
  const { quietUntilMs = 0, ...others } = options
  const driver = new TestDriver(app, { nowMs: startMs, ...others })
  await driver.send(source, [{ key: 'a', at: startMs }])
  const restMs = Math.max(waitMs, quietUntilMs)
  if (quietUntilMs === 0) await driver.advanceProcessingTime(days(waitMs / days(2).ms))
  driver.clock.advance(startMs + restMs + minutes(1).ms - driver.clock.nowMs())
  for (const minute of [0, 1]) await driver.send(source, [{ key: 'b', at: startMs + restMs + minute * minutes(1).ms }])
  return driver.received(out)
}

const wholly = (isThere: boolean) => [[isThere, isThere, isThere]]

describe.each(['event-time', 'processing-time'] as const)('state with a TTL by %s', (by) => {
  test.each([0.02, 0.5, 1, 2, 5, 8, 14, 15, 16, 17, 20, 40])(
    'is there as a whole for a timer that fires %p days later, or is not, whether or not its key was kept in memory',
    async (wait) => {
      const warm = await seenAfter(days(wait).ms, by)
      expect(await seenAfter(days(wait).ms, by, { warmKeys: 0 })).toEqual(warm)
      expect([wholly(true), wholly(false)]).toContainEqual(warm)
    },
  )

  test('is there for a timer within its time, and gone once no record on its way could find it', async () => {
    expect(await seenAfter(minutes(30).ms, by)).toEqual(wholly(true))
    expect(await seenAfter(days(9).ms, by)).toEqual(wholly(false))
  })

  test('is one, too, where nothing came for so long that the table has taken its items, and the timer is from before', async () => {
    const quiet = { quietUntilMs: days(20).ms }
    expect(await seenAfter(minutes(30).ms, by, quiet)).toEqual(wholly(false))
    expect(await seenAfter(minutes(30).ms, by, { ...quiet, warmKeys: 0 })).toEqual(wholly(false))
    const night = { quietUntilMs: hours(10).ms }
    expect(await seenAfter(minutes(30).ms, by, night)).toEqual(wholly(true))
    expect(await seenAfter(minutes(30).ms, by, { ...night, warmKeys: 0 })).toEqual(wholly(true))
  })
})
