import { DeadLetterLog } from '../../../lib/local/dead-letters/log.ts'
import { DeadLetterStream, entryAt } from './dead-letter-world.ts'

test('a dead letter that is in the stream several times is one, and its last entry speaks for it', async () => {
  const stream = new DeadLetterStream()
  const again = { ...entryAt('1'), failedAtMs: 9_000 }
  for (const entry of [entryAt('1'), entryAt('2'), entryAt('3'), again]) stream.put(entry)
  const log = new DeadLetterLog(stream)
  await log.refresh()
  expect(log.letters.map(({ entry, places }) => [entry.position, entry.failedAtMs, places])).toEqual([
    ['1', 9_000, ['shard:1', 'shard:4']],
    ['2', 2_000, ['shard:2']],
    ['3', 2_000, ['shard:3']],
  ])
  expect(new Set(log.letters.map(({ handle }) => handle)).size).toBe(3)
})

test('a refresh reads only what is new, and a letter that was handed out before stays as it was', async () => {
  const stream = new DeadLetterStream()
  stream.put(entryAt('1'))
  const log = new DeadLetterLog(stream)
  await log.refresh()
  const [before] = log.letters
  stream.put(entryAt('1'))
  await log.refresh()
  expect(stream.recordsRead).toBe(2)
  expect(before?.places).toEqual(['shard:1'])
  expect(log.get('orders/shardId-000000000000/1/0')?.places).toEqual(['shard:1', 'shard:2'])
})

test('what is no dead letter is named by its place and hides nothing', async () => {
  const stream = new DeadLetterStream()
  for (const value of ['{"cut', '{"formatVersion":3}', '{"hello":1}', entryAt('1')]) stream.put(value)
  const log = new DeadLetterLog(stream)
  await log.refresh()
  expect(log.letters).toHaveLength(1)
  expect(log.unreadable).toEqual([
    { place: 'shard:1', problem: 'it is not JSON' },
    { place: 'shard:2', problem: expect.stringMatching(/^it has format version 3, .*: update Millrace$/) },
    { place: 'shard:3', problem: 'it is not a dead letter of Millrace' },
  ])
})
