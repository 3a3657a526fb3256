/** `millrace status | pause | resume | drain | skip | reset` on a deployed application: a stand-in for AWS with the embedded streams and tables. */
import { type KinesisClient, PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ensureStream, localKinesisClient } from '../../lib/local/run/streams.ts'
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
import { onStream, streamArnOf } from './visits-app.ts'

const timeoutMs = 240_000
const shard = 'shardId-000000000000'
const { signal } = new AbortController()

let project: MillraceProject
let stack: StackStandIn
let kinesis: KinesisClient
let visits: StateStore
let byGuest: StateStore

beforeEach(async () => {
  project = await MillraceProject.create()
  stack = await StackStandIn.start()
  kinesis = localKinesisClient(stack.url)
  const dynamodb = localDynamoDBClient(stack.url)
  for (const stage of ['visits', 'by-guest']) await ensureStream(kinesis, systemClock, stage, 1)
  visits = await stateStore(dynamodb, 'visits')
  byGuest = await stateStore(dynamodb, 'by-guest')
  stack.deploy('fn-by-guest', onStream('by-guest'), streamArnOf('by-guest'))
  stack.deploy('fn-announcer', { formatVersion: 1, topology: 'visits-app', announces: [] })
  stack.deploy('fn-of-the-user', undefined)
  const feeds = [{ stage: 'by-guest', slots: 4, streamArn: streamArnOf('by-guest') }]
  stack.deploy('fn-visits', { ...onStream('visits'), feeds }, streamArnOf('visits'))
}, timeoutMs)
afterEach(async () => {
  kinesis.destroy()
  await project.clear()
  await stack.close()
})

const millrace = (command: string, ...args: readonly string[]) =>
  project.result(...command.split(' '), '--stack', 'Visits', '--endpoint', stack.url, ...args)

async function put(stream: string): Promise<string> {
  const Records = [{ Data: Buffer.from('x'), PartitionKey: 'k' }]
  const answer = await kinesis.send(new PutRecordsCommand({ StreamName: stream, Records }))
  return answer.Records?.[0]?.SequenceNumber ?? ''
}

const states = () => [...stack.mappings.values()].map(({ State }) => State)

test(
  'status shows what the functions are bound to and what their tables say',
  async () => {
    const completed = await put('visits')
    await put('by-guest')
    const largestEventTimeMs = Date.UTC(2026, 0, 1, 12)
    const source = { ...blankSourceProgress, completed, number: 1_200, doneThrough: 1_200, largestEventTimeMs }
    await visits.writeProgress(progressName('visits', shard), 0, writeSourceProgress(source), signal)
    const earliest = { event: new Map([[2, largestEventTimeMs + 60_000]]), processing: new Map() }
    const keyed = { ...blankKeyedProgress(4, [0, 1, 2, 3]), earliest, suspect: { from: 4, to: 9, attempts: 2 } }
    await byGuest.writeProgress(progressName('by-guest', shard), 0, writeKeyedProgress(keyed), signal)

    const { code, stdout, stderr } = await millrace('status')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^visits-app \(stack Visits\)\n\nstage /)
    expect(stdout).toMatch(/^visits +feeding +enabled +1 +1,200 +2026-01-01T12:00:00.000Z +0 s +- +yes$/m)
    expect(stdout).toMatch(/^by-guest +keyed +enabled +1 +0 +- +\d+ s +2026-01-01T12:01:00.000Z +no$/m)
    expect(stdout).toContain(
      `by-guest ${shard}: one of the records 4 to 9 may end the process, 2 attempts so far. It is looked for.`,
    )
    const { application, stages } = JSON.parse((await millrace('status', '--json')).stdout)
    expect([application, stages[0].stage, stages[0].partitions[0].number]).toEqual(['visits-app', 'visits', 1_200])
    expect(stages[1].partitions[0]).toMatchObject({ isCaughtUp: false, nextDue: '2026-01-01T12:01:00.000Z' })
  },
  timeoutMs,
)

