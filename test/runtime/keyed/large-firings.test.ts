/** Invariant 7 of keyed-runner.ts (docs/guarantees.md 10) for timers: what a firing would make too large. */
import {
  collect,
  count,
  epochMs,
  eventTimer,
  type Format,
  hours,
  json,
  type MapView,
  mapState,
  minutes,
  Topology,
  tumbling,
  type ValueView,
  valueState,
} from '../../../lib/index.ts'
import { TestDriver } from '../../../lib/testing/index.ts'

interface Visit {
  readonly key: string
  readonly minute: number
  readonly sets?: number
  readonly text?: string
}

const startMs = Date.UTC(2026, 0, 1)
const atMs = ({ minute }: Visit) => startMs + minute * 60_000

interface Views {
  readonly notes: MapView<number>
  readonly blob: ValueView<string>
  readonly visits: ValueView<number>
}

/** A record may note something, and set the two timers of its key for the minute behind it; `early` fires before `late`. */
function visits(early: (state: Views) => void, late: (state: Views) => void = () => undefined) {
  const app = new Topology('visits-app')
  const source = app.source('visits', json() as Format<Visit>, { eventTime: epochMs(atMs), outOfOrderness: minutes(0) })
  const out = app.sink<string>('out')
  source
    .keyBy('by-key', ({ key }) => key)
    .process('guests', {
      state: { notes: mapState<number>(), blob: valueState<string>(), visits: valueState<number>() },
      timers: { early: eventTimer(), late: eventTimer() },
      step: (visit, { state, timers }): string[] => {
        const n = (state.visits.get() ?? 0) + 1
        state.visits.set(n)
        if (visit.text !== undefined) state.notes.set(visit.text, n)
        if (visit.sets !== undefined) {
          timers.early.set(atMs(visit) + 30_000)
          timers.late.set(atMs(visit) + 60_000)
        }
        return [`${visit.key} ${n}`]
      },
      onTimer: {
        early: (_timeMs, { key, state }) => {
          early(state)
          return [`${key} early`]
        },
        late: (_timeMs, { key, state }) => {
          late(state)
          return [`${key} late`]
        },
      },
    })
    .to(out)
  const driver = new TestDriver(app, { nowMs: startMs + hours(1).ms })
  return {
    driver,
    send: (...values: Visit[]) => driver.send(source, values),
    received: () => driver.received(out),
    reasons: () => driver.deadLetters.map(({ reason }) => [reason.phase, reason.code]),
    timers: () =>
      driver.deadLetters.map(({ payload }) => JSON.parse(Buffer.from(payload ?? '', 'base64').toString()).timer),
  }
}

const growing = (state: Views) => state.blob.set('x'.repeat(400_000))
const forgetting = (state: Views) => {
  for (const [name] of state.notes.entries()) if (name !== 'kept') state.notes.delete(name)
}

describe('a timer that would make the item of its key too large is a dead letter, and what lies behind it goes on', () => {
  test('at the number of another key', async () => {
    const { driver, send, received, reasons, timers } = visits(growing)
    await send({ key: 'a', minute: 0, sets: 1 })
    await driver.advanceEventTime(minutes(5))
    await send({ key: 'b', minute: 10 })
    expect([reasons(), timers()]).toEqual([[['timer', 'state-too-large']], ['guests.early']])
    expect(driver.deadLetters[0]?.reason.message).toContain('stage "by-key", key "a": the state guests.blob')
    expect(received().toSorted()).toEqual(['a 1', 'a late', 'b 1'])
    expect(await driver.stateOf('by-key', 'a')).toEqual({ 'guests.visits': 1 })
  })

  test('before a record of its own key, which is applied', async () => {
    const { send, received, reasons, timers } = visits(() => undefined, growing)
    await send({ key: 'a', minute: 0, sets: 1 })
    await send({ key: 'a', minute: 2 })
    await send({ key: 'a', minute: 3 })
    await send({ key: 'a', minute: 4 })
    expect([reasons(), timers()]).toEqual([[['timer', 'state-too-large']], ['guests.late']])
    expect(received()).toEqual(['a 1', 'a 2', 'a early', 'a 3', 'a 4'])
  })

  test('set in the past, behind a record that itself fits', async () => {
    const { driver, send, received, reasons, timers } = visits(growing)
    await send({ key: 'a', minute: 10 })
    await send({ key: 'a', minute: 11 })
    await send({ key: 'a', minute: 1, sets: 1 })
    expect([reasons(), timers()]).toEqual([[['timer', 'state-too-large']], ['guests.early']])
    expect(received()).toEqual(['a 1', 'a 2', 'a 3', 'a late'])
    expect(await driver.stateOf('by-key', 'a')).toEqual({ 'guests.visits': 3 })
  })
})

