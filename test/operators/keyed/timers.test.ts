import { ConfigurationError, TerminalError } from '../../../lib/core/errors.ts'
import { process } from '../../../lib/operators/keyed/process.ts'
import { type SideDeclarations, sideOutput } from '../../../lib/operators/keyed/side-output.ts'
import { eventTimer, processingTimer } from '../../../lib/operators/keyed/timers.ts'
import { valueState } from '../../../lib/state/states.ts'
import { TimedWorld } from './timed-world.ts'

/** A record sets the timer `name` to `at`, clears it where `at` is undefined. */
interface Wish {
  readonly name: 'idle' | 'poll'
  readonly at: number | undefined
}

const wishing = ([idle, poll] = [eventTimer(), processingTimer()]) =>
  process('wishes', {
    state: { fired: valueState<number>() },
    timers: { idle, poll },
    step: ({ name, at }: Wish, { timers }) => {
      const before = timers[name].get()
      if (at === undefined) timers[name].clear()
      else timers[name].set(at)
      return [`${name} was ${before}`]
    },
    onTimer: {
      idle: (timeMs, { key, state, timers }) => {
        const fired = (state.fired.get() ?? 0) + 1
        state.fired.set(fired)
        return [`${key} idle at ${timeMs}, ${fired}, set to ${timers.idle.get()}`]
      },
      poll: (timeMs) => [`poll at ${timeMs}`],
    },
  })

const world = () => new TimedWorld<Wish, string>(wishing() as never)
const wish = (name: 'idle' | 'poll', at: number | undefined) => ({ value: { name, at }, timeMs: 0 })

test('an event timer fires once, when the watermark reaches its time', () => {
  const here = world()
  here.take(wish('idle', 10), 0)
  expect(here.advance(9)).toEqual([])
  expect(here.advance(10)).toEqual(['k idle at 10, 1, set to undefined'])
  expect(here.advance(99)).toEqual([])
  expect(here.resultTimes).toEqual([0, 10])
})

test('a timer of a name is replaced, and can be cleared', () => {
  const here = world()
  here.take(wish('idle', 10), 0)
  expect(here.take(wish('idle', 30), 0)).toEqual(['idle was 10'])
  expect(here.advance(29)).toEqual([])
  expect(here.take(wish('idle', undefined), 29)).toEqual(['idle was 30'])
  expect(here.advance(99)).toEqual([])
})

test('a timer in the past fires within the step, behind the record', () => {
  const here = world()
  expect(here.take(wish('idle', -5), 0)).toEqual(['idle was undefined', 'k idle at -5, 1, set to undefined'])
})

test('a processing-time timer goes by the clock on the wall', () => {
  const here = world()
  here.take(wish('poll', 10), 1_000)
  here.processingMs = 10
  expect(here.take(wish('idle', undefined))).toEqual(['poll at 10', 'idle was undefined'])
})

test('each key has its own, and a fraction of a ms is never too early', () => {
  const here = world()
  here.take({ key: 'b', ...wish('idle', 10) }, 0)
  here.take({ key: 'a', ...wish('idle', 9.5) }, 0)
  expect(here.advance(50)).toEqual(['a idle at 10, 1, set to undefined', 'b idle at 10, 1, set to undefined'])
})

test('a timer may set itself anew, and emit to sides', () => {
  const ticking = process('ticks', {
    state: { n: valueState<number>() },
    sides: { late: sideOutput<string>() } satisfies SideDeclarations,
    timers: { tick: eventTimer() },
    step: (n: number, { state, timers }) => {
      state.n.set(n)
      timers.tick.set(10)
    },
    onTimer: {
      tick: (timeMs, { state, timers, sides }) => {
        const left = (state.n.get() ?? 0) - 1
        state.n.set(left)
        if (left > 0) timers.tick.set(timeMs + 10)
        sides.late.emit(`${left} at ${timeMs}`)
      },
    },
  })
  const here = new TimedWorld<number, string>(ticking as never, { reloads: () => true })
  here.take({ value: 3, timeMs: 0 }, 0)
  here.advance(1_000)
  expect(here.late).toEqual(['2 at 10', '1 at 20', '0 at 30'])
})

test.each([Number.NaN, Number.POSITIVE_INFINITY, '5', undefined, 5n])('%p is no time', (timeMs) => {
  const setting = process('setting', {
    state: { n: valueState<number>() },
    timers: { idle: eventTimer() },
    step: (_n: number, { timers }) => timers.idle.set(timeMs as number),
    onTimer: { idle: () => [] },
  })
  const here = new TimedWorld<number, never>(setting as never)
  expect(() => here.take({ value: 1, timeMs: 0 }, 0)).toThrow(TerminalError)
})

test.each<[string, object]>([
  ['the timer "idle" of process "p" has nothing to do', { timers: { idle: eventTimer() } }],
  ['onTimer of process "p" names "idle", which is no timer of it', { onTimer: { idle: () => [] } }],
  ['the timer "idle" of process "p" is none', { timers: { idle: 5 }, onTimer: { idle: () => [] } }],
  ['"a.b" cannot name a timer of process "p"', { timers: { 'a.b': eventTimer() }, onTimer: { 'a.b': () => [] } }],
])('refuses: %s', (message, parts) => {
  const make = () => process('p', { state: { n: valueState<number>() }, step: () => [], ...parts } as never)
  expect(make).toThrow(ConfigurationError)
  expect(make).toThrow(message)
})

describe('timers that were by event time and are by processing time now, and the other way round', () => {
  const redeployed = () => {
    const before = world()
    before.take(wish('idle', 10), 0)
    before.take(wish('poll', 20), 0)
    return before.redeployed(wishing([processingTimer(), eventTimer()]) as never)
  }

  test('are told and cleared as what they were set to before', () => {
    const here = redeployed()
    expect(here.take(wish('idle', undefined))).toEqual(['idle was 10'])
    expect(here.take(wish('poll', undefined))).toEqual(['poll was 20'])
    here.processingMs = 99
    expect([here.advance(99), here.take(wish('idle', undefined))]).toEqual([[], ['idle was undefined']])
  })

  test('are replaced by what they are set to', () => {
    const here = redeployed()
    expect(here.take(wish('idle', 50))).toEqual(['idle was 10'])
    expect(here.take(wish('poll', 60))).toEqual(['poll was 20'])
    expect(here.take(wish('idle', 50))).toEqual(['idle was 50'])
    expect(here.advance(59)).toEqual([])
    here.processingMs = 50
    expect(here.advance(60)).toEqual(['poll at 60', 'k idle at 50, 1, set to undefined'])
  })

  test('fire by the time that they were set to where nobody sets them anew', () => {
    const here = redeployed()
    here.processingMs = 20
    expect(here.advance(10)).toEqual(['k idle at 10, 1, set to undefined', 'poll at 20'])
  })
})

test('a timer that an earlier release set and this one does not know does nothing', () => {
  const fire = wishing().link(
    () => undefined,
    () => () => undefined,
    {} as never,
  ).fire
  expect(() => fire?.('event-time', 'wishes.gone', 5)).not.toThrow()
})
