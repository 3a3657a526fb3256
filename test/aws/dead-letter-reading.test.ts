import { entryText } from '../../lib/aws/dead-letter-entry.ts'
import { deadLetterHandle, readDeadLetter } from '../../lib/aws/dead-letter-reading.ts'
import { entryAt } from '../local/dead-letter-world.ts'

test('what a transport was given is read back, as bytes and as text', () => {
  const entry = entryAt('49545', { headers: [{ name: 'h', value: 'AA==' }], key: null, payload: null })
  expect(readDeadLetter(entryText(entry))).toEqual(entry)
  expect(readDeadLetter(Buffer.from(entryText(entry)))).toEqual(entry)
})

test.each([
  ['', 'it is not JSON'],
  ['null', 'it is not a dead letter of Millrace'],
  ['[]', 'it is not a dead letter of Millrace'],
  ['{"requestContext":{},"KinesisBatchInfo":{}}', 'it is not a dead letter of Millrace'],
  [JSON.stringify({ ...entryAt('1'), position: 'x' }), 'it is not a dead letter of Millrace'],
  [JSON.stringify({ ...entryAt('1'), payload: 7 }), 'it is not a dead letter of Millrace'],
  [JSON.stringify({ ...entryAt('1'), reason: { code: 'x' } }), 'it is not a dead letter of Millrace'],
  [JSON.stringify({ ...entryAt('1'), headers: [{ name: 'h' }] }), 'it is not a dead letter of Millrace'],
  [
    JSON.stringify({ ...entryAt('1'), formatVersion: 2 }),
    'it has format version 2, and this release of Millrace reads 1: update Millrace',
  ],
])('%s is no dead letter, and that is said, not thrown', (text, problem) => {
  expect(readDeadLetter(text)).toEqual({ problem })
})

test('a handle is short and stays the same', () => {
  expect(deadLetterHandle('orders/shardId-000000000000/49545/0')).toMatch(/^[0-9a-f]{8}$/)
  expect(deadLetterHandle('a')).toBe('ca978112')
})
