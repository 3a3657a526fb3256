/** Times that are none, of another unit or far off, and timers in the past: what becomes of the record, and of the others. */
import { z } from 'zod'
import { TerminalError } from '../../lib/core/errors.ts'
import {
  count,
  epochMs,
  epochSeconds,
  eventTimer,
  milliseconds,
  minutes,
  seconds,
  Topology,
  tumbling,
  valueState,
} from '../../lib/index.ts'
import { TestDriver } from '../../lib/testing/index.ts'

const event = z.object({ at: z.any().optional() })
const startMs = Date.UTC(2026, 0, 1)

const extractors = {
  'epoch ms': epochMs(({ at }: { at?: unknown }) => (at === 'NaN' ? Number.NaN : (at as number))),
  'epoch seconds': epochSeconds(({ at }: { at?: unknown }) => (at === 'NaN' ? Number.NaN : (at as number))),
}

test.each([
  ['epoch ms', startMs, startMs / 1_000, startMs * 1_000],
  ['epoch seconds', startMs / 1_000, startMs, startMs * 1_000],
] as const)(
  '%s: no time, no number and another unit are dead letters, and make nobody late',
  async (unit, good, ...units) => {
    const app = new Topology('bad-times')
    const source = app.source('events', event, { eventTime: extractors[unit] })
    const results = app.sink<number>('results')
    const late = app.sink<unknown>('late')
    const perMinute = source
      .keyBy('all', () => 'all')
      .window(tumbling(minutes(1), { grace: milliseconds(0) }))
      .aggregate('per-minute', { n: count() }, { emit: 'on-close' })
    perMinute.results.map(({ value }) => value.n).to(results)
    perMinute.late.to(late)
    const driver = new TestDriver(app, { nowMs: startMs })
    await driver.send(source, [
      { at: good },
      {},
      { at: null },
      { at: 'NaN' },
      ...units.map((at) => ({ at })),
      { at: good },
    ])
    expect(driver.deadLetters.map(({ reason: { phase, code } }) => [phase, code])).toEqual([
      ['event-time', 'event-time-missing'],
      ['event-time', 'event-time-missing'],
      ['event-time', 'event-time-unreadable'],
      ['event-time', 'event-time-implausible'],
      ['event-time', 'event-time-implausible'],
    ])
    await driver.advanceEventTime(minutes(1))
    expect([driver.received(results), driver.received(late)]).toEqual([[2], []])
  },
)

const farthestMs = 8_640_000_000_000_000

test.each<[unknown]>([
  ...[[Number.NaN], [Number.POSITIVE_INFINITY], [Number.NEGATIVE_INFINITY], [1e300], [0.5], [String(startMs)]],
  ...[[undefined], [new Date(startMs)], [farthestMs + 1], [-farthestMs - 1]],
] as [unknown][])(
  'an extractor of the user that gives %p makes a dead letter, and the shard goes on',
  async (given) => {
    const app = new Topology('own-times')
    const eventTime = {
      unit: 'epochMs',
      extract: ({ at }: { at?: unknown }) => (at === 'bad' ? (given as number) : (at as number)),
    } as const
    const source = app.source('events', event, { eventTime })
    const results = app.sink<number>('results')
    const late = app.sink<unknown>('late')
    const perMinute = source
      .keyBy('all', () => 'all')
      .window(tumbling(minutes(1), { grace: milliseconds(0) }))
      .aggregate('per-minute', { n: count() }, { emit: 'on-close' })
    perMinute.results.map(({ value }) => value.n).to(results)
    perMinute.late.to(late)
    const driver = new TestDriver(app, { nowMs: startMs })
    await driver.send(source, [{ at: startMs }, { at: 'bad' }, { at: startMs + 1 }])
    expect(driver.deadLetters.map(({ stage, reason: { phase, code } }) => [stage, phase, code])).toEqual([
      ['events', 'event-time', 'event-time-unreadable'],
    ])
    await driver.advanceEventTime(minutes(1))
    expect([driver.received(results), driver.received(late)]).toEqual([[2], []])
  },
)

test.each([farthestMs, -farthestMs])('an extractor of the user may give any time of a date, such as %p', async (at) => {
  const app = new Topology('own-times')
  const source = app.source('events', event, { eventTime: { unit: 'epochMs', extract: () => at } })
  const seen = app.sink<number>('seen')
  source.map((_, record) => record.eventTimeMs).to(seen)
  const driver = new TestDriver(app, { nowMs: startMs })
  await driver.send(source, [{}])
  expect(driver.received(seen)).toEqual([at])
})

/** Sets a timer at the time that each event says, and tells what fires when. */
function timed(skewLimit = minutes(10)) {
  const app = new Topology('timers')
  const source = app.source('events', z.object({ at: z.number(), fireAt: z.number().optional() }), {
    eventTime: epochMs(({ at }) => at, { from: '1900-01-01' }),
    skewLimit,
  })
  const out = app.sink<string>('out')
  source
    .keyBy('all', () => 'all')
    .process('alarm', {
      state: { last: valueState<number>({ ttl: { by: 'event-time', after: minutes(30) } }) },
      timers: { alarm: eventTimer() },
      step({ at, fireAt }, { state, timers }) {
        const before = state.last.get()
        state.last.set(at)
        if (fireAt !== undefined) timers.alarm.set(fireAt)
        return [`${at} after ${before ?? 'none'}`]
      },
      onTimer: { alarm: (timeMs) => [`fired ${timeMs}`] },
    })
    .to(out)
  return { driver: new TestDriver(app, { nowMs: 0 }), source, out }
}

