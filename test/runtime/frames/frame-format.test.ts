import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { MillraceError } from '../../../lib/core/errors.ts'
import { decodeUtf8 } from '../../../lib/core/utf8.ts'
import { ShortTexts } from '../../../lib/runtime/frames/byte-reader.ts'
import type { ControlFrame, Frame, FrameRecord, RedriveFrame } from '../../../lib/runtime/frames/frame.ts'
import {
  decodeFrame,
  decodeIncoming,
  encodeControl,
  encodeFrame,
  encodeRedriveFrame,
} from '../../../lib/runtime/frames/frame-format.ts'
import { endOf, firingPosition, justBefore, ownPosition, startOf } from '../../../lib/runtime/frames/position.ts'
import { RecordRows } from '../../../lib/runtime/frames/record-rows.ts'
import { anyControl, anyFrame, anyRedriveFrame, recordAt } from './arbitrary-frames.ts'

function encode(frame: Frame | ControlFrame | RedriveFrame): Uint8Array {
  if (frame.kind === 'frame') return encodeFrame(frame).bytes
  return (frame.kind === 'control' ? encodeControl(frame) : encodeRedriveFrame(frame)).bytes
}
const asText = (value: Uint8Array): string | Uint8Array => decodeUtf8(value) ?? value
const anyKind = fc.oneof(anyFrame, anyControl, anyRedriveFrame)

function failureOf(bytes: Uint8Array): unknown {
  try {
    decodeFrame(bytes)
    return 'decoded'
  } catch (error) {
    return error instanceof MillraceError ? error.code : error
  }
}

/** Bytes with a right length and checksum, whatever they say. */
function sealed(body: Uint8Array, version = 1): Uint8Array {
  const bytes = Buffer.concat([Buffer.from([0x4d, 0x52, 0, 0, 0, 0, version, 0, 0, 0, 0]), body])
  bytes.writeUInt32BE(body.length, 7)
  bytes.writeUInt32BE(crc32(bytes.subarray(6)), 2)
  return bytes
}

const small: Frame = {
  kind: 'frame',
  upstream: { name: 'orders', partition: 'shardId-000000000000' },
  slot: 50,
  schemaVersion: 1,
  markMs: 1_671_562_490_000,
  claims: [
    { previous: endOf(6), last: endOf(7) },
    { previous: justBefore(ownPosition(9, 1)), last: ownPosition(9, 1) },
  ],
  records: [
    recordAt(firingPosition(7, '00112233445566778899aabbccddeeff', 0), { ownMarkMs: Number.NEGATIVE_INFINITY }),
    recordAt(ownPosition(7, 0)),
    recordAt(ownPosition(9, 1), { key: 'ключ', redrive: 'orders/shardId-000000000000/1/0' }),
  ],
}

const closing: ControlFrame = {
  kind: 'control',
  from: 'announcer',
  slot: 3,
  news: [
    {
      upstream: { name: 'orders', partition: 'p-1' },
      state: 'open',
      markMs: Number.NEGATIVE_INFINITY,
      lastSent: new Map(),
    },
    {
      upstream: { name: 'orders', partition: 'p-0' },
      state: 'closed',
      markMs: 1_671_562_490_000,
      lastSent: new Map([
        [0, endOf(11)],
        [3, ownPosition(900, 2)],
      ]),
    },
  ],
}

describe('frames (F1: what is decoded equals what was encoded)', () => {
  test('whatever the texts, times, marks and bytes are', () => {
    fc.assert(
      fc.property(anyKind, (frame) => expect(decodeFrame(encode(frame))).toEqual(frame)),
      { numRuns: 500 },
    )
  })

  test('for the stage that it was sent to, too: with values as texts where they are UTF-8', () => {
    // Of a few texts, so that the same ones come again, in other frames and at places that others have taken.
    const shortTexts = new ShortTexts()
    const asTexts = (frame: Frame | ControlFrame | RedriveFrame) =>
      frame.kind === 'control'
        ? frame
        : { ...frame, records: frame.records.map((record) => ({ ...record, value: asText(record.value) })) }
    fc.assert(
      fc.property(anyKind, (frame) => {
        const bytes = encode(frame)
        for (const texts of [shortTexts, shortTexts, undefined]) {
          expect(decodeIncoming(bytes, texts)).toEqual(asTexts(decodeFrame(bytes)))
        }
      }),
      { numRuns: 300 },
    )
  })

  test('short texts that share a place are told apart', () => {
    const texts = new ShortTexts()
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 20_000; i++) {
        const bytes = Buffer.from(`-user-${i}-`)
        expect(texts.read(bytes, 1, bytes.length - 1)).toBe(`user-${i}`)
      }
    }
    expect(texts.read(Buffer.from('k\u00e4se'), 0, 5)).toBeUndefined()
  })

  test('wherever in memory the bytes lie', () => {
    const bytes = encode(small)
    const shifted = new Uint8Array(bytes.length + 3)
    shifted.set(bytes, 3)
    expect(decodeFrame(shifted.subarray(3))).toEqual(small)
  })

  test('positions of outputs and starts of numbers keep their order', () => {
    const { records } = decodeFrame(encode(small)) as Frame
    expect(records.map(({ position }) => position)).toEqual(small.records.map(({ position }) => position))
  })

  test('half a surrogate pair is refused, as other keys would become the same', () => {
    const frame = { ...small, records: [recordAt(ownPosition(7, 0), { key: 'a\ud800' })] }
    expect(() => encodeFrame(frame)).toThrow(expect.objectContaining({ code: 'not-utf8', name: 'TerminalError' }))
  })
})

