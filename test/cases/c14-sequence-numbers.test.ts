/** C14: what names a record is its shard, its sequence number and, in an aggregate, its place; sequence numbers are numbers. */
import { text } from '../../lib/core/format.ts'
import { valueState } from '../../lib/state/states.ts'
import { kinesisEvent } from '../../lib/testing/events.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { aggregateOf } from '../aws/events/kpl-aggregate-bytes.ts'
import { StageOnTable, stores } from './stage-on-table.ts'

/** Counts per line. The line "second" throws once, before the `keyBy` or in the keyed step. */
function counting(throwsOnceIn?: 'map' | 'step') {
  const app = new Topology('app')
  const out = app.sink<string>('out')
  let left = throwsOnceIn === undefined ? 0 : 1
  const fail = (line: string, where: string) => {
    if (where !== throwsOnceIn || line !== 'second' || left === 0) return
    left -= 1
    throw new Error('once')
  }
  app
    .source('lines', text())
    .map((line) => {
      fail(line, 'map')
      return line
    })
    .keyBy('by-key', (line) => line)
    .process('counting', {
      state: { count: valueState<number>() },
      step(line, { state }) {
        fail(line, 'step')
        const count = (state.count.get() ?? 0) + 1
        state.count.set(count)
        return [`${line} ${count}`]
      },
    })
    .to(out)
  return { app, out }
}

const aggregate = (...lines: string[]) => aggregateOf(lines.map((data) => ({ partitionKey: 'p', data })))

/** An event whose records have these sequence numbers. */
function numbered(
  payloads: readonly (string | Uint8Array)[],
  numbers: readonly string[],
  shardId = 'shardId-000000000000',
) {
  const event = kinesisEvent(payloads, { shardId })
  for (const [i, record] of event.Records.entries()) {
    const sequenceNumber = numbers[i] as string
    record.kinesis.sequenceNumber = sequenceNumber
    record.eventID = `${shardId}:${sequenceNumber}`
  }
  return event
}

describe.each(stores)('C14 on the %s store', (store) => {
  test.each(['map', 'step'] as const)(
    'the second record of an aggregate fails once in its %s: the number of the whole is reported, and the first is counted once',
    async (where) => {
      const { app, out } = counting(where)
      const stage = new StageOnTable(app, store, { checksPurity: false })
      await stage.send(numbered(['before', aggregate('first', 'second', 'third')], ['100', '101']))
      expect(stage.ports.received(out).toSorted()).toEqual(['before 1', 'first 1', 'second 1', 'third 1'])
      expect(stage.ports.deadLettered).toEqual([])
      // In the source it is the aggregate that comes again, once; the keyed stage reads frames with numbers of their own.
      expect(stage.answers[0]).toEqual(where === 'map' ? ['101'] : [])
      expect(stage.answers.flat()).toHaveLength(1)
    },
  )

  test('a sequence number with fewer digits is older, whatever its first digit is', async () => {
    const { app, out } = counting()
    const stage = new StageOnTable(app, store)
    await stage.send(numbered(['a', 'a'], ['9900000000002513012315', '10000000000002513012315']))
    // The older one comes again, alone: it is done, as progress is at the longer number.
    await stage.send(numbered(['a'], ['9900000000002513012315']))
    await stage.send(numbered(['a'], ['10000000000002513012316']))
    expect(stage.ports.received(out)).toEqual(['a 1', 'a 2', 'a 3'])
  })

  test('one number on two shards is two records, and each is counted once', async () => {
    const { app, out } = counting()
    const stage = new StageOnTable(app, store)
    const events = ['shardId-000000000000', 'shardId-000000000001'].map((shard) => numbered(['a'], ['100'], shard))
    for (const event of [...events, ...events]) await stage.send(event)
    expect(stage.ports.received(out)).toEqual(['a 1', 'a 2'])
  })
})