test(
  'pause and resume switch the mappings and wait until they are switched',
  async () => {
    const paused = await millrace('pause')
    expect([paused.code, paused.stderr]).toEqual([0, ''])
    expect(paused.stdout).toContain('Now paused: visits, by-guest.')
    expect(states()).toEqual(['Disabled', 'Disabled'])
    const again = await millrace('pause')
    expect(again.stdout).toContain('Were paused, or have no mapping: visits, by-guest.')
    const resumed = await millrace('resume', '--stage', 'visits')
    expect(resumed.stdout).toContain('Now enabled: visits.')
    expect(states()).toEqual(['Disabled', 'Enabled'])

    stack.mappings.clear()
    const missing = await millrace('resume')
    expect(missing.code).toBe(1)
    expect(missing.stderr).toContain(
      'by-guest, visits of visits-app (stack Visits) have no event source mapping: deploy',
    )
  },
  timeoutMs,
)

test(
  'a mapping is found that invokes the alias of a function, and those of others are left alone',
  async () => {
    stack.mappings.clear()
    stack.deploy('fn-other', undefined, streamArnOf('by-guest'))
    for (const [name, stage] of [['fn-by-guest', 'by-guest'] as const, ['fn-visits', 'visits'] as const]) {
      stack.deploy(name, stack.functions.get(name)?.bindings, streamArnOf(stage), 'live')
    }
    const paused = await millrace('pause')
    expect([paused.code, paused.stderr]).toEqual([0, ''])
    expect(paused.stdout).toContain('Now paused: visits, by-guest.')
    expect(states()).toEqual(['Enabled', 'Disabled', 'Disabled'])
  },
  timeoutMs,
)

test(
  'drain waits for the keyed stages, and says which has more to do when its time is up',
  async () => {
    const completed = await put('by-guest')
    const late = await millrace('drain', '--wait', '7')
    expect(late.code).toBe(1)
    expect(late.stderr).toContain(
      `Stage by-guest is not drained after 7 s: 1 partition of it (${shard}) has more to do.`,
    )
    expect(states()).toEqual(['Enabled', 'Disabled'])

    const keyed = { ...blankKeyedProgress(4, [0, 1, 2, 3]), completed, number: 1, doneThrough: 1 }
    await byGuest.writeProgress(progressName('by-guest', shard), 0, writeKeyedProgress(keyed), signal)
    const drained = await millrace('drain')
    expect([drained.code, drained.stderr]).toEqual([0, ''])
    expect(drained.stdout).toContain('Waiting 1 second: so long may an invocation run that was in flight.')
    expect(drained.stdout).toContain('visits-app (stack Visits) is drained')
  },
  timeoutMs,
)

test(
  'skip writes only over the progress in which the record fails',
  async () => {
    const failing = { number: 12, attempts: 2 }
    const keyed = { ...blankKeyedProgress(4, [0, 1, 2, 3]), number: 11, doneThrough: 11, failing }
    await byGuest.writeProgress(progressName('by-guest', shard), 0, writeKeyedProgress(keyed), signal)
    const skipped = await millrace('skip by-guest')
    expect([skipped.code, skipped.stderr]).toEqual([0, ''])
    const stored = await byGuest.readProgress(progressName('by-guest', shard), signal)
    expect(stored?.version).toBe(2)
    expect(readKeyedProgress(stored?.value ?? null)).toEqual({ ...keyed, failing: { ...failing, skipped: true } })
  },
  timeoutMs,
)

