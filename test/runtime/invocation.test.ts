/** When an invocation is over: by its timers, and by its clock alone in a process that was frozen. */
import { withinDeadline } from '../../lib/runtime/invocation.ts'

const startMs = 1_000
const deadlineMs = 11_000
const marginMs = 2_000

test('once the clock says that the deadline has passed it is over, although no timer has run', async () => {
  let nowMs = startMs
  const clock = { nowMs: () => nowMs, timer: () => () => undefined, sleep: async () => undefined }
  await withinDeadline(clock, deadlineMs, marginMs, async (stop) => {
    nowMs = deadlineMs
    expect([stop.isOver(), stop.signal.aborted]).toEqual([false, false])
    nowMs += 1
    expect(stop.signal.aborted).toBe(false)
    expect([stop.isOver(), stop.signal.aborted]).toEqual([true, true])
  })
})

test('and once the timer has run, whatever the clock says', async () => {
  let ring: () => void = () => undefined
  const timer = (_: number, next: () => void) => {
    ring = next
    return () => undefined
  }
  const clock = { nowMs: () => startMs, timer, sleep: async () => undefined }
  await withinDeadline(clock, deadlineMs, marginMs, async (stop) => {
    expect(stop.isOver()).toBe(false)
    ring()
    expect(stop.isOver()).toBe(true)
  })
})
