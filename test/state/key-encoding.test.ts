import fc from 'fast-check'
import {
  compareUtf8,
  dueKey,
  dueOfSortKey,
  duePartition,
  duePrefix,
  entryKey,
  entryPrefix,
  type Key,
  keyItemKey,
  keyOfText,
  keyText,
  progressKey,
  type TableKey,
} from '../../lib/state/key-encoding.ts'
import type { DueEntry } from '../../lib/state/state-store.ts'

const sequence = (unit: fc.Arbitrary<string>, maxLength = 6) =>
  fc.array(unit, { maxLength }).map((units) => units.join(''))

/** Made of what could be mistaken for a separator, a kind, an escape or another character's bytes; sometimes very long. */
const text = fc.oneof(
  sequence(fc.constantFrom('#', '%', '%23', 'key', 'map', 'progress', 'a', '"', '[', 'text:', 'bytes:', '~')),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc
    .tuple(
      fc.constantFrom('x', 'ä', '\uffff', '\u{1f600}'),
      fc.integer({ min: 200, max: 2_100 }),
      sequence(fc.constantFrom('x', '~', '#'), 2),
    )
    .map(([unit, count, end]) => unit.repeat(count) + end),
)
const stateName = sequence(fc.constantFrom('#', '%', '%23', 'a', 'b', '25'), 5)
const place = ({ pk, sk }: TableKey): string => JSON.stringify([pk, sk])

const safeInteger = fc.oneof(fc.maxSafeInteger(), fc.integer({ min: -20, max: 20 }))
const due: fc.Arbitrary<DueEntry> = fc.record({
  slot: fc.nat(70),
  domain: fc.constantFrom('event-time', 'processing-time'),
  timeMs: safeInteger,
  key: text,
})

type Named =
  | readonly ['item', string]
  | readonly ['progress', string]
  | readonly ['entry', string, string, string]
  | readonly ['due', DueEntry]
const named: fc.Arbitrary<Named> = fc.oneof(
  fc.tuple(fc.constant('item' as const), text),
  fc.tuple(fc.constant('progress' as const), text),
  fc.tuple(fc.constant('entry' as const), text, stateName, text),
  fc.tuple(fc.constant('due' as const), due),
)

function keyOf(name: Named): TableKey {
  if (name[0] === 'due') return dueKey(name[1])
  if (name[0] === 'item') return keyItemKey(name[1])
  return name[0] === 'progress' ? progressKey(name[1]) : entryKey({ key: name[1], state: name[2], entry: name[3] })
}

