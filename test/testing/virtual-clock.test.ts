import { VirtualClock } from '../../lib/testing/virtual-clock.ts'

test('stands still until it is told to move', () => {
  const clock = new VirtualClock(5)
  expect(clock.nowMs()).toBe(5)
  clock.advance(10)
  expect(clock.nowMs()).toBe(15)
  expect(new VirtualClock().nowMs()).toBe(Date.parse('2026-01-01T00:00:00Z'))
})

test('wakes sleepers in the order of their times, and only those that are due', async () => {
  const clock = new VirtualClock()
  const woken: number[] = []
  const sleepers = [30, 10, 20].map(async (ms) => {
    await clock.sleep(ms)
    woken.push(ms)
  })
  expect(clock.nextWakeMs).toBe(10)
  clock.advance(9)
  await Promise.resolve()
  expect(woken).toEqual([])
  clock.advance(11)
  await Promise.all(sleepers.slice(1))
  expect(woken).toEqual([10, 20])
  expect(clock.nextWakeMs).toBe(10)
  clock.advance(10)
  await Promise.all(sleepers)
  expect(clock.nextWakeMs).toBeUndefined()
})

test('a sleep of no length, or under a signal that aborted, is over at once', async () => {
  const clock = new VirtualClock()
  await clock.sleep(0)
  await clock.sleep(-1)
  await clock.sleep(10, AbortSignal.abort())
  expect(clock.nextWakeMs).toBeUndefined()
})

test('an abort ends a sleep and leaves no timer behind', async () => {
  const clock = new VirtualClock()
  const stop = new AbortController()
  const sleep = clock.sleep(10, stop.signal)
  stop.abort()
  await sleep
  expect(clock.nextWakeMs).toBeUndefined()
})

test('a timer rings once, unless it was cancelled, even by another that is due with it', () => {
  const clock = new VirtualClock()
  const rung: string[] = []
  const cancelSecond = (): void => second()
  clock.timer(1, () => {
    rung.push('first')
    cancelSecond()
  })
  const second = clock.timer(2, () => rung.push('second'))
  clock.timer(3, () => rung.push('third'))
  clock.advance(5)
  clock.advance(5)
  expect(rung).toEqual(['first', 'third'])
})
