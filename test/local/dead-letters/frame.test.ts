import { SourceRecord } from '../../../lib/core/record.ts'
import { slotOf } from '../../../lib/core/slot.ts'
import { type KeyedEntry, redriveFrame } from '../../../lib/local/dead-letters/frame.ts'
import { type DeadLetter, deadLetterOf } from '../../../lib/runtime/dead-letter.ts'
import type { EncodedFrame, RedriveFrame } from '../../../lib/runtime/frames/frame.ts'
import { decodeFrame } from '../../../lib/runtime/frames/frame-format.ts'

const coordinates = { side: 'by-key', slot: 63, number: 7, eventTimeMs: 1_000.5, ownMarkMs: 900 }
const origin = { source: 'orders', partition: 'shard-3', position: '49545', subPosition: 2, arrivalTimeMs: 1_500 }

function entryOf(changes: Partial<DeadLetter> & { readonly phase?: 'sink' } = {}): KeyedEntry {
  const record = new SourceRecord({ ...origin, key: 'Zürich', payload: Buffer.from('{"n":1}') })
  const { phase = 'step', ...rest } = changes
  const where = { topology: 'app', stage: 'by-key', failedAtMs: 9 }
  const more = { id: 'by-key/slot-63/7', keyed: coordinates }
  return { ...deadLetterOf(record, { error: new Error('no'), phase, attempts: 3 }, where, more), ...rest } as KeyedEntry
}

const none = async () => {
  throw new Error('it is gone')
}
const frameOf = (
  entry: KeyedEntry,
  slots: number | { reason: string } = 64,
  readObject: () => Promise<DeadLetter> = none,
) => redriveFrame(entry, { slotsOf: () => slots }, { topology: 'app', readObject })

test('the frame has the record as it failed, under the identity of its dead letter', async () => {
  const { slot, bytes } = (await frameOf(entryOf())) as EncodedFrame
  expect(decodeFrame(bytes)).toEqual({
    ...{ kind: 'redrive', slot, schemaVersion: 1 },
    records: [
      {
        position: { number: 0, own: true, keyHash: '', index: 0 },
        ...{ side: 'by-key', key: 'Zürich', eventTimeMs: 1_000.5, ownMarkMs: 900 },
        ...{ value: Buffer.from('{"n":1}'), origin, redrive: 'by-key/slot-63/7' },
      },
    ],
  })
})

test('its value has the schema version that it failed with', async () => {
  const { bytes } = (await frameOf(entryOf({ keyed: { ...coordinates, schemaVersion: 3 } }))) as EncodedFrame
  expect(decodeFrame(bytes)).toMatchObject({ schemaVersion: 3 })
})

test('it has the headers that the record failed with, of an offloaded entry those of its object', async () => {
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
  const pairs = [
    ['trace', Buffer.from('t-1')],
    ['trace', Buffer.from([0xff, 0x00])],
    ['', Buffer.alloc(0)],
  ] as const
  const entry = entryOf({ headers: pairs.map(([name, value]) => ({ name, value: base64(value) })) })
  const offloaded = { key: null, payload: null, offloaded: { bucket: 'b', key: 'k' } }
  for (const frame of [await frameOf(entry), await frameOf(entryOf(offloaded), 64, async () => entry)]) {
    const { bytes } = frame as EncodedFrame
    expect(decodeFrame(bytes)).toMatchObject({
      records: [{ headers: pairs.map(([name, value]) => ({ name, value })) }],
    })
  }
  const { bytes } = (await frameOf(entryOf())) as EncodedFrame
  expect((decodeFrame(bytes) as RedriveFrame).records[0]?.headers).toBeUndefined()
})

test('it goes to the slot of its key, whatever slot it failed in', async () => {
  for (const slots of [1, 64, 4_096]) {
    expect(await frameOf(entryOf(), slots)).toMatchObject({ slot: slotOf('Zürich', slots) })
  }
})

test('a record before which nothing came has no own mark', async () => {
  const { bytes } = (await frameOf(entryOf({ keyed: { ...coordinates, ownMarkMs: null } }))) as EncodedFrame
  expect(decodeFrame(bytes)).toMatchObject({ records: [{ ownMarkMs: Number.NEGATIVE_INFINITY }] })
})

test('a record beyond the skew limit is late for every window again', async () => {
  const keyed = { ...coordinates, ownMarkMs: null, isSkewed: true } as const
  const { bytes } = (await frameOf(entryOf({ keyed }))) as EncodedFrame
  expect(decodeFrame(bytes)).toMatchObject({ records: [{ ownMarkMs: Number.POSITIVE_INFINITY }] })
})

test('an entry that was offloaded goes with the bytes of its object', async () => {
  const offloaded = { key: null, payload: null, offloaded: { bucket: 'b', key: 'k' } }
  const { bytes } = (await frameOf(entryOf(offloaded), 64, async () => entryOf())) as EncodedFrame
  expect(decodeFrame(bytes)).toMatchObject({ records: [{ key: 'Zürich', value: Buffer.from('{"n":1}') }] })
  expect(await frameOf(entryOf(offloaded))).toEqual({ reason: 'its bytes are in s3://b/k only, and it is gone' })
})

test('what cannot be redriven says why', async () => {
  expect(await frameOf(entryOf({ topology: 'other' }))).toEqual({
    reason: 'it is a dead letter of topology "other", not of "app"',
  })
  expect(await frameOf(entryOf({ phase: 'sink' }))).toEqual({
    reason:
      'its record is applied to the state of stage "by-key", and only an output was refused by a sink: to apply the record again would change the state twice',
  })
  const omitted = { key: null, payload: null, omitted: { bytes: 9, because: 'large' } }
  expect(await frameOf(entryOf(omitted))).toEqual({
    reason:
      'its value was too large for where dead letters go, and no other place than the stream of stage "by-key" has it',
  })
  expect(await frameOf(entryOf(), { reason: 'it is not fed from here' })).toEqual({ reason: 'it is not fed from here' })
  const large = Buffer.alloc(1_048_576, 'x').toString('base64')
  expect(await frameOf(entryOf({ payload: large }))).toEqual({
    reason: expect.stringMatching(/^it fits in no frame: a frame for slot \d+ has 1048\d+ bytes/),
  })
})
