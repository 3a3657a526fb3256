import type { Operated, OperatedStage } from '../../../bin/cli/operate/operated.ts'
import { statusOf } from '../../../bin/cli/operate/stage-status.ts'
import { statusLines } from '../../../bin/cli/operate/status-text.ts'

/** A source with one partition, of which nothing is done and nothing is to be done. */
const stage = (groupLag: OperatedStage['groupLag']): OperatedStage => ({
  name: 'rides',
  kind: 'feeding',
  bindings: {
    formatVersion: 1,
    topology: 'app',
    sources: [],
    sinks: [],
    deadLetters: { kind: 'kinesis', streamName: 'dead' },
  },
  slots: undefined,
  state: { store: { readProgress: async () => undefined } as never, tableName: 'rides' },
  lineage: {
    list: async () => [{ partition: '0', parents: [], isClosed: false }],
    isCaughtUp: async () => true,
  } as never,
  firstWaitingMs: async () => undefined,
  ...(groupLag === undefined ? {} : { groupLag }),
})

async function shown(groupLag: OperatedStage['groupLag']): Promise<string> {
  const operated = { title: 'app', stages: [stage(groupLag)], mappingStates: async () => new Map() }
  const stages = await statusOf(operated as unknown as Operated)
  return statusLines({ title: 'app', note: undefined, flags: '--app app' }, stages, 0).join('\n')
}

const behind = (...offsets: readonly number[]) => ({
  topic: 'rides',
  group: 'g',
  partitions: offsets.map((count, index) => ({
    partition: String(index),
    committed: '5',
    end: String(5 + count),
    behind: count,
  })),
})

test('partitions are shown although nobody may see the group, and the reason is said', async () => {
  const text = await shown(() => Promise.reject(new Error('GROUP_AUTHORIZATION_FAILED: no\nmore')))
  expect(text).toMatch(/^rides +feeding +missing +1 +0 +- +0 s +- +yes$/m)
  expect(text).toContain('rides: its topic is not shown in full. GROUP_AUTHORIZATION_FAILED: no')
  expect(text).not.toContain('more')
})

test('a group is shown with the partitions in which it is most behind, and a stage without a group without', async () => {
  expect(await shown(async () => behind(0, 0))).toContain(
    'rides: group g of topic rides has committed all of 2 partitions.',
  )
  expect(await shown(async () => behind(1, 2_000, 0, 3, 4, 5, 6, 7, 8, 9))).toContain(
    'rides: group g of topic rides is 2,043 behind, in 9 partitions of 10: 1 (2,000), 9 (9), 8 (8), 7 (7), 6 (6), 5 (5), 4 (4), 3 (3) and 1 more.',
  )
  expect(await shown(async () => undefined)).not.toContain('group')
  expect(await shown(undefined)).not.toContain('group')
})