describe('frames (F2: other bytes are never another record)', () => {
  test('a changed byte, a cut or an addition is a typed error', () => {
    const change = fc.oneof(
      fc.record({ kind: fc.constant('change' as const), at: fc.nat(), by: fc.integer({ min: 1, max: 255 }) }),
      fc.record({ kind: fc.constant('cut' as const), at: fc.nat(), by: fc.constant(0) }),
      fc.record({ kind: fc.constant('add' as const), at: fc.nat({ max: 255 }), by: fc.integer({ min: 1, max: 9 }) }),
    )
    fc.assert(
      fc.property(anyKind, change, (frame, { kind, at, by }) => {
        const whole = Buffer.from(encode(frame))
        const place = at % whole.length
        if (kind === 'change') whole[place] = ((whole[place] ?? 0) + by) % 256
        const bytes =
          kind === 'cut'
            ? whole.subarray(0, place)
            : kind === 'add'
              ? Buffer.concat([whole, Buffer.alloc(by, at)])
              : whole
        expect(['not-a-frame', 'frame-corrupt']).toContain(failureOf(bytes))
      }),
      { numRuns: 1_000 },
    )
  })

  test('each single bit of a frame counts', () => {
    const whole = encode(small)
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const bytes = Buffer.from(whole)
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(failureOf(bytes)).not.toBe('decoded')
    }
  })

  test('nonsense under a right checksum is a typed error or a frame, and ends soon', () => {
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.tuple(anyKind, fc.nat(), fc.nat({ max: 255 })).map(([frame, at, value]) =>
        Buffer.from(encode(frame))
          .subarray(11)
          .map((byte, i) => (i === at % 40 ? value : byte)),
      ),
    )
    fc.assert(
      fc.property(body, (bytes) => expect(['decoded', 'frame-corrupt']).toContain(failureOf(sealed(bytes)))),
      { numRuns: 2_000 },
    )
  })

  test('under a right checksum too, a body that ends early or late is corrupt, wherever', () => {
    for (const frame of [small, closing]) {
      const body = encode(frame).subarray(11)
      for (let end = 0; end < body.length; end++) expect(failureOf(sealed(body.subarray(0, end)))).toBe('frame-corrupt')
      expect(failureOf(sealed(Buffer.concat([body, Buffer.from([0])])))).toBe('frame-corrupt')
    }
  })

  test('more records than there are bytes are corrupt, and reserve no memory', () => {
    const body = [0, 0, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]
    expect(failureOf(sealed(Buffer.from(body)))).toBe('frame-corrupt')
  })

  test('a text that shares more than there is before it is corrupt', () => {
    const sharing = (shared: number) => {
      const head = [0, 0, 0, 0, 0, 1, 0, 1]
      const record = [0, 3, shared, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
      return failureOf(sealed(Buffer.from([...head, ...record])))
    }
    expect([sharing(0), sharing(5)]).toEqual(['decoded', 'frame-corrupt'])
  })

  test.each([['{"id":1}'], [''], ['MR']])('a record that is no frame says so: %p', (text) => {
    expect(failureOf(Buffer.from(text))).toBe('not-a-frame')
  })
})

