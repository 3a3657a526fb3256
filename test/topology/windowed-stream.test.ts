/** What windows are to a topology: their types (`tsc` is the test, as in types.test.ts), names, ends and warnings. */
import { hours, milliseconds, minutes } from '../../lib/core/duration.ts'
import { text } from '../../lib/core/format.ts'
import { collect } from '../../lib/operators/aggregators/collect.ts'
import { count } from '../../lib/operators/aggregators/count.ts'
import { distinct } from '../../lib/operators/aggregators/distinct.ts'
import { max, min } from '../../lib/operators/aggregators/extremes.ts'
import { first } from '../../lib/operators/aggregators/first-last.ts'
import { mean, sum } from '../../lib/operators/aggregators/sum.ts'
import { topN } from '../../lib/operators/aggregators/top-n.ts'
import { eventTimer, processingTimer } from '../../lib/operators/keyed/timers.ts'
import type { WindowResult } from '../../lib/operators/keyed/window/window-result.ts'
import { plan } from '../../lib/plan/plan.ts'
import { valueState } from '../../lib/state/states.ts'
import { countWindow } from '../../lib/time/windows/count-window.ts'
import { hopping, tumbling } from '../../lib/time/windows/hopping.ts'
import { session } from '../../lib/time/windows/session.ts'
import type { Stream } from '../../lib/topology/stream.ts'
import { Topology } from '../../lib/topology/topology.ts'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Value<S> = S extends Stream<infer T> ? T : never
const check = <_T extends true>(): void => undefined

interface Bid {
  readonly auction: string
  readonly price: number
  readonly cents: bigint
  readonly tip?: number
}

function bids() {
  const app = new Topology('bids')
  const keyed = app
    .source('lines', text())
    .map((line): Bid => JSON.parse(line) as Bid)
    .keyBy('by-auction', (bid) => bid.auction)
  return { app, keyed, out: app.sink<unknown>('out') }
}

const fiveMinutes = tumbling(minutes(5), { grace: minutes(2) })
const all = { n: count<Bid>() }

