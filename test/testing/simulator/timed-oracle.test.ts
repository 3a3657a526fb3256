import {
  FixedWindows,
  Sessions,
  sessionsOf,
  startsOf,
  type Timed,
} from '../../../lib/testing/simulator/timed-oracle.ts'
import type { WindowSpec } from '../../../lib/testing/simulator/timed-workload.ts'

const hit = (eventTimeMs: number, ownMarkMs = Number.NEGATIVE_INFINITY): Timed => ({
  eventTimeMs,
  ownMarkMs,
  cents: 1,
  value: { eventTimeMs },
})

const outputs = () => {
  const put: string[] = []
  return { put, into: (sink: string, value: object) => void put.push(`${sink} ${JSON.stringify(value)}`) }
}

const tumbling: WindowSpec = { name: 'w', everyMs: 10, sizeMs: 10, graceMs: 5, emit: 'final' }
const session: WindowSpec = { name: 's', everyMs: undefined, sizeMs: 10, graceMs: 5, emit: 'on-close' }

test('a time is in every window that holds it, before 1970 too', () => {
  expect(startsOf(9, { ...tumbling, everyMs: 4 })).toEqual([0, 4, 8])
  expect(startsOf(-1, { ...tumbling, everyMs: 4 })).toEqual([-8, -4])
})

test('a final window comes once its grace has passed, and what comes then is late', () => {
  const { put, into } = outputs()
  const windows = new FixedWindows(tumbling, 'a')
  windows.take(hit(3), 0, into)
  windows.fire(14, into)
  expect(put).toEqual([])
  windows.fire(15, into)
  windows.take(hit(4), 15, into)
  windows.take(hit(5, 15), 0, into)
  expect(put.map((text) => text.slice(0, text.indexOf(' ')))).toEqual(['w', 'w-late', 'w-late'])
})

test('sessions follow from their records in any order, and one that merges away is taken back', () => {
  expect(sessionsOf([hit(17), hit(0), hit(8)], 10)).toEqual([{ startMs: 0, endMs: 27, count: 3, cents: 3 }])
  const { put, into } = outputs()
  const sessions = new Sessions(session, 'a')
  sessions.take(hit(0), 0, into)
  sessions.fire(11, into)
  sessions.take(hit(8), 11, into)
  expect(put).toHaveLength(2)
  expect(put[1]).toContain('"endMs":10,"count":1,"cents":1,"revision":1,"isFinal":true,"isRetracted":true')
})
