import { encodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import { endOf, type Interval, ownPosition, startOf } from '../../../lib/runtime/frames/position.ts'
import { type Faults, noFaults } from '../../../lib/testing/simulator/faults.ts'
import { KinesisService } from '../../../lib/testing/simulator/kinesis-service.ts'
import { readInternalLog } from '../../../lib/testing/simulator/oracle.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import { newOwner } from '../../../lib/testing/simulator/scheduler.ts'
import { Streams } from '../../../lib/testing/simulator/streams.ts'
import { run, scheduler } from './simulator-world.ts'

const owner = newOwner('test')
const never = new AbortController().signal

function world(faults: Partial<Faults> = {}) {
  const clocked = scheduler()
  const streams = new Streams({
    service: new KinesisService({ nowMs: () => clocked.nowMs() }),
    scheduler: clocked,
    random: new Random(1),
    faults: () => ({ ...noFaults, ...faults }),
    count: () => undefined,
  })
  const stream = streams.create('by-user', 1, 8)
  /** Lets the scheduler go on until the call is answered. */
  const answered = async <T>(call: Promise<T>): Promise<T> => {
    await run(clocked)
    return call
  }
  return { clocked, streams, stream, answered }
}

/** A frame of one record for slot 3, which claims the record's number and what else is told. */
const frame = (number: number, partition = 'p0', slot = 3, claims: readonly Interval[] = []) =>
  encodeFrame({
    kind: 'frame',
    upstream: { name: 'orders', partition },
    slot,
    schemaVersion: 1,
    markMs: 0,
    claims: [...claims, { previous: startOf(number), last: endOf(number) }],
    records: [
      {
        position: ownPosition(number, 0),
        side: 'orders',
        key: 'k',
        ownMarkMs: 0,
        eventTimeMs: 0,
        value: Buffer.from(String(number)),
        origin: { source: 'orders', partition, position: String(number), subPosition: 0, arrivalTimeMs: 0 },
        redrive: undefined,
      },
    ],
  })

describe('frames', () => {
  const numbersIn = (stream: ReturnType<typeof world>['stream']) =>
    readInternalLog<number>(stream, 'by-user').records.map(({ value, isOvertaken }) => [value, isOvertaken])

  test('one that may be overtaken lands behind the next of its slot and upstream', async () => {
    const { streams, stream, answered } = world({ overtaking: 1 })
    const port = streams.frames(owner, 'by-user')
    await answered(port.put([frame(1)]))
    await answered(port.put([frame(2)]))
    expect(numbersIn(stream)).toEqual([
      [2, false],
      [1, true],
    ])
    expect(streams.inversions).toBe(1)
  })

  test.each([
    ['of another upstream', frame(2, 'p1')],
    ['of another slot', frame(2, 'p0', 5)],
  ])('one %s does not overtake', async (_, other) => {
    const { streams, stream, answered } = world({ overtaking: 1 })
    const port = streams.frames(owner, 'by-user')
    await answered(port.put([frame(1)]))
    await answered(port.put([other]))
    streams.land()
    expect(numbersIn(stream).map(([number]) => number)).toEqual([1, 2])
  })

  test('one that a reader saw is not overtaken any more, nor one in a shard that is closed', async () => {
    const { streams, stream, answered } = world({ overtaking: 1 })
    const port = streams.frames(owner, 'by-user')
    const reader = streams.reader(owner, 'by-user')
    await answered(port.put([frame(1)]))
    const iterator = await answered(reader.open('shardId-000000000000', { at: 'trim-horizon' }))
    expect((await answered(reader.read(iterator, 10))).records).toHaveLength(1)
    await answered(port.put([frame(2)]))
    streams.reshard(stream)
    await answered(port.put([frame(3)]))
    streams.land()
    expect(numbersIn(stream).map(([number]) => number)).toEqual([1, 2, 3])
  })

  test('refused ones do not land; of others the acknowledgement may be lost', async () => {
    const refusing = world({ refusedItem: 1 })
    const refused = await refusing.answered(refusing.streams.frames(owner, 'by-user').put([frame(1)]))
    expect(refused?.map(({ status }) => status)).toEqual(['refused'])
    expect(numbersIn(refusing.stream)).toEqual([])
    const losing = world({ lostAcknowledgement: 1 })
    const lost = await losing.answered(losing.streams.frames(owner, 'by-user').put([frame(1)]))
    expect(lost?.map(({ status }) => status)).toEqual(['refused'])
    expect(numbersIn(losing.stream)).toEqual([[1, false]])
  })
})

test('a record that an earlier frame of its slot and upstream claims was never sent is denied, and no other', async () => {
  const { streams, stream, answered } = world()
  const port = streams.frames(owner, 'by-user')
  const reach = [{ previous: startOf(2), last: endOf(4) }]
  const sent = [frame(6, 'p0', 3, reach), frame(2), frame(3), frame(3, 'p1'), frame(4, 'p0', 5), frame(1)]
  for (const one of sent) await answered(port.put([one]))
  const { records } = readInternalLog<number>(stream, 'by-user')
  expect(records.map(({ value, isDenied }) => [value, isDenied])).toEqual([
    [6, false],
    [2, true],
    [3, true],
    [3, false],
    [4, false],
    [1, false],
  ])
})

describe('lineage', () => {
  test('a parent is drained once it is closed and nothing lies behind', async () => {
    const { streams, stream, answered } = world()
    const lineage = streams.lineage(owner, 'by-user')
    const { record } = streams.put('by-user', '0', Buffer.from('x'), 0)
    const drained = (after?: string) => answered(lineage.isDrained('shardId-000000000000', after, never))
    expect(await drained(record.sequenceNumber)).toBe(false)
    streams.reshard(stream)
    expect(await drained()).toBe(false)
    expect(await drained(record.sequenceNumber)).toBe(true)
    const child = await answered(lineage.describe('shardId-000000000001', never))
    expect(child?.parents).toEqual(['shardId-000000000000'])
    expect(await answered(lineage.describe('shardId-000000000009', never))).toBeUndefined()
  })

  test('every slot is held by exactly one open shard, whatever is split and merged', () => {
    const { streams, stream } = world()
    for (let i = 0; i < 12; i++) {
      streams.reshard(stream)
      const open = [...stream.shards.values()].filter(({ isClosed }) => !isClosed)
      expect(open.flatMap(({ slots }) => [...slots]).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    }
  })
})