describe('types', () => {
  test('results have the names and types of their aggregators; late records are as they came', () => {
    const { results, late } = bids()
      .keyed.window(fiveMinutes)
      .aggregate(
        'per-auction',
        {
          bids: count(),
          revenue: sum((bid) => bid.price),
          cents: sum((bid) => bid.cents),
          tips: sum((bid) => bid.tip),
          mean: mean((bid) => bid.price),
          least: min((bid) => bid.price),
          largest: max((bid) => bid.auction),
          opened: first(),
          whole: topN(1, (bid) => bid.price),
          every: collect({ atMost: 2 }),
          best: topN(3, (bid) => bid.price, { keep: (bid) => bid.cents }),
          prices: collect({ atMost: 5, keep: (bid) => bid.price }),
          different: distinct((bid) => bid.price),
        },
        { emit: 'on-close' },
      )
    interface Expected {
      readonly bids: number
      readonly revenue: number
      readonly cents: bigint
      readonly tips: number | null
      readonly mean: number
      readonly least: number
      readonly largest: string
      readonly opened: Bid
      readonly whole: readonly Bid[]
      readonly every: readonly Bid[]
      readonly best: readonly bigint[]
      readonly prices: readonly number[]
      readonly different: number
    }
    type Given = Value<typeof results>['value']
    check<Equal<{ [N in keyof Given]: Given[N] }, { [N in keyof Expected]: Expected[N] }>>()
    check<Equal<Value<typeof results>['key'], string>>()
    check<Equal<typeof late, Stream<Bid>>>()
  })

  test('one aggregator, or functions of one’s own, give their result itself', () => {
    const one = bids().keyed.window(fiveMinutes).aggregate('one', count(), { emit: 'final' })
    check<Equal<Value<typeof one.results>, WindowResult<string, number>>>()
    const own = bids()
      .keyed.window(fiveMinutes)
      .aggregate(
        'own',
        {
          init: () => ({ longest: 0 }),
          add: ({ longest }, bid) => ({ longest: Math.max(longest, bid.auction.length) }),
          merge: (a, b) => (a.longest > b.longest ? a : b),
          result: ({ longest }) => `${longest}`,
        },
        { emit: 'on-update' },
      )
    check<Equal<Value<typeof own.results>, WindowResult<string, string>>>()
  })

  test('grace and emit have no default', () => {
    const { keyed } = bids()
    // @ts-expect-error a window says how long it takes late records
    expect(() => tumbling(minutes(5), {})).toThrow('the grace is undefined')
    // @ts-expect-error a window says how long it takes late records
    expect(() => tumbling(minutes(5))).toThrow('the grace is undefined')
    // @ts-expect-error a window says when its results come
    expect(() => keyed.window(fiveMinutes).aggregate('a', all, {})).toThrow('says emit: undefined')
    // @ts-expect-error a window says when its results come
    expect(() => keyed.window(fiveMinutes).aggregate('b', all)).toThrow('says emit: undefined')
    // @ts-expect-error collect is bounded
    expect(() => collect({})).toThrow('atMost')
  })

  test('a count window has no late records, and no running results', () => {
    const { results, ...others } = bids().keyed.window(countWindow(3)).aggregate('three', all, { emit: 'on-close' })
    expect(results).toBeDefined()
    expect(others).toEqual({})
    // @ts-expect-error its bounds are known once it is full
    const make = () => bids().keyed.window(countWindow(3)).aggregate('three', all, { emit: 'on-update' })
    expect(make).toThrow('count window')
  })

  test('a timer has a function of its name, and its outputs have the type of the step’s', () => {
    const timed = bids().keyed.process('timed', {
      state: { last: valueState<Bid>() },
      timers: { idle: eventTimer(), poll: processingTimer() },
      step: (bid, { timers, record }) => {
        timers.idle.set(record.eventTimeMs + hours(1).ms)
        // @ts-expect-error there is no such timer
        timers.other?.clear()
        return [bid.price]
      },
      onTimer: {
        idle: (timeMs, { state, key, timers }) => {
          check<Equal<typeof timeMs, number>>()
          check<Equal<typeof key, string>>()
          timers.poll.clear()
          const last = state.last.get()
          return last === undefined ? [] : [last.price]
        },
        poll: () => undefined,
      },
    })
    check<Equal<Value<typeof timed>, number>>()
    const state = { last: valueState<Bid>() }
    const timers = { idle: eventTimer() }
    // @ts-expect-error what comes of a timer is what comes of the step
    bids().keyed.process('other', { state, timers, step: (bid) => [bid.price], onTimer: { idle: () => ['text'] } })
  })
})

describe('a step whose outputs come of its timers alone', () => {
  const state = { last: valueState<Bid>() }
  const timers = { idle: eventTimer() }

  test('has their type, whether it returns nothing or an empty list', () => {
    const quiet = bids().keyed.process('quiet', {
      state,
      timers,
      step: (bid, { state, timers }) => {
        state.last.set(bid)
        timers.idle.set(bid.price)
      },
      onTimer: { idle: (timeMs, { state }) => [{ timeMs, price: state.last.get()?.price }] },
    })
    check<Equal<Value<typeof quiet>, { timeMs: number; price: number | undefined }>>()
    const empty = bids().keyed.process('empty', {
      state,
      timers,
      step(bid, { timers }) {
        timers.idle.set(bid.price)
        return []
      },
      onTimer: { idle: (timeMs, { key }) => [`${key} ${timeMs}`] },
    })
    check<Equal<Value<typeof empty>, string>>()
  })

  test('and each timer has something to do', () => {
    // @ts-expect-error nothing is said of idle
    const make = () => bids().keyed.process('none', { state, timers, step: () => undefined, onTimer: {} })
    expect(make).toThrow('the timer "idle" of process "none" has nothing to do')
  })
})

