/** C09: sessions do not depend on the order in which their records come, nor on how these are cut into batches. */
import { z } from 'zod'
import { count, epochMs, milliseconds, type Stream, session, sum, Topology, tumbling } from '../../lib/index.ts'
import { TestDriver } from '../../lib/testing/index.ts'
import { Windowed } from './windowed.ts'

const gap = milliseconds(10)
const orders = [
  [0, 8, 18],
  [0, 18, 8],
  [8, 0, 18],
  [8, 18, 0],
  [18, 0, 8],
  [18, 8, 0],
]

/** Every way to cut three records into batches. */
const cuts = ([a = 0, b = 0, c = 0]: readonly number[]): readonly (readonly number[])[][] => [
  [[a, b, c]],
  [[a], [b, c]],
  [[a, b], [c]],
  [[a], [b], [c]],
]

describe.each(['on-close', 'on-update', 'final'] as const)('emit %s', (emit) => {
  // A record exactly the gap behind the last one begins a session of its own: that is the rule for those that touch.
  test.each(orders)('(i) grace 100: %p, %p, %p are [0, 18) and [18, 28) in any batches', async (...times) => {
    for (const batches of cuts(times)) {
      const windowed = new Windowed(session(gap, { grace: milliseconds(100) }), { emit })
      for (const batch of batches) await windowed.send(batch)
      await windowed.driver.advanceEventTime(milliseconds(500))
      expect(windowed.kept).toEqual(['k [0, 18): 2', 'k [18, 28): 1'])
      expect(windowed.late).toEqual([])
      expect(retractions(windowed)).toEqual(mergedAway(windowed))
    }
  })
})

test('(i) an interim session that merged away is retracted once, with its old bounds', async () => {
  const windowed = new Windowed(session(gap, { grace: milliseconds(100) }), { emit: 'on-update' })
  await windowed.send([0, 8])
  const told = windowed.results.map(({ window, revision, isRetracted, value }) => {
    return [window.startMs, window.endMs, revision, value.n, isRetracted]
  })
  expect(told).toEqual([
    [0, 10, 0, 1, false],
    [0, 10, 1, 1, true],
    [0, 18, 0, 2, false],
  ])
})

test('(ii) grace 0: a@0, b@7, a@3 is a = [0, 3] with count 2, one final result', async () => {
  for (const emit of ['on-close', 'final'] as const) {
    const windowed = new Windowed(session(gap, { grace: milliseconds(0) }), { emit })
    await windowed.send([
      { key: 'a', t: 0 },
      { key: 'b', t: 7 },
      { key: 'a', t: 3 },
    ])
    await windowed.driver.advanceEventTime(milliseconds(500))
    const ofA = windowed.results.filter(({ key }) => key === 'a')
    expect(ofA.map(({ window, value }) => [window.startMs, window.endMs, value.n])).toEqual([[0, 13, 2]])
    if (emit === 'final') expect(ofA[0]?.isFinal).toBe(true)
    expect(windowed.late).toEqual([])
  }
})

test('final results are in time for windows behind, though a record may come until a gap after its session', async () => {
  const app = new Topology('app')
  const source = app.source('events', z.object({ key: z.string(), t: z.number() }), {
    eventTime: epochMs(({ t }) => t, { from: '1900-01-01' }),
  })
  const [out, late] = [app.sink<number>('out'), app.sink<unknown>('late')]
  const sessions = source
    .keyBy('by-key', ({ key }) => key)
    .window(session(gap, { grace: milliseconds(5) }))
    .aggregate('sessions', { n: count() }, { emit: 'final' })
  const windows = sessions.results
    .keyBy('all', () => 'all')
    .window(tumbling(milliseconds(10), { grace: milliseconds(0) }))
    .aggregate('windows', { n: sum(({ value }) => value.n) }, { emit: 'final' })
  windows.results.map(({ value }) => value.n ?? 0).to(out)
  for (const stream of [sessions.late, windows.late]) (stream as Stream<unknown>).to(late)
  const driver = new TestDriver(app, { nowMs: 0 })
  for (const t of [0, 8]) await driver.send(source, [{ key: 'a', t }])
  // Each moves the watermark by one ms, past the ms in which the session of `a` is settled.
  for (let t = 9; t < 40; t += 1) await driver.send(source, [{ key: 'b', t }])
  for (const _ of orders) await driver.advanceEventTime(milliseconds(100))
  expect(driver.received(late)).toEqual([])
  expect(driver.received(out)).toEqual([2, 31])
})

const nameOf = ({ window }: { readonly window: { readonly startMs: number; readonly endMs: number } }): string =>
  `[${window.startMs}, ${window.endMs})`

/** The bounds that were retracted, each as often as it was. */
const retractions = ({ results }: Windowed): readonly string[] =>
  results
    .filter(({ isRetracted }) => isRetracted)
    .map(nameOf)
    .toSorted()

/** The bounds that were told and are no session in the end. */
const mergedAway = ({ results, kept }: Windowed): readonly string[] =>
  [...new Set(results.map(nameOf))].filter((name) => !kept.some((row) => row.includes(name))).toSorted()
