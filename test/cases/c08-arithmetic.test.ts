/** C08: windows are half-open and aligned to 1970, before it as after it, all the way through the runner. */
import { hopping, milliseconds, tumbling } from '../../lib/index.ts'
import { Windowed } from './windowed.ts'

const grace = milliseconds(0)
const ms = milliseconds

test('tumbling 60000: -1 and -60000 are both in [-60000, 0)', async () => {
  const windowed = new Windowed(tumbling(ms(60_000), { grace }))
  await windowed.send([-60_000, -1])
  expect(windowed.windows).toEqual([])
  await windowed.driver.advanceEventTime(ms(1))
  expect(windowed.windows).toEqual([[-60_000, 0, 2]])
})

test('tumbling 60000: the ms at both edges', async () => {
  const windowed = new Windowed(tumbling(ms(60_000), { grace }))
  await windowed.send([-60_001, -60_000, -1, 0, 59_999, 60_000])
  await windowed.driver.advanceEventTime(ms(60_000))
  expect(windowed.windows).toEqual([
    [-120_000, -60_000, 1],
    [-60_000, 0, 2],
    [0, 60_000, 2],
    [60_000, 120_000, 1],
  ])
  // They came in order, so the source alone says that none of them is late.
  expect(windowed.late).toEqual([])
})

test.each([
  [9, [0, 4, 8]],
  [10, [4, 8]],
  [12, [4, 8, 12]],
  [-1, [-8, -4]],
])('hopping 10 by 4: %p is in the windows from %p', async (time, starts) => {
  const windows = starts.map((start) => [start, start + 10, 1])
  const updating = new Windowed(hopping(ms(10), { every: ms(4), grace }), { emit: 'on-update' })
  await updating.send([time])
  expect(updating.windows).toEqual(windows)
  const closing = new Windowed(hopping(ms(10), { every: ms(4), grace }))
  await closing.send([time])
  await closing.driver.advanceEventTime(ms(20))
  expect(closing.windows).toEqual(windows)
})

test('a window closes with the ms of its end, not with the one before', async () => {
  const windowed = new Windowed(tumbling(ms(60_000), { grace }))
  await windowed.send([-30_000])
  await windowed.driver.advanceEventTime(ms(29_999))
  expect(windowed.windows).toEqual([])
  await windowed.driver.advanceEventTime(ms(1))
  expect(windowed.windows).toEqual([[-60_000, 0, 1]])
})
