/**
 * `millrace status | pause | resume | reset` on a deployed application whose stages read Kafka, from where its brokers are out of reach.
 * test/kafka/operate.test.ts has a broker.
 */
import { localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { progressName } from '../../lib/runtime/progress/open.ts'
import { blankKeyedProgress, blankSourceProgress } from '../../lib/runtime/progress/progress.ts'
import {
  readKeyedProgress,
  readSourceProgress,
  writeKeyedProgress,
  writeSourceProgress,
} from '../../lib/runtime/progress/progress-format.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import { stateStore } from './embedded-tables.ts'
import { MillraceProject } from './millrace-project.ts'
import { StackStandIn } from './stack-stand-in.ts'
import { onTopic } from './visits-app.ts'

const timeoutMs = 240_000
const clusterArn = 'arn:aws:kafka:us-east-1:000000000000:cluster/c/1'
const cluster = { brokers: ['127.0.0.1:1'], auth: { kind: 'none' }, tls: false } as const
const { signal } = new AbortController()

let project: MillraceProject
let stack: StackStandIn
const stores = new Map<string, StateStore>()
const storeOf = (stage: string) => stores.get(stage) as StateStore

/** A source and a keyed stage; `group` is what the source's mapping reads as. */
async function deploy(arn: string | undefined, group?: string): Promise<void> {
  const dynamodb = localDynamoDBClient(stack.url)
  for (const stage of ['visits', 'by-guest']) stores.set(stage, await stateStore(dynamodb, stage))
  const bindingsOf = (stage: string) => onTopic(stage, `${stage}-topic`, cluster, arn)
  stack.deploy('fn-by-guest', bindingsOf('by-guest'))
  stack.mapTopic('fn-by-guest', 'by-guest-topic', arn)
  const feeds = [{ stage: 'by-guest', slots: 4, topic: 'by-guest-topic', partitions: 2, cluster }]
  stack.deploy('fn-visits', { ...bindingsOf('visits'), feeds })
  stack.mapTopic('fn-visits', 'visits-topic', arn, group)
}

beforeEach(async () => {
  project = await MillraceProject.create()
  stack = await StackStandIn.start()
}, timeoutMs)
afterEach(async () => {
  await project.clear()
  await stack.close()
})

const millrace = (command: string, ...args: readonly string[]) =>
  project.result(command, '--stack', 'Visits', '--endpoint', stack.url, ...args)

const states = () => Object.fromEntries([...stack.mappings.values()].map(({ Topics, State }) => [Topics?.[0], State]))

test(
  'status shows the mappings where the brokers are out of reach, and says from where they are to be reached',
  async () => {
    await deploy(clusterArn)
    const { code, stdout, stderr } = await millrace('status')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^visits +feeding +enabled +- +- /m)
    expect(stdout).toMatch(
      /^by-guest: its topic is not shown in full\. The brokers 127\.0\.0\.1:1 do not answer here \(.*\): run the command where they are reached, such as in the VPC of the cluster, as somebody who may describe the topic by-guest-topic\.$/m,
    )
    const { stages } = JSON.parse((await millrace('status', '--json')).stdout)
    expect(stages[0]).toMatchObject({ stage: 'visits', partitions: null, problem: expect.stringContaining('do not') })
    const skipped = await project.result('skip', 'visits', '--stack', 'Visits', '--endpoint', stack.url)
    expect([skipped.code, skipped.stderr]).toEqual([1, expect.stringContaining('run the command where they are')])
  },
  timeoutMs,
)

test.each([
  ['of MSK', clusterArn],
  ['of the user, which has no ARN', undefined],
])(
  'pause and resume switch the mapping of the stage’s topic, of a cluster %s',
  async (_, arn) => {
    await deploy(arn)
    const paused = await millrace('pause', '--stage', 'visits')
    expect([paused.code, paused.stderr]).toEqual([0, ''])
    expect(paused.stdout).toContain('Now paused: visits.')
    expect(states()).toEqual({ 'by-guest-topic': 'Enabled', 'visits-topic': 'Disabled' })
    expect((await millrace('resume')).stdout).toContain('Now enabled: visits.')
    expect(states()).toEqual({ 'by-guest-topic': 'Enabled', 'visits-topic': 'Enabled' })
    stack.mappings.clear()
    expect((await millrace('resume')).stderr).toContain('by-guest, visits of visits-app (stack Visits) have no event')
  },
  timeoutMs,
)

test(
  'reset deletes the mapping of the source, whose next one has a group of its own, and says what is to be deployed',
  async () => {
    await deploy(clusterArn)
    const source = { ...blankSourceProgress, completed: '7', number: 8, doneThrough: 8, log: 'topic-id' }
    await storeOf('visits').writeProgress(progressName('visits', '1'), 0, writeSourceProgress(source), signal)
    const keyed = { ...blankKeyedProgress(4, [1, 3]), completed: '5', number: 9, doneThrough: 9, log: 'topic-id' }
    await storeOf('by-guest').writeProgress(progressName('by-guest', '1'), 0, writeKeyedProgress(keyed), signal)

    const done = await millrace('reset', '--from', '2026-01-01T12:00:00Z', '--yes')
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toContain('- reads source visits again, the records of that timestamp or later\n')
    expect(done.stdout).toContain(
      "Bind the source with new KafkaSource(cluster, topic, { startingPosition: new Date('2026-01-01T12:00:00.000Z') }) and deploy",
    )
    expect(done.stdout).not.toContain('consumer group')
    expect(states()).toEqual({ 'by-guest-topic': 'Enabled' })
    const again = await storeOf('visits').readProgress(progressName('visits', '1'), signal)
    const begins = { generation: 2, startsAtMs: Date.UTC(2026, 0, 1, 12) }
    expect(readSourceProgress(again?.value ?? null)).toEqual({ ...blankSourceProgress, ...begins })
    const left = await storeOf('by-guest').readProgress(progressName('by-guest', '1'), signal)
    const kept = { completed: '5', number: 9, doneThrough: 9, generation: 2, log: 'topic-id' }
    expect(readKeyedProgress(left?.value ?? null)).toEqual({ ...blankKeyedProgress(4, [1, 3]), ...kept })
  },
  timeoutMs,
)

test(
  'where the mapping reads as a group of the user’s choice, reset says that another is to be named',
  async () => {
    await deploy(undefined, 'visits-readers')
    const done = await millrace('reset', '--from', '2026-01-01T12:00:00Z', '--yes')
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toContain(
      'It read as the consumer group visits-readers, which was named in the stack: name another one in the same deployment',
    )
  },
  timeoutMs,
)
