import { milliseconds } from '../../../../lib/core/duration.ts'
import { ConfigurationError } from '../../../../lib/core/errors.ts'
import { count } from '../../../../lib/operators/aggregators/count.ts'
import { sum } from '../../../../lib/operators/aggregators/sum.ts'
import { type Windows, windowed } from '../../../../lib/operators/keyed/window/window.ts'
import type { WindowEmission, WindowResult } from '../../../../lib/operators/keyed/window/window-result.ts'
import { calendarDays } from '../../../../lib/time/windows/calendar-days.ts'
import { countWindow } from '../../../../lib/time/windows/count-window.ts'
import { hopping, tumbling } from '../../../../lib/time/windows/hopping.ts'
import { session } from '../../../../lib/time/windows/session.ts'
import { sliding } from '../../../../lib/time/windows/sliding.ts'
import { TimedWorld } from '../timed-world.ts'

const ms = milliseconds
const grace = (graceMs: number) => ({ grace: ms(graceMs) })

type Result = WindowResult<string, { readonly n: number }>

function world(windows: Windows, emit: WindowEmission): TimedWorld<number, Result> {
  return new TimedWorld<number, Result>(windowed<number>('w', windows, { n: count() }, emit) as never)
}

/** Such as `[0,10) n1 r0 final`. */
function told({ window, revision, isFinal, isRetracted, value }: Result): string {
  const flags = `${isFinal ? ' final' : ''}${isRetracted ? ' retracted' : ''}`
  return `[${window.startMs},${window.endMs}) n${value.n} r${revision}${flags}`
}

describe('tumbling(10), grace 5', () => {
  const windows = tumbling(ms(10), grace(5))

  test('on-close: at the end, then for each late record of the grace; later ones go to the late output', () => {
    const here = world(windows, 'on-close')
    expect(here.take({ value: 1, timeMs: 3 }, 0)).toEqual([])
    expect(here.take({ value: 2, timeMs: 9 }, 9)).toEqual([])
    expect(here.advance(10).map(told)).toEqual(['[0,10) n2 r0'])
    expect(here.take({ value: 3, timeMs: 0 }, 14).map(told)).toEqual(['[0,10) n3 r1'])
    expect(here.take({ value: 4, timeMs: 9 }, 15)).toEqual([])
    expect(here.late).toEqual([4])
    expect(here.stored()).toEqual({})
  })

  test('on-close: a window that began after its end has its first result at once', () => {
    const here = world(windows, 'on-close')
    expect(here.take({ value: 1, timeMs: 3 }, 12).map(told)).toEqual(['[0,10) n1 r0'])
    expect(here.take({ value: 1, timeMs: 3 }, 12).map(told)).toEqual(['[0,10) n2 r1'])
  })

  test('final: once, when the grace has passed', () => {
    const here = world(windows, 'final')
    here.take({ value: 1, timeMs: 3 }, 0)
    expect(here.take({ value: 2, timeMs: 4 }, 14)).toEqual([])
    expect(here.advance(15).map(told)).toEqual(['[0,10) n2 r0 final'])
    expect(here.stored()).toEqual({})
  })

  test('on-update: after each record', () => {
    const here = world(windows, 'on-update')
    expect(here.take({ value: 1, timeMs: 3 }, 0).map(told)).toEqual(['[0,10) n1 r0'])
    expect(here.take({ value: 2, timeMs: 4 }, 12).map(told)).toEqual(['[0,10) n2 r1'])
    expect(here.advance(15)).toEqual([])
    expect(here.stored()).toEqual({})
  })

  test('a result that no other can follow says so', () => {
    const here = world(tumbling(ms(10), grace(0)), 'on-close')
    here.take({ value: 1, timeMs: 3 }, 0)
    expect(here.advance(10).map(told)).toEqual(['[0,10) n1 r0 final'])
  })

  test('late by its own mark, though the watermark is behind', () => {
    const here = world(windows, 'final')
    here.take({ value: 1, timeMs: 3, ownMarkMs: 14 }, 0)
    here.take({ value: 2, timeMs: 3, ownMarkMs: 15 }, 0)
    expect(here.late).toEqual([2])
    expect(here.advance(99).map(told)).toEqual(['[0,10) n1 r0 final'])
  })

  test('a record whose own mark is infinite is late for every window, however far ahead it is', () => {
    const here = world(windows, 'final')
    here.take({ value: 1, timeMs: 1e15, ownMarkMs: Number.POSITIVE_INFINITY }, 0)
    expect(here.late).toEqual([1])
    expect(here.stored()).toEqual({})
  })

  test('results carry their key and, as event time, the last ms of the window', () => {
    const here = world(windows, 'on-close')
    here.take({ key: 'x', value: 1, timeMs: -3 }, -20)
    expect(here.advance(0)).toMatchObject([{ key: 'x', window: { startMs: -10, endMs: 0 } }])
    expect(here.resultTimes).toEqual([-1])
  })

  test('a key waits with one timer, for what is due first', () => {
    const here = world(windows, 'on-close')
    here.take({ value: 1, timeMs: 25 }, 0)
    expect(here.nextTimerMs()).toBe(30)
    here.take({ value: 1, timeMs: 15 }, 0)
    expect(here.nextTimerMs()).toBe(20)
    here.take({ value: 1, timeMs: 15 }, 0)
    here.advance(20)
    expect(here.nextTimerMs()).toBe(30)
    here.advance(30)
    // Nothing is left to put out: it waits for the end of the grace, to forget.
    expect(here.nextTimerMs()).toBe(35)
    here.advance(35)
    expect(here.nextTimerMs()).toBeUndefined()
    expect(here.firings).toBe(3)
  })
})