describe('frames (F3: versions)', () => {
  test('a newer version goes back to the stream until the reader is deployed', () => {
    expect(() => decodeFrame(sealed(Buffer.from('anything'), 4))).toThrow(
      expect.objectContaining({ name: 'RetryableError', code: 'frame-newer' }),
    )
  })

  test('a version that was never written is refused for good', () => {
    expect(() => decodeFrame(sealed(Buffer.from('anything'), 0))).toThrow(
      expect.objectContaining({ name: 'TerminalError', code: 'frame-older' }),
    )
  })

  test('version 2 is written only where a value is tagged: the release before reads every other frame', () => {
    const [plain, tagged] = ['{"$":1}', `$${'{"$bigint":"1"}'}`].map((value) => {
      const records = [recordAt(ownPosition(7, 0), { value: Buffer.from(value) })]
      return { ...small, claims: [{ previous: startOf(7), last: endOf(7) }], records }
    })
    expect([plain, tagged].map((frame) => encode(frame as Frame)[6])).toEqual([1, 2])
    expect(decodeFrame(encode(tagged as Frame))).toEqual(tagged)
  })

  test('version 3 is written only where a record has headers, beside a tagged value too', () => {
    const headers = [{ name: 'trace', value: Buffer.from('t-1') }]
    const frames = ['{"n":1}', `$${'{"$bigint":"1"}'}`].map((value): Frame => {
      const records = [
        recordAt(ownPosition(7, 0), { value: Buffer.from(value) }),
        recordAt(ownPosition(7, 1), { headers }),
      ]
      return { ...small, claims: [{ previous: startOf(7), last: endOf(7) }], records }
    })
    expect(frames.map((frame) => encode(frame)[6])).toEqual([3, 3])
    for (const frame of frames) expect(decodeFrame(encode(frame))).toEqual(frame)
  })

  test('the bytes of headers are pinned: a byte that says them, their count, and of each the name and the value', () => {
    const headers = [
      { name: 'trace', value: Buffer.from('t-1') },
      { name: '', value: Buffer.from([0xc3, 0x28]) },
      { name: 'trace', value: Buffer.alloc(0) },
    ]
    const rowOf = (fields: Partial<FrameRecord>) => {
      const rows = new RecordRows()
      rows.add(recordAt(ownPosition(7, 0), { value: Buffer.from('v'), ...fields }))
      return Buffer.from(rows.bytes).toString('hex')
    }
    const plain = rowOf({})
    expect(plain.slice(-6)).toBe('000176')
    const before = plain.slice(0, -6)
    const pinned = `03${'057472616365'}${'03742d31'}${'00'}${'02c328'}${'057472616365'}${'00'}`
    expect(rowOf({ headers })).toBe(`${before}02${pinned}0176`)
    expect(rowOf({ headers, redrive: 'x' })).toBe(`${before}030178${pinned}0176`)
  })

  test('what a row says of its record is known, or its frame corrupt', () => {
    const row = (says: number) => [0, 3, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, says]
    const frame = (says: number, ...rest: number[]) =>
      failureOf(sealed(Buffer.from([0, 0, 0, 0, 0, 1, 0, 1, ...row(says), ...rest]), 3))
    expect([frame(0, 0), frame(1, 0, 0), frame(2, 1, 0, 0, 0), frame(3, 0, 0, 0)]).toEqual(
      Array.from({ length: 4 }, () => 'decoded'),
    )
    expect([frame(4, 0), frame(2, 9, 0), frame(2, 1, 1, 0xff, 0, 0)]).toEqual(
      Array.from({ length: 3 }, () => 'frame-corrupt'),
    )
  })

  test('the bytes of version 1 are pinned: streams and retries hold them for days', () => {
    expect(Buffer.from(encode(small)).toString('hex')).toBe(
      '4d52760bc7e2010000014200066f726465727314736861726449642d3030303030303030303030303201a1c29b8ea66102000700010001010503070400112233445566778899aabbccddeeff00066f72646572730a637573746f6d65722d3700fff0000000000000a3c69c8ea66100066f72646572730014736861726449642d3030303030303030303030300038343935393033333832373134393032353636303835353936393235333833363135373130393539323135373539383931333635383839303500f1ce9c8ea661000c7b22746f74616c223a31327d000306000a637573746f6d65722d37a1c29b8ea661010600140038000001000c7b22746f74616c223a31327d0205060008d0bad0bbd18ed1870101060014003701370001011f6f72646572732f736861726449642d3030303030303030303030302f312f300c7b22746f74616c223a31327d',
    )
    expect(Buffer.from(encode(closing)).toString('hex')).toBe(
      '4d52f068052f010000003701000302066f726465727303702d310000fff00000000000000000066f726465727303702d3002a1c29b8ea66102840700f80600030007',
    )
  })
})

