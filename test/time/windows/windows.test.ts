import fc from 'fast-check'
import { hours, milliseconds, minutes } from '../../../lib/core/duration.ts'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import { calendarDays } from '../../../lib/time/windows/calendar-days.ts'
import { countWindow } from '../../../lib/time/windows/count-window.ts'
import { hopping, tumbling } from '../../../lib/time/windows/hopping.ts'
import { session } from '../../../lib/time/windows/session.ts'
import { sliding } from '../../../lib/time/windows/sliding.ts'
import type { SlicedWindows } from '../../../lib/time/windows/window.ts'

const grace = milliseconds(0)
const ms = milliseconds

/** Every window that holds the time, by what the assigner says of its slice. */
function windowsOf(windows: SlicedWindows, timeMs: number): [number, number][] {
  const startMs = windows.sliceOf(timeMs)
  const slice = { startMs, fromEndMs: windows.firstEndOf(startMs) }
  return windows
    .endsOf([slice], windows.firstEndOf(startMs), windows.lastEndOf(startMs))
    .map((endMs) => [windows.startOf(endMs, [slice]), endMs])
}

describe('C08: arithmetic', () => {
  test('tumbling, before 1970 and at the edges', () => {
    const windows = tumbling(ms(60_000), { grace })
    expect(windowsOf(windows, -1)).toEqual([[-60_000, 0]])
    expect(windowsOf(windows, -60_000)).toEqual([[-60_000, 0]])
    expect(windowsOf(windows, -60_001)).toEqual([[-120_000, -60_000]])
    expect(windowsOf(windows, 0)).toEqual([[0, 60_000]])
    expect(windowsOf(windows, 59_999)).toEqual([[0, 60_000]])
    expect(Object.is(windows.sliceOf(-0), 0)).toBe(true)
  })

  test.each<[number, [number, number][]]>([
    [
      9,
      [
        [0, 10],
        [4, 14],
        [8, 18],
      ],
    ],
    [
      10,
      [
        [4, 14],
        [8, 18],
      ],
    ],
    [
      12,
      [
        [4, 14],
        [8, 18],
        [12, 22],
      ],
    ],
    [
      -1,
      [
        [-8, 2],
        [-4, 6],
      ],
    ],
  ])('hopping 10 by 4 at %d', (timeMs, expected) => {
    expect(windowsOf(hopping(ms(10), { every: ms(4), grace }), timeMs)).toEqual(expected)
  })

  test('every time is in just the windows that hold it, whatever size and step', () => {
    const lengths = fc.integer({ min: 1, max: 40 })
    fc.assert(
      fc.property(lengths, lengths, fc.integer({ min: -500, max: 500 }), (a, b, timeMs) => {
        const [sizeMs, everyMs] = [Math.max(a, b), Math.min(a, b)]
        const expected: [number, number][] = []
        for (let startMs = -1_000 * everyMs; startMs <= timeMs; startMs += everyMs) {
          if (startMs + sizeMs > timeMs) expected.push([startMs, startMs + sizeMs])
        }
        expect(windowsOf(hopping(ms(sizeMs), { every: ms(everyMs), grace }), timeMs)).toEqual(expected)
      }),
    )
  })
})

test('hopping keeps one slice for all times that share their windows', () => {
  const windows = hopping(minutes(60), { every: minutes(1), grace })
  expect([0, 1, 59_999, 60_000].map((t) => windows.sliceOf(t))).toEqual([0, 0, 0, 60_000])
})

test('sliding has a window that ends with a record, and one that begins behind it where there is another', () => {
  const windows = sliding(ms(10), { grace })
  const slices = [3, 12].map((startMs) => ({ startMs, fromEndMs: startMs + 1 }))
  const ends = windows.endsOf(slices, -100, 100)
  expect(ends.map((endMs) => [windows.startOf(endMs, slices), endMs])).toEqual([
    [-6, 4],
    [3, 13],
    [4, 14],
  ])
  expect([-100, 4, 13, 14].map((after) => windows.nextEnd(slices, after))).toEqual([4, 13, 14, undefined])
})

const utc = (iso: string): number => Date.parse(iso)