test(
  'reset empties state, begins a generation, and leaves the mapping of the source to the next deployment',
  async () => {
    const completed = await put('by-guest')
    const source = { ...blankSourceProgress, completed: '7', number: 12, doneThrough: 12 }
    await visits.writeProgress(progressName('visits', shard), 0, writeSourceProgress(source), signal)
    const keyed = { ...blankKeyedProgress(4, [0, 1, 2, 3]), completed, number: 9, doneThrough: 11, known: true }
    await byGuest.writeProgress(progressName('by-guest', shard), 0, writeKeyedProgress(keyed), signal)
    const item = { position: 9, states: { sum: 3 }, expiresAtSeconds: undefined }
    const entries = [{ state: 'rooms', entry: 'r1', value: 1 }]
    for (let key = 0; key < 60; key++) {
      await byGuest.commit({ key: `k${key}`, readPosition: undefined, item, entries }, signal)
    }
    await byGuest.putDue([{ slot: 1, domain: 'event-time', timeMs: 5, key: 'k1' }], signal)
    await byGuest.writeManifest({ format: 1, topology: 'visits-app', stage: 'by-guest', slots: 4 }, signal)

    const done = await millrace('reset', '--from', '2026-01-01T12:00:00+01:00', '--yes')
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toContain('A reset of visits-app (stack Visits) from 2026-01-01T11:00:00.000Z')
    expect(done.stdout).toContain('- empties the state of by-guest: 60 keys, 60 map entries, 1 due entry')
    expect(done.stdout).toContain('Emptied the state of by-guest: 121 items deleted.')
    expect(done.stdout).toContain(
      "new KinesisSource(stream, { startingPosition: new Date('2026-01-01T11:00:00.000Z') }) and deploy",
    )
    expect([...stack.mappings.values()]).toMatchObject([{ EventSourceArn: streamArnOf('by-guest'), State: 'Enabled' }])

    expect((await byGuest.readKeys(['k1', 'k59'], signal)).size).toBe(0)
    expect(await byGuest.readManifest(signal)).toMatchObject({ stage: 'by-guest' })
    const left = await byGuest.readProgress(progressName('by-guest', shard), signal)
    // Versions on: no warm key is good any more. The numbers go on, so that sinks take what is computed again.
    expect(left?.version).toBe(2)
    const kept = { completed, number: 9, doneThrough: 9, generation: 2 }
    expect(readKeyedProgress(left?.value ?? null)).toEqual({ ...blankKeyedProgress(4, [0, 1, 2, 3]), ...kept })
    const again = await visits.readProgress(progressName('visits', shard), signal)
    const begins = { generation: 2, startsAtMs: Date.UTC(2026, 0, 1, 11) }
    expect(readSourceProgress(again?.value ?? null)).toEqual({ ...blankSourceProgress, ...begins })
    const shown = await millrace('status')
    expect(shown.stdout).toMatch(/^visits-app \(stack Visits\), generation 2\n/)
    expect(shown.stdout).toMatch(/^visits +feeding +missing /m)
    expect(shown.stdout).not.toContain('has begun and not ended')
    expect((await millrace('resume')).stderr).toContain(
      "After a reset the source's starting position must be changed for that.",
    )
  },
  timeoutMs,
)

test(
  'state mend with a stage that is paused deletes its mapping, and says what is to be deployed',
  async () => {
    const dynamodb = localDynamoDBClient(stack.url)
    for (const tableName of ['later', 'before']) {
      const store = await stateStore(dynamodb, 'by-guest', tableName)
      await store.writeManifest({ format: 1, topology: 'visits-app', stage: 'by-guest', slots: 4 }, signal)
    }
    dynamodb.destroy()
    const mend = (stage: string, table = 'later') =>
      millrace(`state mend ${table}`, '--earlier', 'before', '--stage', stage)
    expect((await mend('visits')).stderr).toContain('Stage "visits" keeps no keys')
    expect((await mend('by-guest', 'by-guest-table')).stderr).toContain('uses the table by-guest-table')
    const running = await mend('by-guest')
    expect([running.code, running.stderr]).toEqual([
      1,
      expect.stringContaining('The mapping of stage "by-guest" is Enabled: `millrace pause --stack Visits'),
    ])
    expect(stack.mappings.size).toBe(2)
    await millrace('pause', '--stage', 'by-guest')
    const mended = await mend('by-guest')
    expect([mended.code, mended.stderr]).toEqual([0, ''])
    expect(mended.stdout).toMatch(/^later is whole: /)
    expect(mended.stdout).toContain("mapping.startingPosition = 'AT_TIMESTAMP'; mapping.startingPositionTimestamp = ")
    expect([...stack.mappings.values()]).toMatchObject([{ EventSourceArn: streamArnOf('visits'), State: 'Enabled' }])
  },
  timeoutMs,
)

test(
  'a stack that is not there, or holds no application, is an error with a remedy',
  async () => {
    const none = await project.result('status', '--stack', 'Other', '--endpoint', stack.url)
    expect([none.code, none.stderr]).toEqual([
      1,
      'millrace: The resources of stack Other cannot be listed: ValidationError: Stack with id Other does not exist\n',
    ])
    const other = await millrace('status', '--application', 'rides-app')
    expect(other.stderr).toBe(
      'millrace: Stack Visits holds no application rides-app: say --application with one of visits-app.\n',
    )
    stack.functions.clear()
    expect((await millrace('status')).stderr).toContain('Stack Visits has no function of a StreamApplication')
  },
  timeoutMs,
)
