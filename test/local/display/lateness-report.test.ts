import * as fc from 'fast-check'
import { z } from 'zod'
import { count, epochMs, minutes, Topology, tumbling } from '../../../lib/index.ts'
import { LatenessReport, span } from '../../../lib/local/display/lateness-report.ts'
import { plan } from '../../../lib/plan/plan.ts'
import { Lateness } from '../../../lib/time/lateness.ts'

function topology() {
  const app = new Topology('app')
  const out = app.sink<unknown>('out')
  const { results, late } = app
    .source('trips', z.object({ t: z.number() }), { eventTime: epochMs(({ t }) => t), outOfOrderness: minutes(1) })
    .keyBy('by-all', () => 'all')
    .window(tumbling(minutes(5), { grace: minutes(0) }))
    .aggregate('trips-per-window', { n: count() }, { emit: 'on-close' })
  results.to(out)
  late.to(out)
  return plan(app)
}

test('a run says which grace would catch which share of the records', () => {
  const report = new LatenessReport()
  const measured = [
    ...Array<number>(900).fill(0),
    ...Array<number>(95).fill(90_000),
    ...Array<number>(5).fill(7_200_000),
  ]
  report.take('trips', new Map([['event-lateness', measured]]))
  report.take('by-all', new Map([['watermark-lag', [1]]]))
  expect(report.lines(topology())).toEqual([
    'How far the records of trips come behind the newest of their partition (1,000 measured; outOfOrderness is 1 min):',
    '  records  come behind by  none of them is late with a grace of',
    '     50 %               0                                     0',
    '     90 %               0                                     0',
    '     99 %      1 min 33 s                                  33 s',
    '   99.9 %             2 h                            1 h 59 min',
    '    100 %             2 h                            1 h 59 min',
  ])
})

test('where nothing comes behind, nothing is said', () => {
  const report = new LatenessReport()
  expect(report.lines(topology())).toEqual([])
  report.take('trips', new Map([['event-lateness', [0, 0, 0]]]))
  expect(report.lines(topology())).toEqual([])
})

test.each([
  [0, '0'],
  [1, '1 s'],
  [999, '1 s'],
  [60_000, '1 min'],
  [61_000, '1 min 1 s'],
  [3_599_001, '1 h'],
  [7_140_001, '2 h'],
  [90_000_000, '1 d 1 h'],
])('%d ms is %s: never less than it', (ms, text) => {
  expect(span(ms)).toBe(text)
})

test('a lateness is told at most a tenth too large, and catches the share that it says', () => {
  const latenesses = fc.array(fc.integer({ min: 0, max: 400_000_000 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(latenesses, fc.double({ min: 0.01, max: 1, noNaN: true }), (values, share) => {
      const lateness = new Lateness()
      for (const value of values) lateness.add(value)
      const told = lateness.withinMs(share)
      const sorted = values.toSorted((a, b) => a - b)
      const exact = sorted[Math.max(0, Math.ceil(share * values.length - 1e-9) - 1)] as number
      expect(told).toBeGreaterThanOrEqual(exact)
      expect(told).toBeLessThanOrEqual(exact * 1.1000001 + 0.001)
      expect(values.filter((value) => value <= told).length / values.length).toBeGreaterThanOrEqual(share - 1e-9)
      expect(lateness.withinMs(1)).toBe(sorted.at(-1))
    }),
  )
})

test('what was written as values with counts and read back tells the same', () => {
  const values = fc.array(fc.integer({ min: 0, max: 10_000_000 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(values, (all) => {
      const first = new Lateness()
      for (const value of all) first.add(value)
      const second = new Lateness()
      for (const { latenessMs, records } of first.counts()) second.add(JSON.parse(JSON.stringify(latenessMs)), records)
      expect(second.counts()).toEqual(first.counts())
    }),
  )
})