test('a timer in the past fires within the step, behind the record; one to come waits for the watermark', async () => {
  const { driver, source, out } = timed()
  await driver.send(source, [{ at: 0 }, { at: 60_000 }])
  await driver.send(source, [{ at: 60_000, fireAt: 1 }, { at: 60_000, fireAt: 90_000 }, { at: 61_000 }])
  expect(driver.received(out)).toEqual([
    ...['0 after none', '60000 after 0', '60000 after 60000', 'fired 1'],
    ...['60000 after 60000', '61000 after 60000'],
  ])
  await driver.advanceEventTime(seconds(29))
  expect(driver.received(out).at(-1)).toBe('fired 90000')
})

test('a timer before 1970 fires as any other', async () => {
  const { driver, source, out } = timed()
  await driver.send(source, [{ at: -120_000, fireAt: -60_000 }])
  await driver.advanceEventTime(milliseconds(59_999))
  expect(driver.received(out)).toEqual(['-120000 after none'])
  await driver.advanceEventTime(milliseconds(1))
  expect(driver.received(out)).toEqual(['-120000 after none', 'fired -60000'])
})

test.each([
  ['a value of before does not expire', [0]],
  ['nor does the first value of its key, which it sets itself', []],
])('a record of a wrong clock is further ahead than the TTL of a state: %s', async (_, before: readonly number[]) => {
  const { driver, source, out } = timed()
  const rogue = 3 * 3_600_000
  await driver.send(
    source,
    [...before, rogue, 1_000].map((at) => ({ at })),
  )
  expect(driver.received(out).slice(before.length)).toEqual([
    `${rogue} after ${before[0] ?? 'none'}`,
    `1000 after ${rogue}`,
  ])
})

test('its dead letter says so, as it must be late when it is sent again', async () => {
  const app = new Topology('rogues')
  const source = app.source('events', z.object({ at: z.number() }), {
    eventTime: epochMs(({ at }) => at, { from: '1900-01-01' }),
    skewLimit: minutes(10),
  })
  source
    .keyBy('all', () => 'all')
    .process('refuse', {
      state: { last: valueState<number>() },
      step(): string[] {
        throw new TerminalError('no')
      },
    })
    .to(app.sink<string>('out'))
  const driver = new TestDriver(app, { nowMs: 0 })
  await driver.send(source, [{ at: 1 }, { at: 3 * 3_600_000 }])
  expect(driver.deadLetters.map(({ keyed }) => keyed?.isSkewed)).toEqual([undefined, true])
})

test('behind a step that has no windows a record of a wrong clock is taken as it comes, and moves no time', async () => {
  const { driver, source, out } = timed()
  const rogue = 10 * 60_000 + 1
  await driver.send(source, [{ at: 0, fireAt: 5_000 }, { at: rogue }, { at: 1_000 }])
  expect(driver.received(out)).toEqual(['0 after none', `${rogue} after 0`, `1000 after ${rogue}`])
  expect(driver.ports.counted('records-skewed')).toBe(1)
  await driver.advanceEventTime(seconds(4))
  expect(driver.received(out).at(-1)).toBe('fired 5000')
})

describe('what a timer puts out, for the windows of the next stage', () => {
  /** Carts are abandoned `idle` minutes after their event; windows behind count those of each hour. */
  async function abandoned(
    idle: number,
    sends: readonly (readonly [partition: string, cart: string, atMinute: number])[],
  ) {
    const app = new Topology('carts')
    const source = app.source('events', z.object({ cart: z.string(), at: z.number() }), {
      eventTime: epochMs(({ at }) => at),
    })
    const hours = app.sink<readonly [startMinute: number, carts: number]>('hours')
    const late = app.sink<string>('late')
    const perHour = source
      .keyBy('by-cart', ({ cart }) => cart)
      .process('abandoned', {
        state: { last: valueState<number>() },
        timers: { idle: eventTimer() },
        step({ at }, { timers }): string[] {
          timers.idle.set(at + minutes(idle).ms)
          return []
        },
        onTimer: { idle: (_timeMs, { key }) => [key] },
      })
      .keyBy('all', () => 'all')
      .window(tumbling(minutes(60), { grace: minutes(0) }))
      .aggregate('per-hour', { n: count() }, { emit: 'final' })
    perHour.results.map(({ window, value }) => [(window.startMs - startMs) / 60_000, value.n] as const).to(hours)
    perHour.late.to(late)
    const driver = new TestDriver(app, { nowMs: startMs + minutes(600).ms })
    for (const [partition, cart, minute] of sends) {
      await driver.send(source, [{ cart, at: startMs + minute * 60_000 }], { partition })
    }
    for (const _ of [1, 2]) await driver.advanceEventTime(minutes(300))
    return { hours: driver.received(hours), late: driver.received(late) }
  }
  const begun = [
    ['b', 'other', 40],
    ['a', 'other', 40],
    ['a', 'other', 130],
  ] as const
  const behind = ['a', 'ann', 50] as const
  const others = [
    ['b', 'other', 135],
    ['b', 'other', 136],
  ] as const

  test('is in time where it is set behind the own mark of its record, however fast other partitions are read', async () => {
    const hours = [
      [120, 1],
      [180, 1],
    ]
    const inTime = { hours, late: [] }
    expect(await abandoned(90, [...begun, behind, ...others])).toEqual(inTime)
    expect(await abandoned(90, [...begun, ...others, behind])).toEqual(inTime)
  })

  test('depends on them where it is set in the past: in time where one lags, late where none does', async () => {
    const other = [120, 1]
    expect(await abandoned(30, [...begun, behind, ...others])).toEqual({ hours: [[60, 1], other], late: [] })
    expect(await abandoned(30, [...begun, ...others, behind])).toEqual({ hours: [other], late: ['ann'] })
  })
})