test('a watermark that passes many windows at once closes them in the order of their ends', () => {
  const here = world(hopping(ms(10), { every: ms(4), ...grace(0) }), 'on-close')
  here.take({ value: 1, timeMs: 9 }, 0)
  here.take({ value: 1, timeMs: 12 }, 0)
  const expected = ['[0,10) n1', '[4,14) n2', '[8,18) n2', '[12,22) n1']
  expect(here.advance(1_000).map(told)).toEqual(expected.map((window) => `${window} r0 final`))
})

test('hopping writes a value once, however many windows it is in', () => {
  const here = world(hopping(ms(60), { every: ms(1), ...grace(0) }), 'on-close')
  here.take({ value: 1, timeMs: 9 }, 0)
  expect(here.stored()).toEqual({ w: { over: null, slices: [[9, 10, { n: 1 }]] } })
  expect(here.advance(1_000)).toHaveLength(60)
})

test('a record that is late for its first windows counts for the others only', () => {
  const here = world(hopping(ms(10), { every: ms(5), ...grace(0) }), 'final')
  here.take({ value: 1, timeMs: 6, ownMarkMs: 0 }, 0)
  // The watermark lags: [0,10) is still open, but for this record it is over.
  here.take({ value: 2, timeMs: 7, ownMarkMs: 12 }, 2)
  expect(here.late).toEqual([])
  expect(here.advance(99).map(told)).toEqual(['[0,10) n1 r0 final', '[5,15) n2 r0 final'])
})

test('sliding: a record that has left a window does not revise it', () => {
  const here = world(sliding(ms(10), grace(50)), 'on-close')
  here.take({ value: 1, timeMs: 3 }, 0)
  here.take({ value: 2, timeMs: 12 }, 0)
  here.advance(20)
  expect(here.results.map(told)).toEqual(['[-6,4) n1 r0', '[3,13) n2 r0', '[4,14) n1 r0'])
  // [4, 14) is there because of what has left it, and holds what it held.
  expect(here.take({ value: 3, timeMs: 3 }).map(told)).toEqual(['[-6,4) n2 r1', '[3,13) n3 r1'])
})

test('calendar days are windows like any other', () => {
  const here = world(calendarDays('Europe/Berlin', grace(0)), 'on-close')
  const [start, end] = [Date.parse('2026-03-28T23:00Z'), Date.parse('2026-03-29T22:00Z')]
  here.take({ value: 1, timeMs: start }, 0)
  here.take({ value: 1, timeMs: end - 1 }, 0)
  here.take({ value: 1, timeMs: end }, 0)
  expect(here.advance(end).map(told)).toEqual([`[${start},${end}) n2 r0 final`])
})

