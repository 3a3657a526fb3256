import fc from 'fast-check'
import { ConfigurationError, TerminalError } from '../../lib/core/errors.ts'
import { type EventTime, epochMs, epochSeconds, isoTime } from '../../lib/time/event-time.ts'

const same = <T>(value: T): T => value

function refusal<T>(extractor: EventTime<T>, value: T): string | undefined {
  try {
    extractor.extract(value)
  } catch (error) {
    expect(error).toBeInstanceOf(TerminalError)
    return (error as TerminalError).code
  }
  return undefined
}

describe('numbers', () => {
  test('keep the instant that they name in their unit', () => {
    expect(epochMs<number>(same).extract(1671562498449)).toBe(1671562498449)
    expect(epochSeconds<number>(same).extract(1671562498.449)).toBe(1671562498449)
    expect(epochSeconds<number>(same).extract(1671562498)).toBe(1671562498000)
  })

  test('fractions of a millisecond are cut, not rounded', () => {
    expect(epochMs<number>(same).extract(1671562498449.9)).toBe(1671562498449)
    expect(epochSeconds<number>(same).extract(1671562498.4499)).toBe(1671562498449)
  })

  test.each([
    ['seconds read as ms', epochMs<number>(same), 1671562498],
    ['ms read as seconds', epochSeconds<number>(same), 1671562498449],
    ['.NET ticks', epochMs<number>(same), 637000000000000000],
    ['zero', epochMs<number>(same), 0],
    ['a negative number', epochSeconds<number>(same), -1],
  ])('%s is implausible', (_what, extractor, value) => {
    expect(refusal(extractor, value)).toBe('event-time-implausible')
  })

  test.each([
    ['NaN', epochMs<number>(same), Number.NaN],
    ['Infinity', epochMs<number>(same), Number.POSITIVE_INFINITY],
    ['text', epochMs<number>(same), '1671562498449' as unknown as number],
    ['a BigInt', epochMs<number>(same), 1671562498449n as unknown as number],
    ['an object', epochMs<number>(same), {} as unknown as number],
  ])('%s is no time at all', (_what, extractor, value) => {
    expect(refusal(extractor, value)).toBe('event-time-unreadable')
  })

  test('the message says which way the unit is wrong', () => {
    expect(() => epochMs<number>(same).extract(1671562498)).toThrow('seconds read as ms?')
    expect(() => epochSeconds<number>(same).extract(1671562498449)).toThrow('ms read as seconds?')
  })

  test.each([undefined, null])('%p says that there is none', (value) => {
    expect(refusal(epochMs<number | undefined | null>(same), value)).toBe('event-time-missing')
    expect(refusal(epochSeconds<number | undefined | null>(same), value)).toBe('event-time-missing')
    expect(refusal(isoTime<string | undefined | null>(same), value)).toBe('event-time-missing')
  })

  test('whole milliseconds come back unchanged over the whole declared range, in either unit', () => {
    const range = { from: '0001-01-01', before: '9999-12-31' }
    const instants = fc.integer({
      min: Date.parse('0001-01-01T00:00:00Z'),
      max: Date.parse('9999-12-30T23:59:59.999Z'),
    })
    fc.assert(
      fc.property(instants, (ms) => {
        expect(epochMs<number>(same, range).extract(ms)).toBe(ms)
        expect(epochSeconds<number>(same, range).extract(ms / 1_000)).toBe(ms)
      }),
    )
  })
})

describe('the believed range', () => {
  test('begins with its first day and ends before its last', () => {
    const range = { from: '2020-01-01', before: '2021-01-01' }
    expect(epochMs<number>(same, range).extract(Date.UTC(2020, 0, 1))).toBe(Date.UTC(2020, 0, 1))
    expect(refusal(epochMs<number>(same, range), Date.UTC(2020, 0, 1) - 1)).toBe('event-time-implausible')
    expect(refusal(epochMs<number>(same, range), Date.UTC(2021, 0, 1))).toBe('event-time-implausible')
  })

  test('may lie before 1970', () => {
    const range = { from: '1900-01-01' }
    expect(epochSeconds<number>(same, range).extract(-1.5)).toBe(-1_500)
    expect(isoTime<string>(same, range).extract('1969-12-31T23:59:59.999Z')).toBe(-1)
  })

  test.each([{ from: '2020' }, { from: '2021-02-30' }, { before: 'x' }, { from: '2021-01-01', before: '2021-01-01' }])(
    '%p is a mistake',
    (range) => {
      expect(() => epochMs<number>(same, range)).toThrow(ConfigurationError)
      expect(() => isoTime<string>(same, range)).toThrow(ConfigurationError)
    },
  )
})