describe('frames (F4: claims and order)', () => {
  test.each<[string, Partial<Frame>]>([
    ['an interval without positions', { claims: [{ previous: endOf(7), last: endOf(7) }] }],
    [
      'overlap',
      {
        claims: [
          { previous: startOf(1), last: endOf(9) },
          { previous: endOf(8), last: endOf(9) },
        ],
      },
    ],
    ['does not claim its own record', { claims: [{ previous: endOf(6), last: endOf(7) }] }],
    ['out of order', { records: small.records.toReversed() }],
  ])('our own bug is not sent: %s', (message, fields) => {
    expect(() => encodeFrame({ ...small, ...fields })).toThrow(message)
  })
})

describe('frames (F5: limits)', () => {
  test('a frame beyond a Kinesis record of 1 MiB is refused', () => {
    const frame = { ...small, records: [recordAt(ownPosition(7, 0), { value: Buffer.alloc(1_048_576) })] }
    expect(() => encodeFrame(frame)).toThrow(expect.objectContaining({ name: 'TerminalError', code: 'oversize' }))
  })

  test('neighbours of one source cost at most 48 bytes beside key and value', () => {
    const records = Array.from({ length: 500 }, (_, i) => recordAt(ownPosition(1_000 + i, 0), { key: `c${i % 90}` }))
    const bytes = encodeFrame({ ...small, claims: [{ previous: startOf(0), last: endOf(1_500) }], records }).bytes
    const content = records.reduce((sum, { key, value }) => sum + key.length + value.length, 0)
    expect((bytes.length - content) / records.length).toBeLessThan(48)
  })
})

describe('frames (F6: redriven records)', () => {
  const letter = (n: number) => recordAt(ownPosition(n, 0), { redrive: `letter-${n}` })
  const redrive = (records: RedriveFrame['records']): RedriveFrame => ({
    kind: 'redrive',
    slot: 50,
    schemaVersion: 3,
    records,
  })

  test('the frame goes to its slot, and says no upstream, claim or mark', () => {
    const { slot, bytes } = encodeRedriveFrame(redrive([letter(0), letter(1)]))
    expect(slot).toBe(50)
    expect(decodeFrame(bytes)).toEqual(redrive([letter(0), letter(1)]))
  })

  test('a record without an identity, or out of order, is a bug of ours and never sent', () => {
    expect(() => encodeRedriveFrame(redrive([recordAt(ownPosition(0, 0))]))).toThrow('without an identity')
    expect(() => encodeRedriveFrame(redrive([letter(1), letter(0)]))).toThrow('out of order')
  })

  test('its body is pinned', () => {
    const body = encodeRedriveFrame(redrive([{ ...letter(0), value: Buffer.from('v') }])).bytes.subarray(11)
    expect(Buffer.from(body).toString('hex')).toBe(
      '02320301000300066f72646572730a637573746f6d65722d37a1c29b8ea661a3c69c8ea66100066f72646572730014736861726449642d3030303030303030303030300038343935393033333832373134393032353636303835353936393235333833363135373130393539323135373539383931333635383838393800f1ce9c8ea66101086c65747465722d300176',
    )
  })

  test('from the second generation on the frame says it, in the version that an older release leaves alone', () => {
    const frame = { ...redrive([letter(0)]), generation: 300 }
    const { bytes } = encodeRedriveFrame(frame)
    expect(decodeFrame(bytes)).toEqual(frame)
    expect([bytes[6], Buffer.from(bytes.subarray(11, 17)).toString('hex')]).toEqual([2, '033203ac0201'])
  })

  test('with headers it is of version 3, of whatever generation', () => {
    const headers = [{ name: 'trace', value: Buffer.from('t-1') }]
    for (const generation of [{}, { generation: 2 }]) {
      const frame = { ...redrive([letter(0), { ...letter(1), headers }]), ...generation }
      const { bytes } = encodeRedriveFrame(frame)
      expect(bytes[6]).toBe(3)
      expect(decodeFrame(bytes)).toEqual(frame)
    }
  })

  test('bytes that say so all the same are corrupt', () => {
    const rows = new RecordRows()
    rows.add(recordAt(ownPosition(0, 0)))
    expect(failureOf(sealed(Buffer.concat([Buffer.from([2, 50, 3, 1]), rows.bytes])))).toBe('frame-corrupt')
    rows.restart()
    rows.add(letter(0))
    expect(failureOf(sealed(Buffer.concat([Buffer.from([2, 50, 3, 1]), rows.bytes])))).toBe('decoded')
  })
})
