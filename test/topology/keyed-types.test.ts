/** What the compiler must accept and refuse of keyed streams: `tsc` is the test, as in types.test.ts. */
import { days, hours } from '../../lib/core/duration.ts'
import { text } from '../../lib/core/format.ts'
import type { RecordInfo } from '../../lib/core/record.ts'
import { sideOutput } from '../../lib/operators/keyed/side-output.ts'
import {
  aggregatingState,
  listState,
  mapState,
  operatorState,
  reducingState,
  valueState,
} from '../../lib/state/states.ts'
import type { KeyedStream, Stream } from '../../lib/topology/stream.ts'
import { Topology } from '../../lib/topology/topology.ts'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Value<S> = S extends Stream<infer T> ? T : never
type KeyOf<S> = S extends KeyedStream<infer _T, infer K> ? K : never
const check = <_T extends true>(): void => undefined

interface Trip {
  readonly driver: string
  readonly day: string
  readonly km: number
}
interface Alert {
  readonly driver: string
}

/** Streams of a topology of their own, so that names may be taken again. */
const trips = () => new Topology('types').source('trips', text()).map((line): Trip => JSON.parse(line) as Trip)
const byDriver = () => trips().keyBy('by-driver', (trip) => trip.driver)
const ttl = { by: 'event-time', after: days(1) } as const

test('a keyBy has the type of its key, and its values are as they were', () => {
  const driver = byDriver()
  check<Equal<Value<typeof driver>, Trip>>()
  check<Equal<KeyOf<typeof driver>, string>>()
  const compound = trips().keyBy('compound', (trip) => [trip.driver, trip.day])
  check<Equal<KeyOf<typeof compound>, string[]>>()
  const binary = trips().keyBy('binary', (trip) => Buffer.from(trip.driver) as Uint8Array)
  check<Equal<KeyOf<typeof binary>, Uint8Array>>()
  // @ts-expect-error a number is no key
  trips().keyBy('by-km', (trip) => trip.km)
  // @ts-expect-error a key is not awaited
  trips().keyBy('later', async (trip) => trip.driver)
})

test('a keyBy of a later version has an upcaster for each version before it, the last of which gives its values', () => {
  const key = (trip: Trip) => trip.driver
  const miles = (old: { readonly driver: string; readonly miles: number }) => ({
    driver: old.driver,
    km: old.miles * 1.6,
  })
  const dated = (old: Omit<Trip, 'day'>): Trip => ({ ...old, day: '' })
  trips().keyBy('by-driver', key, { version: 1 })
  trips().keyBy('by-driver', key, { slots: 4, version: 2, upcast: { 1: dated } })
  trips().keyBy('by-driver', key, { version: 3, upcast: { 1: miles, 2: dated } })
  const refused = 'add upcast: {'
  // @ts-expect-error version 2 has no upcaster
  expect(() => trips().keyBy('by-driver', key, { version: 2 })).toThrow(refused)
  // @ts-expect-error version 3 has none for version 2
  expect(() => trips().keyBy('by-driver', key, { version: 3, upcast: { 1: dated } })).toThrow(refused)
  // @ts-expect-error the last upcaster gives no Trip
  trips().keyBy('by-driver', key, { version: 2, upcast: { 1: miles } })
})

