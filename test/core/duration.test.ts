import { days, hours, milliseconds, minutes, seconds } from '../../lib/core/duration.ts'
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