describe('table keys', () => {
  test('are readable', () => {
    expect(keyItemKey('h1')).toMatchObject({ pk: 'key#h1', sk: 'key' })
    expect(entryKey({ key: 'h1', state: 'rooms', entry: '12' })).toMatchObject({ pk: 'key#h1', sk: 'map#rooms#12' })
    expect(progressKey('shardId-000000000001')).toMatchObject({ pk: 'progress#shardId-000000000001', sk: 'progress' })
  })

  test('different names have different keys, whatever is in them', () => {
    fc.assert(
      fc.property(named, named, (a, b) => {
        expect(place(keyOf(a)) === place(keyOf(b))).toBe(JSON.stringify(a) === JSON.stringify(b))
      }),
      { numRuns: 2_000 },
    )
  })

  test('fit in the table and are never empty', () => {
    fc.assert(
      fc.property(named, (name) => {
        const { pk, sk } = keyOf(name)
        expect(Buffer.byteLength(pk)).toBeLessThanOrEqual(2_048)
        expect(Buffer.byteLength(sk)).toBeLessThanOrEqual(1_024)
        expect(Math.min(pk.length, sk.length)).toBeGreaterThan(0)
        expect(pk.isWellFormed() && sk.isWellFormed()).toBe(true)
      }),
    )
  })

  test.each([
    ['one byte less than the table allows', 2_047 - 'key#'.length, false],
    ['as long as the table allows', 2_048 - 'key#'.length, true],
    ['longer', 10_000, true],
  ])('a key that is %s', (_, length, shortened) => {
    const key = 'x'.repeat(length)
    const { pk, pkText } = keyItemKey(key)
    expect(pkText).toBe(shortened ? `key#${key}` : undefined)
    expect(pk).toMatch(shortened ? /^key#x{1000,}#[0-9a-f]{64}$/ : /^key#x+$/)
    expect(Buffer.byteLength(pk)).toBe(Math.min(length + 4, 2_048))
  })

  test('a long key is never that of a shorter one that looks like it', () => {
    const { pk } = keyItemKey('x'.repeat(3_000))
    const lookalike = keyItemKey(pk.slice('key#'.length))
    expect(lookalike.pk).not.toBe(pk)
  })

  test('are cut between characters', () => {
    for (const unit of ['ä', '\uffff', '\u{1f600}']) {
      for (let shift = 0; shift < 4; shift += 1) {
        const { pk } = keyItemKey('x'.repeat(shift) + unit.repeat(1_100))
        expect(pk).toMatch(new RegExp(`^key#x*(?:${unit})+~*#[0-9a-f]{64}$`, 'u'))
        expect(Buffer.byteLength(pk)).toBe(2_048)
      }
    }
  })

  test('the entries of one state of one key share its partition and a prefix that no other entry has', () => {
    fc.assert(
      fc.property(text, stateName, stateName, text, (key, state, other, entry) => {
        const { pk, sk } = entryKey({ key, state: other, entry })
        expect(pk).toBe(keyItemKey(key).pk)
        expect(sk.startsWith(entryPrefix(state))).toBe(state === other)
      }),
    )
  })

  test('the key item comes first in its partition', () => {
    fc.assert(
      fc.property(stateName, text, (state, entry) => expect('key' < entryKey({ key: '', state, entry }).sk).toBe(true)),
    )
  })

  test('entries sort as the bytes of their names, and long ones by their beginning', () => {
    const bytesOrder = (a: string, b: string): number => Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)))
    fc.assert(
      fc.property(text, text, (a, b) => {
        const [left, right] = [a, b].map((entry) => entryKey({ key: 'k', state: 's', entry }))
        const beginnings = [a, b].map((name) => Buffer.from(name).subarray(0, 900).toString('latin1'))
        const long = left?.skText !== undefined || right?.skText !== undefined
        fc.pre(!long || beginnings[0] !== beginnings[1])
        expect(bytesOrder(left?.sk ?? '', right?.sk ?? '')).toBe(bytesOrder(a, b))
        expect(Math.sign(compareUtf8(a, b))).toBe(bytesOrder(a, b))
      }),
      { numRuns: 1_000 },
    )
  })

  test('due entries sort by domain and time, whatever its sign, and then by the bytes of their keys', () => {
    fc.assert(
      fc.property(due, due, fc.boolean(), (a, other, sameTime) => {
        const b = { ...other, slot: a.slot, domain: a.domain, timeMs: sameTime ? a.timeMs : other.timeMs }
        const [left, right] = [dueKey(a), dueKey(b)]
        expect([left.pk, left.sk.startsWith(duePrefix(a.domain))]).toEqual([duePartition(a.slot), true])
        fc.pre(a.timeMs !== b.timeMs || (left.skText === undefined && right.skText === undefined))
        const expected = a.timeMs - b.timeMs || compareUtf8(a.key, b.key)
        expect(Math.sign(compareUtf8(left.sk, right.sk))).toBe(Math.sign(expected))
      }),
      { numRuns: 1_000 },
    )
  })

  test('a due entry is read from its sort key, and nothing else is', () => {
    fc.assert(
      fc.property(due, (entry) => {
        const { sk, skText = sk } = dueKey(entry)
        expect(dueOfSortKey(skText)).toEqual({ timeMs: entry.timeMs, key: entry.key })
      }),
      { numRuns: 1_000 },
    )
    expect(dueKey({ slot: 3, domain: 'event-time', timeMs: 1_767_225_600_000, key: 'h1' })).toMatchObject({
      pk: 'due#3',
      sk: 'e#00001767225600000#h1',
    })
    expect(['', 'key', 'e#', 'e#1#k', 'x#00001767225600000#h1'].map(dueOfSortKey)).toEqual(Array(5).fill(undefined))
  })

  test.each([
    [{ slot: -1 }, '-1 is no slot'],
    [{ slot: 0.5 }, '0.5 is no slot'],
    [{ timeMs: 0.5 }, '0.5 is no time'],
    [{ timeMs: Number.NEGATIVE_INFINITY }, '-Infinity is no time'],
  ])('a due entry of %j is a bug of ours', (change, message) => {
    expect(() => dueKey({ slot: 1, domain: 'event-time', timeMs: 1, key: 'k', ...change })).toThrow(message)
  })

  test.each([
    ['due entry', () => dueKey({ slot: 1, domain: 'event-time', timeMs: 1, key: '\ud800' })],
    ['key', () => keyItemKey('a\ud800')],
    ['entry', () => entryKey({ key: 'k', state: 's', entry: '\udc00' })],
    ['partition', () => progressKey('\ud800')],
  ])('a %s with half a surrogate pair is refused, since others would become the same', (_, encode) => {
    expect(encode).toThrow(expect.objectContaining({ name: 'TerminalError', code: 'unsupported-key' }))
  })

  test('a name of a state that would fill the sort key is a bug of ours', () => {
    expect(() => entryPrefix('#'.repeat(86))).toThrow(/more than 255 bytes/)
    expect(entryPrefix('#'.repeat(85))).toHaveLength(5 + 255)
  })
})

describe('keyText', () => {
  const key: fc.Arbitrary<Key> = fc.oneof(
    text,
    fc.uint8Array({ maxLength: 5 }),
    fc.array(text, { maxLength: 3 }),
    fc.constantFrom('["a"]', 'bytes:00', 'text:a', 'text:text:a', '["a"'),
  )

  test.each<[Key, string]>([
    ['h1', 'h1'],
    ['', ''],
    ['__proto__', '__proto__'],
    ['text', 'text'],
    ['bytes', 'bytes'],
    [['doc-7', '12'], '["doc-7","12"]'],
    [[], '[]'],
    [Uint8Array.of(0, 255), 'bytes:00ff'],
    [new Uint8Array(0), 'bytes:'],
    ['["doc-7","12"]', 'text:["doc-7","12"]'],
    ['bytes:00ff', 'text:bytes:00ff'],
    ['text:a', 'text:text:a'],
  ])('of %p is %p', (value, expected) => {
    expect(keyText(value)).toBe(expected)
  })

  test('comes back as the key, so that different keys have different texts', () => {
    fc.assert(fc.property(key, (value) => expect(keyOfText(keyText(value))).toEqual(value)))
  })
})