test('a step sees its key, its record and a view of each state', () => {
  byDriver().process('all', {
    state: {
      last: valueState<Trip>(),
      recent: listState<Trip>({ atMost: 3 }),
      byDay: mapState<number>(),
      longest: reducingState<number>((a, b) => Math.max(a, b)),
      mean: aggregatingState({
        init: () => ({ count: 0, sum: 0 }),
        add: ({ count, sum }, km: number) => ({ count: count + 1, sum: sum + km }),
        result: ({ count, sum }) => `${sum / count}`,
      }),
      seen: operatorState({ initial: 0, add: (seen, _trip: Trip) => seen + 1 }),
    },
    step: (trip, { key, record, state, sides }) => {
      check<Equal<typeof trip, Trip>>()
      check<Equal<typeof key, string>>()
      check<Equal<typeof record, RecordInfo>>()
      check<Equal<keyof typeof sides, never>>()
      const last = state.last.get()
      const recent = state.recent.get()
      const km = state.byDay.get('x')
      const mean = state.mean.get()
      const seen = state.seen.get()
      check<Equal<typeof last, Trip | undefined>>()
      check<Equal<typeof recent, readonly Trip[]>>()
      check<Equal<typeof km, number | undefined>>()
      check<Equal<typeof mean, string | undefined>>()
      check<Equal<typeof seen, number>>()
      // @ts-expect-error it keeps trips
      state.last.set(7)
      // @ts-expect-error a step reads the state of its slot, it does not write it
      state.seen.set(7)
      // @ts-expect-error there is no such state
      state.other?.get()
    },
  })
})

test('outputs have the type of what a step returns: an array, a generator, any iterable, or nothing', () => {
  const state = { last: valueState<Trip>() }
  const listed = byDriver().process('listed', { state, step: (trip) => [trip.km] })
  const generated = byDriver().process('generated', {
    state,
    *step(trip, { key }) {
      if (trip.km > 9) return
      yield { key, km: trip.km }
    },
  })
  const some = byDriver().process('some', {
    state,
    step: (trip, { state }) => {
      if (state.last.get() !== undefined) return
      state.last.set(trip)
      return [trip]
    },
  })
  const set = byDriver().process('set', { state, step: (trip) => new Set([trip.day]) })
  const none = byDriver().process('none', { state, step: (trip, { state }) => state.last.set(trip) })
  check<Equal<Value<typeof listed>, number>>()
  check<Equal<KeyOf<typeof listed>, string>>()
  check<Equal<Value<typeof generated>, { key: string; km: number }>>()
  check<Equal<Value<typeof some>, Trip>>()
  check<Equal<Value<typeof set>, string>>()
  check<Equal<Value<typeof none>, never>>()
})

test('a step is synchronous, and its outputs are a list', () => {
  const state = { last: valueState<Trip>() }
  // @ts-expect-error a step returns no promise
  byDriver().process('promise', { state, step: async (trip) => [trip] })
  // @ts-expect-error nor a promise of nothing
  byDriver().process('nothing', { state, step: async () => undefined })
  byDriver().process('generator', {
    state,
    // @ts-expect-error nor what would have to be awaited
    async *step(trip) {
      yield trip
    },
  })
  // @ts-expect-error text is no list of its letters
  byDriver().process('text', { state, step: (trip) => trip.day })
  // @ts-expect-error one value is no list
  byDriver().process('one', { state, step: (trip) => trip })
})

test('a process without state is none', () => {
  // @ts-expect-error it declares no state
  expect(() => byDriver().process('stateless', { step: () => [] })).toThrow('declares no state')
})

test('side outputs are streams of their types', () => {
  const processed = byDriver().process('alerting', {
    state: { last: valueState<Trip>() },
    sides: { alerts: sideOutput<Alert>(), days: sideOutput<string>() },
    step: (trip, { sides }) => {
      sides.alerts.emit({ driver: trip.driver })
      sides.days.emit(trip.day)
      // @ts-expect-error an alert names a driver
      sides.alerts.emit({ km: trip.km })
      // @ts-expect-error there is no such side
      expect(() => sides.others.emit(trip)).toThrow()
      return [trip.km]
    },
  })
  check<Equal<Value<typeof processed>, number>>()
  check<Equal<Value<typeof processed.sides.alerts>, Alert>>()
  check<Equal<Value<typeof processed.sides.days>, string>>()
  // @ts-expect-error there is no such side
  expect(processed.sides.others).toBeUndefined()
})

