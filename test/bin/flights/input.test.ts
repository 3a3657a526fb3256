import { isUtf8 } from 'node:buffer'
import type { FlightRow } from '../../../bin/flights/data-set.ts'
import { inOrderOfKnowledge, inputRecords } from '../../../bin/flights/input.ts'

const flight = (row: number, scheduled: string, delayMinutes: number): FlightRow => ({
  row,
  scheduled,
  delayMinutes,
  distanceMiles: 100,
  origin: 'LAS',
  destination: 'PHL',
})

const many = Array.from({ length: 200 }, (_, row) => flight(row, '2001-01-01T10:00:00', row % 7))
const payloads = (planted: number) => inputRecords(many, planted).map(({ data }) => data.toString('latin1'))

test('a flight becomes known at its scheduled time plus its delay', () => {
  const flights = [
    flight(0, '2001-01-01T10:00:00', 90),
    flight(1, '2001-01-01T11:00:00', -10),
    flight(2, '2001-01-01T11:30:00', 0),
    flight(3, '2001-01-01T11:20:00', 10),
  ]
  expect(inOrderOfKnowledge(flights).map(({ row }) => row)).toEqual([1, 0, 2, 3])
  expect(inputRecords(flights, 0).map(({ knownMs }) => new Date(knownMs).toISOString())).toEqual([
    '2001-01-01T10:50:00.000Z',
    '2001-01-01T11:30:00.000Z',
    '2001-01-01T11:30:00.000Z',
    '2001-01-01T11:30:00.000Z',
  ])
})

test('planted records come on top of the flights, each with bytes of its own', () => {
  expect(payloads(0)).toHaveLength(200)
  expect(payloads(40)).toHaveLength(240)
  expect(new Set(payloads(40)).size).toBe(240)
  expect(payloads(40).filter((text) => !text.includes('planted-'))).toEqual(payloads(0))
})

test('the same options give the same input', () => {
  expect(payloads(40)).toEqual(payloads(40))
})

test('each kind of bad record is bad in its own way', () => {
  const planted = inputRecords(many, 8)
    .map(({ data }) => data)
    .filter((data) => data.includes('planted-'))
    .sort(
      (one, other) =>
        Number(/planted-(\d+)/.exec(one.toString())?.[1]) - Number(/planted-(\d+)/.exec(other.toString())?.[1]),
    )
  const [cut, wrong, notUtf8, unknown] = planted
  expect(() => JSON.parse(String(cut))).toThrow(SyntaxError)
  expect(JSON.parse(String(wrong))).toMatchObject({ delayMinutes: 'late' })
  expect(isUtf8(notUtf8 as Buffer)).toBe(false)
  expect(JSON.parse(String(unknown))).toMatchObject({ origin: 'QQQ' })
})
