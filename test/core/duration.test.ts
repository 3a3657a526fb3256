import { days, hours, milliseconds, minutes, msOf, seconds } from '../../lib/core/duration.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'

test('every unit is said in ms', () => {
  const all = [milliseconds(250), seconds(1.5), minutes(5), hours(1), days(7)].map(({ ms }) => ms)
  expect(all).toEqual([250, 1_500, 300_000, 3_600_000, 604_800_000])
  expect(seconds(0).ms).toBe(0)
})

test.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('seconds(%d) is no length of time', (count) => {
  expect(() => seconds(count)).toThrow(ConfigurationError)
  expect(() => seconds(count)).toThrow(`seconds(${count}) is not a length of time`)
})

describe('an option that takes a length of time', () => {
  const given = (duration: unknown, leastMs: 0 | 1 = 0) => msOf('the gap is', duration as never, leastMs, 'give one.')

  test('is read in ms', () => {
    expect(given(minutes(5))).toBe(300_000)
    expect(given(seconds(0))).toBe(0)
  })

  test.each([
    [5, '5'],
    [undefined, 'undefined'],
    [null, 'null'],
    ['1 m', '"1 m"'],
    [{ ms: Number.NaN }, 'NaN ms'],
    [{ ms: -1 }, '-1 ms'],
    [{ ms: 0.5 }, '0.5 ms'],
    [{ ms: Number.POSITIVE_INFINITY }, 'Infinity ms'],
    [{ ms: '5' }, 'an object without a number of ms'],
  ])('refuses %p', (duration, shown) => {
    expect(() => given(duration)).toThrow(new ConfigurationError(`the gap is ${shown}: give one.`))
  })

  test('may have to be longer than nothing', () => {
    expect(() => given(seconds(0), 1)).toThrow('the gap is 0 ms')
    expect(given(milliseconds(1), 1)).toBe(1)
  })
})
