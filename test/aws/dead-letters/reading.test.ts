import { entryText } from '../../../lib/aws/dead-letters/entry.ts'
import { deadLetterHandle, readDeadLetter } from '../../../lib/aws/dead-letters/reading.ts'
import { entryAt } from '../../local/dead-letters/dead-letter-world.ts'

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
    JSON.stringify({ ...entryAt('1'), formatVersion: 3 }),
    'it has format version 3, and this release of Millrace reads up to 2: update Millrace',
  ],
])('%s is no dead letter, and that is said, not thrown', (text, problem) => {
  expect(readDeadLetter(text)).toEqual({ problem })
})

test('an entry whose record is in another names that one, and is of the format version 2, which others are not', () => {
  const entry = entryAt('1', { formatVersion: 2, recordIn: 'orders/shardId-000000000000/1/0/out/0', payload: null })
  expect(readDeadLetter(entryText(entry))).toEqual(entry)
  for (const broken of [{ formatVersion: 1 }, { recordIn: undefined }, { recordIn: 7 }]) {
    expect(readDeadLetter(JSON.stringify({ ...entry, ...broken }))).toEqual({
      problem: 'it is not a dead letter of Millrace',
    })
  }
})

const keyed = { side: 'by-key', slot: 3, number: 7, eventTimeMs: 1_000.5, ownMarkMs: null }

test('what stages with progress and with state say of a record is read back, and must be whole', () => {
  for (const more of [{ ownMarkMs: null }, { ownMarkMs: 5, applied: true as const }, { keyed }]) {
    const entry = entryAt('1', more)
    expect(readDeadLetter(entryText(entry))).toEqual(entry)
  }
  for (const broken of [
    { ownMarkMs: 'now' },
    { applied: false },
    { keyed: null },
    ...Object.keys(keyed).map((field) => ({ keyed: { ...keyed, [field]: undefined } })),
    { keyed: { ...keyed, slot: 1.5 } },
  ]) {
    expect([broken, readDeadLetter(JSON.stringify({ ...entryAt('1'), ...broken }))]).toEqual([
      broken,
      { problem: 'it is not a dead letter of Millrace' },
    ])
  }
})

test('what is said of an output that a sink refused is read back, and must be whole', () => {
  const timer = { domain: 'event-time', name: 'w', timeMs: 5 } as const
  for (const output of [
    { sink: 'out', index: 1, value: null },
    { sink: 'out', index: 0, value: 'MQ==', timer },
  ]) {
    const entry = entryAt('1', { output })
    expect(readDeadLetter(entryText(entry))).toEqual(entry)
  }
  for (const output of [
    null,
    { sink: 'out', index: 0.5, value: null },
    { sink: 'out', index: 0, value: 7 },
    { sink: 'out', index: 0, value: null, timer: { ...timer, timeMs: 'noon' } },
  ]) {
    const text = JSON.stringify({ ...entryAt('1'), output })
    expect([output, readDeadLetter(text)]).toEqual([output, { problem: 'it is not a dead letter of Millrace' }])
  }
})

test('a handle is short and stays the same', () => {
  expect(deadLetterHandle('orders/shardId-000000000000/49545/0')).toMatch(/^[0-9a-f]{8}$/)
  expect(deadLetterHandle('a')).toBe('ca978112')
})