describe('calendar days', () => {
  test.each<[what: string, zone: string, at: string, start: string, end: string, hours: number]>([
    ['UTC', 'UTC', '1969-12-31T23:59:59.999Z', '1969-12-31T00:00Z', '1970-01-01T00:00Z', 24],
    ['forward in Berlin', 'Europe/Berlin', '2026-03-29T01:30Z', '2026-03-28T23:00Z', '2026-03-29T22:00Z', 23],
    ['back in Berlin', 'Europe/Berlin', '2026-10-25T00:30Z', '2026-10-24T22:00Z', '2026-10-25T23:00Z', 25],
    ['forward in New York', 'America/New_York', '2026-03-08T07:00Z', '2026-03-08T05:00Z', '2026-03-09T04:00Z', 23],
    ['back in New York', 'America/New_York', '2026-11-01T05:30Z', '2026-11-01T04:00Z', '2026-11-02T05:00Z', 25],
    [
      'half an hour on Lord Howe',
      'Australia/Lord_Howe',
      '2026-04-05T00:00Z',
      '2026-04-04T13:00Z',
      '2026-04-05T13:30Z',
      24.5,
    ],
    [
      'no midnight in Sao Paulo',
      'America/Sao_Paulo',
      '2018-11-04T12:00Z',
      '2018-11-04T03:00Z',
      '2018-11-05T02:00Z',
      23,
    ],
    ['midnight twice in Havana', 'America/Havana', '2026-11-01T05:30Z', '2026-11-01T04:00Z', '2026-11-02T05:00Z', 25],
    ['no midnight in Cairo', 'Africa/Cairo', '2026-04-24T12:00Z', '2026-04-23T22:00Z', '2026-04-24T21:00Z', 23],
    [
      'back over midnight in St. John’s',
      'America/St_Johns',
      '2006-10-29T03:00Z',
      '2006-10-29T02:30Z',
      '2006-10-30T03:30Z',
      25,
    ],
    [
      'the day before Samoa crossed the date line',
      'Pacific/Apia',
      '2011-12-30T09:59Z',
      '2011-12-29T10:00Z',
      '2011-12-30T10:00Z',
      24,
    ],
    ['the day after', 'Pacific/Apia', '2011-12-30T10:00Z', '2011-12-30T10:00Z', '2011-12-31T10:00Z', 24],
    ['Kathmandu', 'Asia/Kathmandu', '2026-01-01T18:15Z', '2026-01-01T18:15Z', '2026-01-02T18:15Z', 24],
    [
      'local mean time, long ago',
      'Europe/Berlin',
      '1880-06-01T12:00Z',
      '1880-05-31T23:06:32Z',
      '1880-06-01T23:06:32Z',
      24,
    ],
  ])('%s', (_what, zone, at, start, end, length) => {
    const windows = calendarDays(zone, { grace })
    const [day] = windowsOf(windows, utc(at))
    expect(day?.map((time) => new Date(time).toISOString())).toEqual(
      [start, end].map((time) => new Date(utc(time)).toISOString()),
    )
    expect((utc(end) - utc(start)) / 3_600_000).toBe(length)
    // Half-open: its first and its last ms are in it, the next one is not.
    expect(windowsOf(windows, utc(start))).toEqual([day])
    expect(windowsOf(windows, utc(end) - 1)).toEqual([day])
    expect(windowsOf(windows, utc(end))[0]?.[0]).toBe(utc(end))
  })

  test('the days of a year leave no gap, wherever a year has changes', () => {
    for (const [zone, from] of [
      ['Europe/Lisbon', '2026-01-01T00:00Z'],
      ['America/Santiago', '2026-01-01T03:00Z'],
      ['Asia/Beirut', '2025-12-31T22:00Z'],
      ['America/St_Johns', '2006-01-01T03:30Z'],
    ] as const) {
      const windows = calendarDays(zone, { grace })
      let startMs = utc(from)
      for (let day = 0; day < 365; day += 1) {
        const [bounds] = windowsOf(windows, startMs)
        expect(bounds?.[0]).toBe(startMs)
        startMs = bounds?.[1] ?? Number.NaN
      }
      expect(new Date(startMs).toISOString().slice(0, 4)).not.toBe(from.slice(0, 4) === '2006' ? '2006' : '2025')
    }
  })
})

test('a session ends the gap behind its last record, at the latest at a multiple of the longest', () => {
  expect(session(ms(10), { grace }).endOf(7)).toBe(17)
  const cut = session(ms(10), { grace, longest: ms(20) })
  expect([7, 12, 19, 20, -1].map((last) => cut.endOf(last))).toEqual([17, 20, 20, 30, 0])
})

describe('refused where it is defined', () => {
  const length = (value: number) => ({ ms: value })
  const bad: unknown[] = [length(0), length(-5), length(Number.NaN), length(1.5), undefined, 5]
  test.each<[string, (duration: never) => unknown]>([
    ['tumbling: the size', (d) => tumbling(d, { grace })],
    ['hopping: the size', (d) => hopping(d, { every: ms(1), grace })],
    ['hopping: the step `every`', (d) => hopping(ms(5), { every: d, grace })],
    ['sliding: the size', (d) => sliding(d, { grace })],
    ['session: the gap', (d) => session(d, { grace })],
  ])('%s that is no length', (what, make) => {
    for (const duration of bad) {
      expect(() => make(duration as never)).toThrow(ConfigurationError)
      expect(() => make(duration as never)).toThrow(what)
    }
  })

  test.each<[string, (options: never) => unknown]>([
    ['tumbling', (options) => tumbling(ms(5), options)],
    ['hopping', (options) => hopping(ms(5), { every: ms(5), ...(options as object) } as never)],
    ['sliding', (options) => sliding(ms(5), options)],
    ['session', (options) => session(ms(5), options)],
    ['calendarDays', (options) => calendarDays('UTC', options)],
  ])('%s without a grace, or with one below 0', (what, make) => {
    for (const options of [{}, undefined, { grace: length(-1) }, { grace: length(Number.NaN) }]) {
      expect(() => make(options as never)).toThrow(`${what}: the grace is`)
    }
  })

  test.each<[string, () => unknown]>([
    ['hopping: a window of 5 ms every 6 ms leaves records out', () => hopping(ms(5), { every: ms(6), grace })],
    ['the longest session is 5 ms and its gap 6 ms', () => session(ms(6), { grace, longest: ms(5) })],
    ['"Mars/Olympus" is no time zone', () => calendarDays('Mars/Olympus', { grace })],
    ['"" is no time zone', () => calendarDays('', { grace })],
    ['undefined is no time zone', () => calendarDays(undefined as never, { grace })],
    ['countWindow(0)', () => countWindow(0)],
    ['countWindow(2.5)', () => countWindow(2.5)],
  ])('%s', (message, make) => {
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(message)
  })
})

test('an hour is not taken for a ms', () => {
  expect(tumbling(hours(1), { grace: minutes(2) })).toMatchObject({ graceMs: 120_000, label: 'tumbling(3600000 ms)' })
})