describe('a timer that deletes the entries of its key', () => {
  const noted = (count: number): Visit[] =>
    Array.from({ length: count }, (_, i) => ({ key: 'a', minute: 0, sets: 1, text: `note ${i}` }))

  test('works up to what a transaction holds, whatever the records before it have changed', async () => {
    const { driver, send, received, reasons } = visits(forgetting)
    await send(...noted(99))
    // One batch with the record that makes the timer due: what is kept is not committed yet when it fires.
    await send({ key: 'a', minute: 2, text: 'kept' }, { key: 'b', minute: 3 })
    await driver.advanceEventTime(minutes(5))
    expect(reasons()).toEqual([])
    expect(received()).toEqual(expect.arrayContaining(['a 100', 'a early', 'a late', 'b 1']))
    expect(await driver.stateOf('by-key', 'a')).toEqual({ 'guests.visits': 100, 'guests.notes': { kept: 100 } })
  })

  test('beyond it is a dead letter that names the limit, and the key keeps what it had', async () => {
    const { driver, send, received, reasons, timers } = visits(forgetting)
    await send(...noted(150))
    await driver.advanceEventTime(minutes(5))
    await send({ key: 'b', minute: 6 })
    expect(driver.pending('by-key')).toBe(0)
    expect([reasons(), timers()]).toEqual([[['timer', 'commit-too-large']], ['guests.early']])
    expect(driver.deadLetters[0]?.reason.message).toContain('a commit of 151 items')
    expect(driver.deadLetters[0]?.reason.message).toContain('a transaction holds 100')
    expect(received().slice(150).toSorted()).toEqual(['a late', 'b 1'])
    const { 'guests.notes': notes } = await driver.stateOf('by-key', 'a')
    expect(Object.keys(notes as object)).toHaveLength(150)
  })
})

test('windows whose closing makes their item too large are dead letters one by one, until there is room again', async () => {
  const app = new Topology('windows')
  const source = app.source('visits', json() as Format<Visit>, {
    eventTime: epochMs(atMs),
    outOfOrderness: minutes(10),
  })
  const out = app.sink<string>('out')
  const { results, late } = source
    .keyBy('by-key', ({ key }) => key)
    .window(tumbling(minutes(1), { grace: minutes(5) }))
    .aggregate(
      'kept',
      { texts: collect({ atMost: 5, keep: ({ text }: Visit) => text ?? '' }), n: count() },
      { emit: 'on-close' },
    )
  results.map(({ key, window }) => `${key} ${(window.endMs - startMs) / 60_000}`).to(out)
  late.to(app.sink<Visit>('late'))
  const driver = new TestDriver(app, { nowMs: startMs + hours(1).ms })
  const send = (...values: Visit[]) => driver.send(source, values)
  // What three windows hold fits by some twenty bytes; each that was put out is noted until its grace is over.
  const text = 'x'.repeat(129_582)
  await send(...[0, 1, 2].map((minute) => ({ key: 'a', minute, text })))
  expect(driver.deadLetters).toHaveLength(0)
  // All three are over here, and none is settled.
  await send({ key: 'b', minute: 14 })
  await send({ key: 'b', minute: 14 })
  expect(driver.pending('by-key')).toBe(0)
  expect(driver.received(out)).toEqual(['a 1'])
  expect(driver.deadLetters.map(({ reason }) => reason.code)).toEqual(['state-too-large', 'state-too-large'])
  await driver.advanceEventTime(minutes(60))
  expect(await driver.stateOf('by-key', 'a')).toEqual({})
})
