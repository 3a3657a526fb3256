import { SlidingWindows, slidingOf } from '../../../lib/testing/simulator/sliding-oracle.ts'
import { timedApplication } from '../../../lib/testing/simulator/timed-application.ts'
import type { Timed } from '../../../lib/testing/simulator/timed-oracle.ts'
import {
  moreWindows,
  otherWindows,
  slidingWindows,
  type WindowOutput,
  type WindowSpec,
} from '../../../lib/testing/simulator/timed-workload.ts'

const spec: WindowSpec = { name: 's', everyMs: undefined, slides: true, sizeMs: 10, graceMs: 5, emit: 'on-close' }

const hit = (eventTimeMs: number, ownMarkMs = Number.NEGATIVE_INFINITY): Timed => ({
  eventTimeMs,
  ownMarkMs,
  cents: 1,
  value: { eventTimeMs },
})

function played(windows: WindowSpec) {
  const put: string[] = []
  const into = (sink: string, value: object) => {
    const { startMs, endMs, revision, count } = value as WindowOutput
    put.push(sink === windows.name ? `[${startMs}, ${endMs}) ${count} #${revision}` : sink)
  }
  return { put, into, oracle: new SlidingWindows(windows, 'a') }
}

test('each record has the window that ends with it, and the one behind it where that holds any', () => {
  const records = [3, 12].map((eventTimeMs) => ({ eventTimeMs, cents: eventTimeMs, overMs: Number.NEGATIVE_INFINITY }))
  expect(slidingOf(records, 10)).toEqual([
    { startMs: -6, endMs: 4, count: 1, cents: 3 },
    { startMs: 3, endMs: 13, count: 2, cents: 15 },
    { startMs: 4, endMs: 14, count: 1, cents: 12 },
  ])
})

test('a record is in no window that was over when it came, and late where all of its windows were', () => {
  const { put, into, oracle } = played(spec)
  oracle.take(hit(3), 0, into)
  oracle.take(hit(1, 10), 0, into)
  oracle.take(hit(0, 16), 0, into)
  expect(put).toEqual(['s-late'])
  oracle.fire(30, into)
  // The record at 1 is not in the window that ends at 4, and the one that ends with it is not there.
  expect(put.slice(1)).toEqual(['[-6, 4) 1 #0', '[2, 12) 1 #0'])
})

test('within grace a record revises the windows that it is in, and its own make new ones', () => {
  const { put, into, oracle } = played(spec)
  oracle.take(hit(3), 0, into)
  oracle.fire(4, into)
  oracle.take(hit(1), 4, into)
  expect(put).toEqual(['[-6, 4) 1 #0', '[-8, 2) 1 #0', '[-6, 4) 2 #1'])
})

test('a final window comes once its grace has passed', () => {
  const { put, into, oracle } = played({ ...spec, emit: 'final' })
  oracle.take(hit(3), 0, into)
  oracle.fire(8, into)
  expect(put).toEqual([])
  oracle.fire(9, into)
  oracle.fire(20, into)
  expect(put).toEqual(['[-6, 4) 1 #0'])
})

test('every kind of windows is in some source', () => {
  const variant = {
    hasThirdStage: false,
    hasBriefs: false,
    changes: { operator: false, sink: false, stage: false },
    mixesReleases: false,
    kill: () => undefined,
  }
  const names = new Set<string>()
  for (let source = 0; source < 120; source++) {
    const { built } = timedApplication(source, 0, variant)
    if (built.kind === 'timed') for (const { name } of built.windows) names.add(name)
  }
  const all = [...otherWindows, ...moreWindows, ...slidingWindows].map(({ name }) => name)
  expect(all.filter((name) => !names.has(name))).toEqual([])
})