describe('ISO text', () => {
  test.each([
    ['2022-12-20T18:54:58.449Z', 1671562498449],
    ['2022-12-20T18:54:58Z', 1671562498000],
    ['2022-12-20T18:54Z', 1671562440000],
    ['2022-12-20 18:54:58+00', 1671562498000],
    ['2022-12-21T00:24:58.449+05:30', 1671562498449],
    ['2022-12-20T15:24:58.449-0330', 1671562498449],
    ['2022-12-20t18:54:58,449123456z', 1671562498449],
    ['2022-12-20T18:54:58.4Z', 1671562498400],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
    ['2000-02-29T23:59:59-12:00', Date.UTC(2000, 2, 1, 11, 59, 59)],
  ])('%s is one instant', (text, ms) => {
    expect(isoTime<string>(same).extract(text)).toBe(ms)
  })

  test.each([
    '2023-02-29T00:00:00Z',
    '2100-02-29T00:00:00Z',
    '2022-13-01T00:00:00Z',
    '2022-00-10T00:00:00Z',
    '2022-04-31T00:00:00Z',
    '2022-12-20T24:00:00Z',
    '2022-12-20T18:60:00Z',
    '2022-12-20T23:59:60Z',
    '2022-12-20T18:54:58+24:00',
    '2022-12-20T18:54:58+05:60',
    '1671562498449',
    'Tue, 20 Dec 2022 18:54:58 GMT',
    '2022-12-20T18:54:58.449Z ',
    '2022-12-20T18:54:58.449Z\n',
    '２022-12-20T18:54:58Z',
    '',
  ])('%j is refused', (text) => {
    expect(refusal(isoTime<string>(same), text)).toBe('event-time-unreadable')
  })

  test('a time that is one, and lies far off, is implausible', () => {
    expect(refusal(isoTime<string>(same), '0085-06-01T00:00:00Z')).toBe('event-time-implausible')
  })

  test('without a zone it is refused, or read as UTC where the source says so', () => {
    expect(refusal(isoTime<string>(same), '2022-12-20T18:54:58.449')).toBe('event-time-without-zone')
    expect(isoTime<string>(same, { withoutZone: 'utc' }).extract('2022-12-20T18:54:58.449')).toBe(1671562498449)
  })

  test('a first-century year is its own year, where the range allows it', () => {
    const ms = isoTime<string>(same, { from: '0001-01-01' }).extract('0085-06-01T00:00:00Z')
    expect(new Date(ms).toISOString()).toBe('0085-06-01T00:00:00.000Z')
  })

  test('a refusal shows at most 40 characters of the value', () => {
    expect(() => isoTime<string>(same).extract('x'.repeat(1_000))).toThrow(`"${'x'.repeat(40)}" is not ISO 8601`)
  })

  test('agrees with Date.parse wherever both read a zoned time', () => {
    const two = (max: number) => fc.integer({ min: 0, max }).map((n) => String(n).padStart(2, '0'))
    const zone = fc.oneof(
      fc.constant('Z'),
      fc.tuple(fc.constantFrom('+', '-'), two(14), two(59)).map(([s, h, m]) => `${s}${h}:${m}`),
    )
    const date = fc.date({ min: new Date('1980-01-02'), max: new Date('2199-12-30'), noInvalidDate: true })
    const texts = fc.tuple(date, zone).map(([day, end]) => day.toISOString().replace('Z', end))
    fc.assert(fc.property(texts, (text) => expect(isoTime<string>(same).extract(text)).toBe(Date.parse(text))))
  })

  test('reads no day that the calendar has not', () => {
    const day = fc.record({
      y: fc.integer({ min: 1980, max: 2199 }),
      m: fc.integer({ min: 0, max: 14 }),
      d: fc.integer({ min: 0, max: 33 }),
    })
    fc.assert(
      fc.property(day, ({ y, m, d }) => {
        const text = `${y}-${String(m).padStart(2, '0')}-${String(d).padStart(2, '0')}T12:00:00Z`
        const exists = m >= 1 && m <= 12 && d >= 1 && d <= new Date(Date.UTC(y, m, 0)).getUTCDate()
        expect(refusal(isoTime<string>(same), text)).toBe(exists ? undefined : 'event-time-unreadable')
      }),
    )
  })
})

test.each([
  ['epochMs', epochMs],
  ['epochSeconds', epochSeconds],
  ['isoTime', isoTime],
])('%s without a function that reads the time is a mistake where it is declared', (name, extractor) => {
  for (const [read, shown] of [
    [undefined, 'undefined'],
    ['at', '"at"'],
    [{}, 'an object'],
  ]) {
    const declare = () => extractor(read as never)
    expect(declare).toThrow(ConfigurationError)
    expect(declare).toThrow(
      `${name} was given ${shown}: give a function that takes the time from a value, such as ${name}(`,
    )
  }
})