describe('in a topology', () => {
  test('a window is a keyed operator with a side output', () => {
    const { app, keyed, out } = bids()
    const { results, late } = keyed.window(fiveMinutes).aggregate('per-auction', all, { emit: 'final' })
    results.to(out)
    late.to(out)
    expect(() => keyed.window(fiveMinutes).aggregate('per-auction', all, { emit: 'final' })).toThrow(
      'a window and a window',
    )
    const [, stage] = plan(app).stages
    expect(stage).toMatchObject({ kind: 'keyed', name: 'by-auction', sinks: ['out'] })
    expect(app.describe()).toContain('window "per-auction" (tumbling(5 min), grace 2 min, emits final)')
  })

  test('late records go somewhere, and so do results', () => {
    const one = bids()
    one.keyed.window(fiveMinutes).aggregate('w', all, { emit: 'final' }).results.to(one.out)
    expect(() => plan(one.app)).toThrow(
      'late records are never dropped in silence: send them to a sink with .late.to(...)',
    )
    const other = bids()
    other.keyed.window(fiveMinutes).aggregate('w', all, { emit: 'final' }).late.to(other.out)
    expect(() => plan(other.app)).toThrow('send them to a sink with .results.to(...)')
  })

  const warningsOf = (upstream: Parameters<typeof two>[0], graceMs: number) => plan(two(upstream, graceMs)).warnings
  function two(upstream: 'on-close' | 'final' | 'session', graceMs: number) {
    const { app, keyed, out } = bids()
    const { results, late } =
      upstream === 'session'
        ? keyed.window(session(milliseconds(10), { grace: milliseconds(5) })).aggregate('up', all, { emit: 'on-close' })
        : keyed.window(tumbling(milliseconds(10), { grace: milliseconds(5) })).aggregate('up', all, { emit: upstream })
    const down = results
      .keyBy('all', () => '')
      .window(hopping(milliseconds(20), { every: milliseconds(10), grace: milliseconds(graceMs) }))
      .aggregate('down', { n: count() }, { emit: 'final' })
    for (const stream of [late, down.results, down.late]) (stream as Stream<unknown>).to(out)
    return app
  }

  test('a grace that is shorter than what a window before it revises is a warning', () => {
    expect(warningsOf('on-close', 4)).toEqual([
      expect.stringContaining('its grace of 4 ms undercuts window "up", which revises its results for 5 ms'),
    ])
    expect(warningsOf('on-close', 5)).toEqual([])
    expect(warningsOf('final', 0)).toEqual([])
    expect(warningsOf('session', 13)).toHaveLength(1)
    expect(warningsOf('session', 14)).toEqual([])
  })

  test('revisions go no further than the window that takes them, but for its late output', () => {
    const { app, keyed, out } = bids()
    const window = (stream: Stream<unknown>, name: string, graceMs: number, emit: 'on-close' | 'final') =>
      stream
        .keyBy(`by-${name}`, () => '')
        .window(tumbling(milliseconds(10), { grace: milliseconds(graceMs) }))
        .aggregate(name, { n: count() }, { emit })
    const up = keyed
      .window(tumbling(milliseconds(10), { grace: milliseconds(5) }))
      .aggregate('up', all, { emit: 'on-close' })
    const taking = window(up.results as Stream<unknown>, 'taking', 5, 'final')
    const behind = window(taking.results as Stream<unknown>, 'behind', 0, 'final')
    const ofLate = window(taking.late, 'of-late', 4, 'final')
    const ofLateUp = window(up.late as Stream<unknown>, 'of-late-up', 0, 'final')
    for (const { results, late } of [behind, ofLate, ofLateUp]) {
      for (const stream of [results, late]) (stream as Stream<unknown>).to(out)
    }
    expect(plan(app).warnings).toEqual([
      expect.stringMatching(/> window "of-late": its grace of .* undercuts window "up", which revises its results for/),
    ])
  })

  test('a count window takes whatever comes, so no grace undercuts another', () => {
    const { app, keyed, out } = bids()
    const { results, late } = keyed.window(fiveMinutes).aggregate('up', all, { emit: 'on-close' })
    const down = results
      .keyBy('all', () => '')
      .window(countWindow(3))
      .aggregate('down', count(), { emit: 'on-close' })
    for (const stream of [late, down.results]) (stream as Stream<unknown>).to(out)
    expect(plan(app).warnings).toEqual([])
    expect(app.describe()).toContain('window "down" (countWindow(3), emits on-close)')
  })
})
