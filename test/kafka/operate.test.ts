/** `millrace status | drain | skip` on a deployed application whose stages read topics of a broker; its functions are a stand-in's. */
import { Admin } from '@platformatic/kafka'
import { localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { progressName } from '../../lib/runtime/progress/open.ts'
import { blankKeyedProgress, blankSourceProgress } from '../../lib/runtime/progress/progress.ts'
import {
  readSourceProgress,
  writeKeyedProgress,
  writeSourceProgress,
} from '../../lib/runtime/progress/progress-format.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import { stateStore } from '../bin/embedded-tables.ts'
import { MillraceProject } from '../bin/millrace-project.ts'
import { StackStandIn } from '../bin/stack-stand-in.ts'
import { onTopic } from '../bin/visits-app.ts'
import { closing, never, newTopic, plain, producer, withBroker } from './broker.ts'

jest.setTimeout(240_000)

const clusterArn = 'arn:aws:kafka:us-east-1:000000000000:cluster/c/1'
const cluster = { brokers: plain.bootstrapBrokers as string[], auth: { kind: 'none' }, tls: false } as const

withBroker('operating on topics', () => {
  let project: MillraceProject
  let stack: StackStandIn
  let topics: { readonly visits: string; readonly byGuest: string }
  let visits: StateStore
  let byGuest: StateStore

  beforeEach(async () => {
    project = await MillraceProject.create()
    stack = await StackStandIn.start()
    topics = { visits: await newTopic(3), byGuest: await newTopic(2) }
    const dynamodb = localDynamoDBClient(stack.url)
    visits = await stateStore(dynamodb, 'visits')
    byGuest = await stateStore(dynamodb, 'by-guest')
    const bindingsOf = (stage: string, topic: string) => onTopic(stage, topic, cluster, clusterArn)
    stack.deploy('fn-by-guest', bindingsOf('by-guest', topics.byGuest))
    stack.mapTopic('fn-by-guest', topics.byGuest, clusterArn, `${topics.byGuest}-group`)
    const feeds = [{ stage: 'by-guest', slots: 4, topic: topics.byGuest, partitions: 2, cluster }]
    stack.deploy('fn-visits', { ...bindingsOf('visits', topics.visits), feeds })
    stack.mapTopic('fn-visits', topics.visits, clusterArn, `${topics.visits}-group`)
  })
  afterEach(async () => {
    await project.clear()
    await stack.close()
  })

  const millrace = (command: string, ...args: readonly string[]) =>
    project.result(command, ...args, '--stack', 'Visits', '--endpoint', stack.url)

  const send = (topic: string, partition: number, count: number) => {
    const message = { partition, key: undefined, value: Buffer.from('x') }
    return producer().send(
      topic,
      Array.from({ length: count }, () => message),
      never(),
    )
  }

  async function commit(topic: string, offsets: readonly { readonly partition: number; readonly offset: bigint }[]) {
    const admin = new Admin({ clientId: 'millrace-test', ...plain })
    closing.push(() => admin.close())
    const partitionOffsets = [...offsets]
    await admin.alterConsumerGroupOffsets({ groupId: `${topic}-group`, topics: [{ name: topic, partitionOffsets }] })
  }

  /** Progress of a partition of which the first records are done. */
  const done = (count: number) => ({
    ...{ completed: String(count - 1), number: count, doneThrough: count },
  })

  test('status shows how far progress is, and by how many offsets the group of each mapping is behind', async () => {
    await send(topics.visits, 0, 4)
    await send(topics.visits, 2, 30)
    const largestEventTimeMs = Date.UTC(2026, 0, 1, 12)
    for (const [partition, count] of [['0', 4] as const, ['2', 10] as const]) {
      const progress = { ...blankSourceProgress, ...done(count), largestEventTimeMs }
      await visits.writeProgress(progressName('visits', partition), 0, writeSourceProgress(progress), never())
    }
    await commit(topics.visits, [
      { partition: 0, offset: 3n },
      { partition: 2, offset: 10n },
    ])
    const { code, stdout, stderr } = await millrace('status')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^visits +feeding +enabled +3 +14 +2026-01-01T12:00:00.000Z +\d+ s +- +no$/m)
    expect(stdout).toMatch(/^by-guest +keyed +enabled +2 +0 +- +0 s +- +yes$/m)
    expect(stdout).toContain(
      `visits: group ${topics.visits}-group of topic ${topics.visits} is 21 behind, in 2 partitions of 3: 2 (20), 0 (1).\n`,
    )
    expect(stdout).toContain(
      `by-guest: group ${topics.byGuest}-group of topic ${topics.byGuest} has committed all of 2 partitions.\n`,
    )
    const { stages } = JSON.parse((await millrace('status', '--json')).stdout)
    expect(stages[0].lag).toEqual({
      topic: topics.visits,
      group: `${topics.visits}-group`,
      partitions: [
        { partition: '0', committed: '3', end: '4', behind: 1 },
        { partition: '1', end: '0', behind: 0 },
        { partition: '2', committed: '10', end: '30', behind: 20 },
      ],
    })
    expect(stages[0].partitions).toMatchObject([{ isCaughtUp: true }, { isCaughtUp: true }, { isCaughtUp: false }])
  })

  test('where nothing is committed yet, all that the mapping begins with is behind', async () => {
    await send(topics.byGuest, 1, 5)
    expect((await millrace('status')).stdout).toContain(
      `by-guest: group ${topics.byGuest}-group of topic ${topics.byGuest} is 5 behind, in 1 partition of 2: 1 (5).\n`,
    )
  })

  test('drain waits until a keyed stage has read its topic to the end', async () => {
    await send(topics.byGuest, 1, 3)
    const late = await millrace('drain', '--wait', '7')
    expect([late.code, late.stderr]).toEqual([
      1,
      expect.stringContaining('Stage by-guest is not drained after 7 s: 1 partition of it (1) has more to do.'),
    ])
    const keyed = { ...blankKeyedProgress(4, [1, 3]), ...done(3) }
    await byGuest.writeProgress(progressName('by-guest', '1'), 0, writeKeyedProgress(keyed), never())
    const drained = await millrace('drain')
    expect([drained.code, drained.stderr]).toEqual([0, ''])
    expect(drained.stdout).toContain('visits-app (stack Visits) is drained')
  })

  test('skip gives up what fails in a partition, named by its number', async () => {
    await send(topics.visits, 2, 3)
    const failing = { number: 3, attempts: 2 }
    const progress = { ...blankSourceProgress, ...done(2), failing }
    await visits.writeProgress(progressName('visits', '2'), 0, writeSourceProgress(progress), never())
    expect((await millrace('status')).stdout).toContain(
      `visits 2: record 3 fails, 2 attempts so far. \`millrace skip visits --partition 2 --stack Visits --endpoint ${stack.url}\` makes it a dead letter.\n`,
    )
    const skipped = await millrace('skip', 'visits', '--partition', '2')
    expect([skipped.code, skipped.stderr]).toEqual([0, ''])
    const stored = await visits.readProgress(progressName('visits', '2'), never())
    expect(readSourceProgress(stored?.value ?? null).failing).toEqual({ ...failing, skipped: true })
  })
})
