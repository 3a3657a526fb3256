import type { ShardRead } from '../../../lib/emulator/event-source-mapping/index.ts'
import { watchReader } from '../../../lib/local/reading/watched-reader.ts'
import { VirtualClock } from '../../../lib/testing/index.ts'

const record = { sequenceNumber: '1', partitionKey: 'k', data: new Uint8Array(), arrivalMs: 0 }

function world() {
  const clock = new VirtualClock(1_000)
  const answers: ShardRead[] = []
  const asked: string[] = []
  const reader = watchReader(
    {
      listShards: async () => [],
      open: async (shardId) => `${shardId}-start`,
      read: async (iterator) => {
        asked.push(iterator)
        return answers.shift() as ShardRead
      },
    },
    clock,
  )
  return { clock, answers, asked, reader }
}

test('an end counts for what was there when the read began, not for what came in the same millisecond', async () => {
  const { answers, reader } = world()
  answers.push({ records: [record], nextIterator: 'next', millisBehindLatest: 0 })
  await reader.read(await reader.open('s1', { at: 'trim-horizon' }), 10)
  expect(reader.hasReachedEnd('s1', 999)).toBe(true)
  expect(reader.hasReachedEnd('s1', 1_000)).toBe(false)
  expect(reader.hasReachedEnd('s2', 0)).toBe(false)
  expect(reader.recordsRead('s1')).toBe(1)
})

test('a read that is behind is no end, and iterators go on where they were', async () => {
  const { answers, asked, reader } = world()
  answers.push({ records: [record], nextIterator: 'next', millisBehindLatest: 5 })
  answers.push({ records: [record, record], nextIterator: null, millisBehindLatest: 0 })
  const first = await reader.read(await reader.open('s1', { at: 'trim-horizon' }), 10)
  expect(reader.hasReachedEnd('s1', 0)).toBe(false)
  const last = await reader.read(String(first.nextIterator), 10)
  expect(asked).toEqual(['s1-start', 'next'])
  expect(last.nextIterator).toBeNull()
  // A closed shard gets nothing new, ever.
  expect(reader.hasReachedEnd('s1', Number.MAX_SAFE_INTEGER)).toBe(true)
  expect(reader.recordsRead('s1')).toBe(3)
})