test('a session that is cut has its final result once no record can come that belongs to it: the grace behind its cut', () => {
  const here = world(session(ms(10), { longest: ms(20), ...grace(5) }), 'final')
  here.take({ value: 1, timeMs: 15 }, 0)
  expect(here.advance(24)).toEqual([])
  expect(here.advance(25).map(told)).toEqual(['[15,20) n1 r0 final'])
})

describe('C09: sessions, gap 10', () => {
  test('(i) in every order, with a grace of 100: the same sessions; what merged away is taken back once', () => {
    const orders = [
      [0, 8, 18],
      [0, 18, 8],
      [8, 0, 18],
      [8, 18, 0],
      [18, 0, 8],
      [18, 8, 0],
    ]
    for (const order of orders) {
      for (const emit of ['on-close', 'on-update', 'final'] as const) {
        const here = world(session(ms(10), grace(100)), emit)
        let watermarkMs = 0
        for (const timeMs of order) {
          here.take({ value: timeMs, timeMs }, watermarkMs)
          watermarkMs = Math.max(watermarkMs, timeMs + 20)
        }
        here.advance(1_000)
        const left = new Map<string, number>()
        const retracted: string[] = []
        for (const result of here.results) {
          const window = `${result.window.startMs}-${result.window.endMs}`
          if (result.isRetracted) retracted.push(window)
          if (result.isRetracted) left.delete(window)
          else left.set(window, result.value.n)
        }
        // 18 is exactly the gap behind 8: a session of its own.
        expect([...left].sort()).toEqual([
          ['0-18', 2],
          ['18-28', 1],
        ])
        expect(new Set(retracted).size).toBe(retracted.length)
        expect(here.late).toEqual([])
      }
    }
  })

  test('(ii) without grace: a@0, b@7, a@3 are one session of a with two records and one final result', () => {
    const here = world(session(ms(10), grace(0)), 'final')
    here.take({ key: 'a', value: 0, timeMs: 0, ownMarkMs: Number.NEGATIVE_INFINITY }, Number.NEGATIVE_INFINITY)
    here.take({ key: 'b', value: 7, timeMs: 7, ownMarkMs: 0 }, 0)
    here.take({ key: 'a', value: 3, timeMs: 3, ownMarkMs: 7 }, 7)
    here.advance(1_000)
    expect(here.results.filter(({ key }) => key === 'a').map(told)).toEqual(['[0,13) n2 r0 final'])
  })

  test('a session stays for as long as a record that is in time could belong to it', () => {
    const late = world(session(ms(10), grace(0)), 'final')
    late.take({ value: 0, timeMs: 0 }, 0)
    // Its end is 10, but one at 9 would be in time until 19.
    expect(late.advance(18)).toEqual([])
    late.take({ value: 9, timeMs: 9 }, 18)
    expect(late.advance(27)).toEqual([])
    late.take({ value: 9, timeMs: 19 }, 27)
    expect(late.late).toEqual([])
    expect(late.advance(1_000).map(told)).toEqual(['[0,19) n2 r0 final', '[19,29) n1 r0 final'])
    const gone = world(session(ms(10), grace(0)), 'final')
    gone.take({ value: 0, timeMs: 0 }, 0)
    expect(gone.advance(19).map(told)).toEqual(['[0,10) n1 r0 final'])
    gone.take({ value: 9, timeMs: 9 }, 19)
    expect(gone.late).toEqual([9])
  })

  test('what was put out and changes its bounds is taken back with the value it had', () => {
    const here = world(session(ms(10), grace(100)), 'on-close')
    here.take({ value: 0, timeMs: 0 }, 0)
    here.take({ value: 0, timeMs: 15 }, 0)
    expect(here.advance(30).map(told)).toEqual(['[0,10) n1 r0', '[15,25) n1 r0'])
    expect(here.take({ value: 0, timeMs: 7 }).map(told)).toEqual([
      '[0,10) n1 r1 final retracted',
      '[15,25) n1 r1 final retracted',
      '[0,25) n3 r0',
    ])
    expect(here.take({ value: 0, timeMs: 7 }).map(told)).toEqual(['[0,25) n4 r1'])
  })

  test('a session that goes on and on is cut at multiples of the longest', () => {
    const here = world(session(ms(10), { ...grace(0), longest: ms(20) }), 'final')
    for (const timeMs of [15, 19, 21, 30, 39, 45]) here.take({ value: 0, timeMs }, 0)
    const expected = ['[15,20) n2', '[21,40) n3', '[45,55) n1']
    expect(here.advance(1_000).map(told)).toEqual(expected.map((window) => `${window} r0 final`))
  })

  test('a key whose session grows with every record does not move its timer each time', () => {
    const here = world(session(ms(10), grace(0)), 'final')
    for (let timeMs = 0; timeMs < 100; timeMs += 5) {
      here.take({ value: 0, timeMs }, timeMs - 20)
    }
    expect(here.firings).toBeLessThan(6)
    expect(here.advance(1_000).map(told)).toEqual(['[0,105) n20 r0 final'])
  })
})

