/** C11: size 60 s, grace 15 s. When a result comes, and how often. */
import { milliseconds, seconds, tumbling } from '../../lib/index.ts'
import { Windowed } from './windowed.ts'

const second = 1_000
const windows = () => tumbling(seconds(60), { grace: seconds(15) })

test('(i) t = 59 s, then silence: the window is closed by the idle rule', async () => {
  for (const [emit, dueAfterMs] of [
    ['on-close', 1 * second],
    ['final', 16 * second],
  ] as const) {
    const windowed = new Windowed(windows(), { emit })
    await windowed.send([59 * second])
    await windowed.driver.advanceEventTime(milliseconds(dueAfterMs - 1))
    expect(windowed.windows).toEqual([])
    await windowed.driver.advanceEventTime(milliseconds(1))
    expect(windowed.windows).toEqual([[0, 60 * second, 1]])
  }
})

test('(i) by the clock too, as the announcer says it', async () => {
  const windowed = new Windowed(windows())
  await windowed.send([59 * second])
  await windowed.driver.advanceProcessingTime(milliseconds(999))
  expect(windowed.windows).toEqual([])
  await windowed.driver.advanceProcessingTime(milliseconds(1))
  expect(windowed.windows).toEqual([[0, 60 * second, 1]])
})

test('(ii) t = 59, 61, 50 s: 50 counts; nothing final before 75 s, then exactly one', async () => {
  const windowed = new Windowed(windows(), { emit: 'final' })
  await windowed.send([59 * second, 61 * second, 50 * second])
  await windowed.send([74_999])
  await windowed.send([74_999])
  expect(windowed.windows).toEqual([])
  await windowed.driver.advanceEventTime(milliseconds(1))
  expect(windowed.results).toMatchObject([{ window: { startMs: 0 }, revision: 0, isFinal: true, value: { n: 2 } }])
  await windowed.driver.advanceEventTime(seconds(600))
  expect(windowed.windows).toEqual([
    [0, 60 * second, 2],
    [60 * second, 120 * second, 3],
  ])
  expect(windowed.late).toEqual([])
})

test('(ii) at close: one result at 60 s, and a revision for the late one', async () => {
  const windowed = new Windowed(windows())
  for (const time of [59, 61, 61]) await windowed.send([time * second])
  await windowed.send([50 * second])
  await windowed.send([76 * second, 49 * second])
  expect(windowed.results.map(({ revision, value }) => [revision, value.n])).toEqual([
    [0, 1],
    [1, 2],
  ])
  expect(windowed.late).toEqual([49 * second])
})

test('(iii) two partitions, one always empty: it neither blocks for ever nor closes everything', async () => {
  for (const emit of ['on-close', 'final'] as const) {
    const windowed = new Windowed(windows(), { emit })
    await windowed.send([], 'shard-1')
    await windowed.send([59 * second])
    await windowed.driver.advanceEventTime(milliseconds(999))
    expect(windowed.windows).toEqual([])
    await windowed.driver.advanceEventTime(seconds(16))
    expect(windowed.windows).toEqual([[0, 60 * second, 1]])
  }
})

test('(iii) while both have records, the slower one says how far time is', async () => {
  const windowed = new Windowed(windows())
  await windowed.send([10 * second], 'shard-1')
  await windowed.send([59 * second, 200 * second])
  expect(windowed.windows).toEqual([])
  await windowed.send([60 * second, 60 * second], 'shard-1')
  expect(windowed.windows).toEqual([[0, 60 * second, 2]])
})
