import { TerminalError } from '../../lib/core/errors.ts'
import { outputIdentity, type RecordFields, SourceRecord } from '../../lib/core/record.ts'

const record = (fields: Partial<RecordFields> = {}) =>
  new SourceRecord({ source: 's', partition: 't-0', position: '5', arrivalTimeMs: 7, payload: null, ...fields })

test('its time is that of its arrival until an extractor says another', () => {
  expect(record()).toMatchObject({ arrivalTimeMs: 7, eventTimeMs: 7, subPosition: 0, headers: [] })
})

test('a payload is base64, bytes, a view into a larger buffer, or a delete', () => {
  expect(record({ payload: 'AAH/' }).payload).toEqual(Buffer.from([0, 1, 255]))
  expect(record({ payload: '' }).payload).toEqual(Buffer.alloc(0))
  expect(record({ payload: new Uint8Array([9, 1, 2, 9]).subarray(1, 3) }).payload).toEqual(Buffer.from([1, 2]))
  expect(record().payload).toBeNull()
})

test('a key of bytes is text where it is UTF-8; else only its bytes can be read', () => {
  expect(record({ key: 'k1' })).toMatchObject({ key: 'k1', keyBytes: Buffer.from('k1') })
  expect(record({ key: Buffer.from('é') }).key).toBe('é')
  expect(record().key).toBeUndefined()
  expect(record().keyBytes).toBeUndefined()
  const odd = record({ key: Buffer.from('/v8=', 'base64') })
  expect(() => odd.key).toThrow(TerminalError)
  expect(odd.keyBytes).toEqual(Buffer.from([0xfe, 0xff]))
})

test('keys that differ in bytes differ as text, a byte-order mark included', () => {
  expect(record({ key: Buffer.from('\ufeffa') }).key).not.toBe(record({ key: Buffer.from('a') }).key)
})

test('the last header of a name counts; one that is not UTF-8 is refused, not replaced', () => {
  const header = (name: string, ...bytes: number[]) => ({ name, value: Uint8Array.from(bytes) })
  const headed = record({ headers: [header('h', 104, 195, 171), header('h', 97), header('bad', 0xff)] })
  expect(headed.header('h')).toBe('a')
  expect(headed.header('none')).toBeUndefined()
  expect(() => headed.header('bad')).toThrow('the header "bad" is not valid UTF-8')
})

test('whoever changes bytes that it was handed changes a copy; a record without headers makes none', () => {
  const given = { key: Buffer.from([1, 2]), headers: [{ name: 'h', value: Buffer.from([1, 2]) }] }
  const headed = record(given)
  headed.headers[0]?.value.reverse()
  headed.keyBytes?.reverse()
  expect(headed.headers).toEqual([{ name: 'h', value: Uint8Array.of(1, 2) }])
  expect(headed.keyBytes).toEqual(Buffer.from([1, 2]))
  expect(given).toEqual({ key: Buffer.from([1, 2]), headers: [{ name: 'h', value: Buffer.from([1, 2]) }] })
  expect(record().headers).toBe(record().headers)
})

test('an output is named by its record and its place', () => {
  expect(outputIdentity(record({ subPosition: 2 }), 3)).toBe('s/t-0/5/2/3')
})