describe('C11: final results, size 60 s, grace 15 s', () => {
  test('(ii) 59, 61, 50: 50 counts; nothing final before 75 s, then exactly one', () => {
    const here = world(tumbling(ms(60_000), grace(15_000)), 'final')
    here.take({ value: 59, timeMs: 59_000, ownMarkMs: Number.NEGATIVE_INFINITY }, Number.NEGATIVE_INFINITY)
    here.take({ value: 61, timeMs: 61_000, ownMarkMs: 59_000 }, 59_000)
    here.take({ value: 50, timeMs: 50_000, ownMarkMs: 61_000 }, 61_000)
    expect(here.advance(74_999)).toEqual([])
    expect(here.advance(75_000).map(told)).toEqual(['[0,60000) n2 r0 final'])
  })
})

describe('count windows', () => {
  test('close with their last record, with the bounds of their times; nothing is late', () => {
    const here = world(countWindow(3), 'on-close')
    here.take({ value: 1, timeMs: 50 }, 1_000)
    here.take({ value: 1, timeMs: -7 }, 1_000)
    expect(here.stored()).toEqual({ w: [2, -7, 50, { n: 2 }] })
    expect(here.take({ value: 1, timeMs: 9 }).map(told)).toEqual(['[-7,51) n3 r0 final'])
    expect(here.stored()).toEqual({})
    expect(here.nextTimerMs()).toBeUndefined()
  })

  describe('with records beyond the skew limit, whose own mark is the end of all time', () => {
    const rogue = { value: 1, timeMs: 1e15, ownMarkMs: Number.POSITIVE_INFINITY }

    test('count them, and leave their times out of the bounds', () => {
      for (const at of [0, 1, 2]) {
        const here = world(countWindow(3), 'on-close')
        const records = [
          { value: 1, timeMs: 5 },
          { value: 1, timeMs: 9 },
        ].toSpliced(at, 0, rogue)
        expect(records.flatMap((record) => here.take(record, 0)).map(told)).toEqual(['[5,10) n3 r0 final'])
        expect(here.resultTimes).toEqual([9])
      }
    })

    test('keep what they have counted where none has come whose time counts', () => {
      const here = world(countWindow(3), 'on-close')
      here.take(rogue, 0)
      expect(here.stored()).toEqual({ w: [1, null, null, { n: 1 }] })
    })

    test('have the bounds of the last one where all are such', () => {
      const here = world(countWindow(2), 'on-close')
      const results = [{ ...rogue, timeMs: 2e15 }, rogue].flatMap((record) => here.take(record, 0))
      expect(results.map(told)).toEqual(['[1000000000000000,1000000000000001) n2 r0 final'])
    })
  })
})

