import { compareAirports, hoursNote, revisionLines } from '../../../bin/flights/airport-report.ts'
import type { AirportTotals } from '../../../bin/flights/batch-airports.ts'
import { HourOutputs } from '../../../bin/flights/hour-outputs.ts'

const hour = '2001-01-01T10:00:00.000Z'
const totals = { flights: 2, meanMinutes: 10.5, maxMinutes: 20, p90Minutes: 20 }
const result = (revision: number, changes: object = {}) => ({ airport: 'LAS', hour, revision, ...totals, ...changes })
const departure = (flight: string) => ({
  ...{ flight, scheduled: '2001-01-01T10:20:00.000Z', delayMinutes: 20, origin: 'LAS', destination: 'PHL' },
})
const state: AirportTotals = { recent: [departure('a')], flights: 3, delayed: 1, worst: departure('a') }
const expected = {
  hours: new Map([[`LAS ${hour}`, totals]]),
  late: new Map([['b', `LAS ${hour}`]]),
  airports: new Map([['LAS', state]]),
  repeated: 0,
}

function outputs(...results: readonly ReturnType<typeof result>[]): HourOutputs {
  const taken = new HourOutputs()
  for (const one of results) taken.takeHour(one)
  taken.takeLate(departure('b'))
  return taken
}

test('the last revision of each hour counts, in whatever order and however often they came', () => {
  const taken = outputs(result(1), result(0, { flights: 1 }), result(1))
  const comparison = compareAirports(taken, new Map([['LAS', state]]), expected)
  expect(comparison.differences).toEqual([])
  expect(comparison.rows.map(({ label, found }) => [label, found])).toEqual([
    ['hours of airports', 1],
    ['flights in them', 2],
    ['late flights', 1],
    ['states of airports', 1],
    ['flights counted', 3],
    ['flights delayed', 1],
  ])
  expect(taken.revised).toBe(1)
})

test.each([
  ['a count', { flights: 3 }],
  ['a mean in its last digit', { meanMinutes: 10.500000000000002 }],
  ['a maximum', { maxMinutes: 21 }],
  ['a ninth decile', { p90Minutes: 21 }],
])('%s that differs is a difference', (_, changes) => {
  const comparison = compareAirports(outputs(result(0, changes)), new Map([['LAS', state]]), expected)
  expect(comparison.isEqual).toBe(false)
  expect(comparison.differences[0]).toMatch(/^hour LAS 2001-01-01T10:00:00.000Z is .* and should be /)
})

test('hours, late flights and states that are missing, too many or others are differences', () => {
  const other = outputs(result(0, { airport: 'PHL' }))
  other.takeLate({ ...departure('c') })
  other.late.delete('b')
  const { differences } = compareAirports(other, new Map([['LAS', { ...state, recent: [] }]]), expected)
  expect(differences.map((line) => line.replace(/( is missing| should not be| is \{).*/, '$1'))).toEqual([
    `hour LAS ${hour} is missing`,
    `hour PHL ${hour} should not be`,
    'late flight b is missing',
    'late flight c should not be',
    'state of airport LAS is {',
  ])
})

test('a revision that came twice with different content is a difference', () => {
  const taken = outputs(result(0), result(0, { flights: 1 }))
  expect(compareAirports(taken, new Map([['LAS', state]]), expected).differences).toEqual([
    `revision 0 of LAS ${hour} came twice with different content`,
  ])
})

test('the note and the example say what windows did', () => {
  const taken = outputs(result(0, { flights: 1 }), result(1))
  expect(hoursNote(taken)).toBe(
    'hours: 1 closed, 1 revision, 1 flight too late; last: LAS 2001-01-01T10h, 1 flight, mean 10.5 min, max 20, p90 20',
  )
  expect(revisionLines(taken.example)).toEqual([
    '              flights  mean  max  p90',
    '  at close          1  10.5   20   20',
    '  revision 1        2  10.5   20   20',
  ])
})

test('of many revisions the first and the last ones are shown', () => {
  const lines = revisionLines(Array.from({ length: 20 }, (_, revision) => result(revision)))
  expect(lines.map((line) => line.trim().split('  ')[0])).toEqual([
    'flights',
    'at close',
    'revision 1',
    'revision 2',
    '…',
    'revision 17',
    'revision 18',
    'revision 19',
  ])
})
