/** `millrace state explain` on tables of keyed stages: of one that reads a Kafka topic, the table says all that there is to say. */
import { runCommand } from '../../../bin/cli/commands.ts'
import type { DynamoDBStateStore } from '../../../lib/aws/state-table/store.ts'
import { slotOf } from '../../../lib/core/slot.ts'
import { progressName } from '../../../lib/runtime/progress/open.ts'
import { blankKeyedProgress } from '../../../lib/runtime/progress/progress.ts'
import { writeKeyedProgress } from '../../../lib/runtime/progress/progress-format.ts'
import { type EmbeddedTables, startTables, stateStore } from '../embedded-tables.ts'

const { signal } = new AbortController()
const atMs = Date.UTC(2026, 0, 1, 12)
const slots = 16
const key = 'line-7'
// 15, so that no two counts have it in one partition.
const slot = slotOf(key, slots)
let tables: EmbeddedTables

beforeAll(async () => {
  tables = await startTables()
})
afterAll(() => tables.close())

/** A table that holds one key with a timer, at position 5. */
async function tableOf(tableName: string, log: { readonly log?: 'topic' }): Promise<DynamoDBStateStore> {
  const store = await stateStore(tables.client, 'by-line', tableName)
  await store.writeManifest({ format: 1, topology: 'rides', stage: 'by-line', slots, ...log }, signal)
  const own = { timers: { 'event-time': { early: atMs - 1, late: atMs + 60_000 } } }
  const item = { position: 5, states: {}, expiresAtSeconds: undefined, own }
  await store.commit({ key, readPosition: undefined, item, entries: [] }, signal)
  return store
}

/** A topic of so many partitions, in each of which eight numbers are done; the answer is the one that holds the key. */
async function done(store: DynamoDBStateStore, partitions: number): Promise<string> {
  const upstream = { name: 'rides', partition: '3', generation: 1 }
  for (let partition = 0; partition < partitions; partition += 1) {
    const held = Array.from({ length: slots / partitions }, (_, at) => partition + at * partitions)
    const progress = {
      ...blankKeyedProgress(slots, held),
      ...{ completed: '41', number: 8, doneThrough: 8, log: 'a-topic-id', known: true },
      ...{ watermarkMs: atMs, processingMs: atMs + 1_000 },
      upstreams: new Map([['rides/3', { upstream, state: 'open' as const, markMs: atMs, closedAtMs: 0 }]]),
    }
    await store.writeProgress(progressName('by-line', String(partition)), 0, writeKeyedProgress(progress), signal)
  }
  return String(slot % partitions)
}

async function explained(tableName: string, ...flags: readonly string[]): Promise<string> {
  const said: string[] = []
  const typed = ['state', 'explain', 'by-line', key, '--table', tableName, '--endpoint', tables.url, ...flags]
  expect(await runCommand(typed, (line) => void said.push(line))).toBe(0)
  return said.join('\n')
}

test('a stage on a topic has a partition by number, an offset, and the id of its topic; nobody says which', async () => {
  const store = await tableOf('on-topic', { log: 'topic' })
  const partition = await done(store, 4)
  const text = await explained('on-topic')
  expect(text).toMatch(
    new RegExp(`^partition   ${partition} of the stage's Kafka topic, which has the id a-topic-id$`, 'm'),
  )
  expect(text).toMatch(/^position {4}5: every record of the key up to this number/m)
  expect(text).toMatch(/^done {8}8 numbers are done, up to offset 41$/m)
  expect(text).toMatch(/^since then {2}3 further numbers are done, none of which changed this key$/m)
  expect(text).toMatch(
    /^as of {7}2026-01-01T12:00:01.000Z \(UTC\): the newest entry that is done came into the topic then$/m,
  )
  expect(text).toMatch(/^ {14}rides partition 3 {2}open {2}mark 2026-01-01T12:00:00.000Z$/m)
  expect(text).toMatch(/^timers {6}2 timers, 1 due$/m)
  expect(text).not.toMatch(/\bstream\b|shard|sequence/)
  expect(JSON.parse(await explained('on-topic', '--json'))).toMatchObject({
    ...{ key, slot, position: 5, log: 'topic', current: partition },
    partitions: [{ partition, topicId: 'a-topic-id', progress: { completed: '41', doneThrough: 8 } }],
  })
})

test.each([1, 2, 4, 8, 16])('the partition is found whether the topic has %d of them', async (partitions) => {
  const name = `of-${partitions}`
  const store = await tableOf(name, { log: 'topic' })
  const partition = await done(store, partitions)
  expect(JSON.parse(await explained(name, '--json'))).toMatchObject({ current: partition })
})

test('where nothing of the topic is done, what is known of the key is shown yet', async () => {
  await tableOf('begun', { log: 'topic' })
  const text = await explained('begun')
  expect(text).toMatch(/^partition {3}not known yet: nothing of the stage's Kafka topic is done$/m)
  expect(text).toMatch(/^timers {6}2 timers$/m)
  expect(JSON.parse(await explained('begun', '--json'))).toMatchObject({ log: 'topic', partitions: [], current: null })
})

test('--stream is for a stage that reads one', async () => {
  await tableOf('no-stream', { log: 'topic' })
  await expect(explained('no-stream', '--stream', 'rides')).rejects.toThrow(
    'stage "by-line" reads a Kafka topic, whose partitions its table knows: leave --stream out.',
  )
  await tableOf('stream', {})
  expect(await explained('stream')).toMatch(/^partition {3}not known: say with --stream which stream the stage reads$/m)
})