test('a window that cannot be put out at its end is tried again once, before it is forgotten, and no other is given up with it', () => {
  for (const windows of [tumbling(ms(10), grace(100)), hopping(ms(10), { every: ms(5), ...grace(100) })]) {
    let throws = 0
    const ofOne = {
      ...{ init: () => 0, add: (n: number) => n + 1, merge: (a: number, b: number) => a + b },
      result(n: number) {
        if (n !== 2) return n
        throws += 1
        throw new Error('two')
      },
    }
    const operator = windowed<number>('w', windows, ofOne, 'on-close')
    const here = new TimedWorld<number, WindowResult<string, number>>(operator as never, { givesUp: true })
    for (const timeMs of [6, 7, 22, 41]) here.take({ value: 0, timeMs }, 0)
    const ended = windows.kind === 'hopping' ? [25, 30, 45, 50] : [30, 50]
    expect(here.advance(99).map(({ window }) => window.endMs)).toEqual(ended)
    const before = throws
    expect(here.advance(1_000)).toEqual([])
    expect([before, throws]).toEqual(windows.kind === 'hopping' ? [2, 3] : [1, 2])
    expect(here.stored()).toEqual({})
  }
})

test('a firing that is given up puts nothing out, and what is due later is not lost with it', () => {
  for (const windows of [tumbling(ms(10), grace(0)), session(ms(10), grace(0))]) {
    const poison = { init: () => 0, add: (n: number) => n + 1, merge: (a: number, b: number) => a + b }
    const result = (n: number) => {
      if (n === 2) throw new Error('two')
      return n
    }
    const operator = windowed<number>(
      'w',
      windows,
      { n: { ...poison, result, encode: (n: number) => n, decode: (n: never) => n } as never },
      'final',
    )
    const here = new TimedWorld<number, Result>(operator as never, { givesUp: true })
    for (const timeMs of [1, 2, 41]) here.take({ value: 0, timeMs }, 0)
    here.advance(1_000)
    expect(here.results.map(({ value }) => value)).toEqual([{ n: 1 }])
    expect(here.stored()).toEqual({})
  }
})

describe('what it is made of', () => {
  const windows = tumbling(ms(10), grace(5))
  const make =
    (aggregation: unknown, emit: unknown, by: unknown = windows) =>
    () =>
      windowed('w', by as never, aggregation as never, emit as never)

  test('one aggregator, or functions of the user’s, give their result itself', () => {
    const functions = {
      init: () => 0,
      add: (all: number, n: number) => all + n,
      merge: Math.max,
      result: (n: number) => -n,
    }
    for (const [aggregation, expected] of [
      [sum((n: number) => n), 7],
      [functions, -7],
    ] as const) {
      const here = new TimedWorld<number, Result>(
        windowed<number>('w', windows, aggregation as never, 'final') as never,
      )
      for (const value of [3, 4]) here.take({ value, timeMs: 1 }, 0)
      expect(here.advance(99)).toMatchObject([{ value: expected }])
    }
  })

  test.each<[string, () => unknown]>([
    ['window "w" says emit: undefined', make({ n: count() }, undefined)],
    ['window "w" says emit: "per-batch"', make({ n: count() }, 'per-batch')],
    [`window "w" says emit: 'on-update', but the bounds`, make({ n: count() }, 'on-update', countWindow(3))],
    ['window "w" has no aggregator', make({}, 'final')],
    ['window "w" has no aggregator', make(undefined, 'final')],
    ['"n" of window "w" is no aggregator', make({ n: 7 }, 'final')],
    ['window "w" has an aggregator without `merge`', make({ init: () => 0, add: () => 0, result: () => 0 }, 'final')],
    ['window "w" has no windows', make({ n: count() }, 'final', { size: 5 })],
  ])('refuses: %s', (message, build) => {
    expect(build).toThrow(ConfigurationError)
    expect(build).toThrow(message)
  })

  test('it tells the plan and the runtime of its time', () => {
    const traits = (by: Windows, emit: WindowEmission) => windowed('w', by, { n: count() }, emit).window
    expect(traits(windows, 'final')).toMatchObject({ graceMs: 5, emit: 'final', heldBackMs: 5, trailsMs: 0 })
    expect(traits(windows, 'on-close')).toMatchObject({ heldBackMs: 0, trailsMs: 5 })
    expect(traits(session(ms(10), grace(5)), 'final')).toMatchObject({ graceMs: 5, heldBackMs: 14, trailsMs: 0 })
    expect(traits(countWindow(3), 'final')).toMatchObject({ graceMs: 0, heldBackMs: 0, trailsMs: 0, hasLate: false })
  })
})