test('prefetch names entries of map states', () => {
  const state = { last: valueState<Trip>(), byDay: mapState<number>() }
  byDriver().process('prefetched', { state, prefetch: (trip) => ({ byDay: [trip.day] }), step: () => [] })
  // @ts-expect-error an entry's name is text
  byDriver().process('numbers', { state, prefetch: (trip) => ({ byDay: [trip.km] }), step: () => [] })
  // @ts-expect-error text is no list of names
  byDriver().process('letters', { state, prefetch: (trip) => ({ byDay: trip.day }), step: () => [] })
  // @ts-expect-error it has no entries
  byDriver().process('values', { state, prefetch: (trip) => ({ last: [trip.day] }), step: () => [] })
})

test('an aggregate hands on its result, of the same key', () => {
  const mean = { init: () => 0, add: (sum: number, trip: Trip) => sum + trip.km, result: (sum: number) => `${sum}` }
  const written = byDriver().aggregate('mean', mean, { emit: 'per-batch', ttl })
  check<Equal<Value<typeof written>, string>>()
  check<Equal<KeyOf<typeof written>, string>>()
  const inferred = byDriver().aggregate(
    'inferred',
    {
      init: () => ({ count: 0 }),
      add: ({ count }, trip) => ({ count: count + trip.km }),
      result: ({ count }) => count,
    },
    { emit: 'on-update', version: 2, upcast: { 1: (old: number) => ({ count: old }) } },
  )
  check<Equal<Value<typeof inferred>, number>>()
  // @ts-expect-error emit has no default
  expect(() => byDriver().aggregate('silent', mean, {})).toThrow('emit')
  // @ts-expect-error emit is one of two words
  expect(() => byDriver().aggregate('close', mean, { emit: 'on-close' })).toThrow('emit')
  // @ts-expect-error version 2 needs an upcaster for version 1
  expect(() => byDriver().aggregate('version', mean, { emit: 'on-update', version: 2 })).toThrow('upcaster')
  // @ts-expect-error an accumulator is not awaited
  byDriver().aggregate('later', { ...mean, add: async (sum: number) => sum }, { emit: 'on-update' })
})

test('a reduce keeps the type of its values', () => {
  const longest = byDriver().reduce('longest', (a, b) => (b.km > a.km ? b : a), { emit: 'on-update', ttl })
  check<Equal<Value<typeof longest>, Trip>>()
  check<Equal<KeyOf<typeof longest>, string>>()
  // @ts-expect-error emit has no default
  expect(() => byDriver().reduce('silent', (a) => a, {})).toThrow('emit')
  // @ts-expect-error it reduces trips to a trip
  byDriver().reduce('number', (a, b) => a.km + b.km, { emit: 'on-update' })
  // @ts-expect-error what it reduces to is not awaited
  byDriver().reduce('later', async (a) => a, { emit: 'on-update' })
})

test('a deduplicate keeps the type of its values, and says for how long it remembers', () => {
  const once = byDriver().deduplicate('once', { ttl, by: (trip) => trip.day })
  check<Equal<Value<typeof once>, Trip>>()
  check<Equal<KeyOf<typeof once>, string>>()
  // @ts-expect-error ttl has no default
  expect(() => byDriver().deduplicate('for-ever', {})).toThrow('has no ttl')
  // @ts-expect-error by what time has no default
  expect(() => byDriver().deduplicate('by', { ttl: { after: hours(1) } })).toThrow('by "undefined"')
  // @ts-expect-error an identity is text
  byDriver().deduplicate('numbers', { ttl, by: (trip) => trip.km })
})

test('a step without state gives a plain stream, which keeps no state by key', () => {
  const mapped = byDriver().map((trip) => trip.km)
  check<Equal<typeof mapped, Stream<number>>>()
  // @ts-expect-error a plain stream has no key
  expect(mapped.process).toBeUndefined()
  // @ts-expect-error nor has a filtered one
  expect(byDriver().filter((trip) => trip.km > 9).reduce).toBeUndefined()
  const chained = byDriver()
    .deduplicate('once', { ttl })
    .reduce('sum', (a, b) => ({ ...a, km: a.km + b.km }), { emit: 'on-update' })
  check<Equal<typeof chained, KeyedStream<Trip, string>>>()
})
