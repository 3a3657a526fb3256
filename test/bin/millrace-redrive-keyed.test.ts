/** Redrive into keyed state by the command line: on a local run that stands or goes, and of deployed functions. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DynamoDBStateStore } from '../../lib/aws/state-table/store.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { SourceRecord } from '../../lib/core/record.ts'
import { KinesisShardReader } from '../../lib/local/reading/kinesis-shard-reader.ts'
import { ensureStream, localKinesisClient } from '../../lib/local/run/streams.ts'
import { ensureStateTable, localDynamoDBClient } from '../../lib/local/run/tables.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'
import { deadLetterOf } from '../../lib/runtime/dead-letter.ts'
import { decodeFrame } from '../../lib/runtime/frames/frame-format.ts'
import { writeGeneration } from '../../lib/runtime/progress/generation.ts'
import { CloudStandIn } from './cloud-stand-in.ts'
import { MillraceProject } from './millrace-project.ts'
import { handlerFile, topologyFile } from './orders-app.ts'
import { TotalsApp } from './totals-app.ts'

const timeoutMs = 240_000
let project: MillraceProject
let app: TotalsApp

beforeEach(async () => {
  project = await MillraceProject.create()
  app = new TotalsApp(project)
  await app.writeHandler()
})
afterEach(() => project.clear())

const broken = { feeding: true, keyed: true }
const whole = { feeding: false, keyed: false }

const startMs = Date.UTC(2026, 0, 1)
const order = (customer: string, unit: string, count: number) =>
  `${JSON.stringify({ customer, unit, count, at: startMs + count })}\n`

async function totalsBecome(expected: Readonly<Record<string, number>>): Promise<void> {
  const endMs = systemClock.nowMs() + timeoutMs / 4
  while (JSON.stringify(await app.totals()) !== JSON.stringify(expected) && systemClock.nowMs() < endMs) {
    await systemClock.sleep(20)
  }
  expect(await app.totals()).toEqual(expected)
}

const redrive = (...flags: readonly string[]) => project.result('dead-letters', 'redrive', ...flags)

let inputs = 0
/** Runs until this and all that waits is processed. */
async function once(input: string): Promise<void> {
  const name = `input-${inputs++}.ndjson`
  await project.write(name, input)
  expect(await project.result('dev', topologyFile, '--input', name, '--once')).toMatchObject({ code: 0, stderr: '' })
}

test(
  'poison of a feeding and of a keyed step is redriven into the state once, also when what was redriven is forgotten',
  async () => {
    await app.writeTopology(broken)
    await once(order('ann', 'piece', 1) + order('ann', 'barrel', 10) + order('ann', 'crate', 100))
    expect(await app.totals()).toEqual({ ann: 1 })
    const before = await redrive('--all')
    expect([before.code, before.stderr]).toEqual([1, ''])
    // The stage that fails again runs only when the run does.
    expect(before.stdout).toContain('1 done, 1 given up again, 0 returned, 0 refused\n')

    await once(order('bob', 'piece', 1))
    expect(await app.totals()).toEqual({ ann: 1, bob: 1 })
    await app.writeTopology(whole)
    const after = await redrive('--all')
    expect([after.code, after.stdout]).toEqual([0, expect.stringContaining('2 done, 0 given up again')])
    expect((await redrive('--all')).stdout).toBe('Nothing to redrive.\n')
    await once(order('bob', 'piece', 1))
    expect(await app.totals()).toEqual({ ann: 111, bob: 2 })

    await rm(join(project.directory, '.millrace/orders-app/redriven.ndjson'))
    expect((await redrive('--all')).stdout).toContain('2 done, 0 given up again')
    await once(order('ann', 'piece', 1) + order('bob', 'piece', 1))
    expect(await app.totals()).toEqual({ ann: 112, bob: 3 })
  },
  timeoutMs,
)

test(
  'beside a run that is up, what is redriven is in the state at once, and once',
  async () => {
    await app.writeTopology(broken)
    await once(order('ann', 'barrel', 10) + order('ann', 'crate', 100) + order('ann', 'piece', 1))
    const listed = await project.result('dead-letters', 'list', '--json')
    const keyed = listed.stdout.split('\n').find((line) => line.includes('"keyed"')) ?? ''
    const shown = await project.result('dead-letters', 'show', JSON.parse(keyed).handle)
    expect(shown.stdout).toMatch(/^in the stage {2}number \d of slot \d+, by by-customer$/m)
    expect(shown.stdout).toContain('{"customer":"ann","unit":"barrel","count":10')

    const dev = project.run('dev', topologyFile)
    await dev.shows(/with Kinesis at/)
    await app.writeTopology(whole)
    await dev.shows(/^Reloaded\.$/m)
    expect((await redrive('--all')).stdout).toContain('2 done, 0 given up again')
    await totalsBecome({ ann: 111 })
    await rm(join(project.directory, '.millrace/orders-app/redriven.ndjson'))
    expect((await redrive('--all')).stdout).toContain('2 done, 0 given up again')
    dev.signal('SIGINT')
    expect([await dev.ends(), dev.stderr]).toEqual([0, ''])
    await once(order('ann', 'piece', 1))
    expect(await app.totals()).toEqual({ ann: 112 })
  },
  timeoutMs,
)

test(
  'what was given up before a reset is refused: the reset has its record read again, and it counts once',
  async () => {
    await app.writeTopology(broken)
    await once(order('ann', 'piece', 1) + order('ann', 'barrel', 10) + order('ann', 'crate', 100))
    await app.writeTopology(whole)
    const reset = await project.result('reset', '--from', '2026-01-01T00:00:00Z', '--yes')
    expect([reset.code, reset.stderr]).toEqual([0, ''])
    const { code, stdout } = await redrive('--all')
    expect([code, stdout]).toEqual([1, expect.stringContaining('0 done, 0 given up again, 0 returned, 2 refused')])
    for (const stage of ['orders', 'by-customer']) {
      expect(stdout).toContain(`it was given up in generation 1 of stage "${stage}", which was reset since`)
    }
    await once(order('bob', 'piece', 1))
    expect(await app.totals()).toEqual({ ann: 111, bob: 1 })
  },
  timeoutMs,
)

const streamArn = (name: string) => `arn:aws:kinesis:us-east-1:000000000000:stream/${name}`

/** Dead letters as the stage that feeds and the keyed one write them. */
function letters(phase: 'step' | 'sink' = 'step') {
  const at = { partition: 'shardId-000000000000', arrivalTimeMs: startMs + 9, key: 'ann' }
  const value = Buffer.from(order('ann', 'crate', 100).trim())
  const failure = { error: Object.assign(new Error('no'), { code: 'unknown-unit' }), phase, attempts: 1 }
  const where = { topology: 'orders-app', failedAtMs: startMs }
  const record = (position: string) => new SourceRecord({ source: 'orders', ...at, position, payload: value })
  const keyed = { side: 'by-customer', slot: 0, number: 7, eventTimeMs: startMs + 100, ownMarkMs: startMs + 50 }
  return {
    feeding: deadLetterOf(record('1'), failure, { ...where, stage: 'orders' }, { ownMarkMs: startMs + 60 }),
    keyed: deadLetterOf(
      record('2'),
      failure,
      { ...where, stage: 'by-customer' },
      { id: 'by-customer/slot-0/7', keyed },
    ),
  }
}

test(
  'dead letters of a deployed application go by the function of their source, and from it to the stream that it feeds',
  async () => {
    const cloud = await CloudStandIn.start()
    try {
      const client = localKinesisClient(cloud.url)
      await ensureStream(client, systemClock, 'orders-app-by-customer', 1)
      const dynamodb = localDynamoDBClient(cloud.url)
      await ensureStateTable(dynamodb, systemClock, 'orders-app-orders-state')
      await app.writeTopology(whole)
      const bindings: StageBindings = {
        ...{ formatVersion: 1, topology: 'orders-app', sinks: [{ name: 'totals', kind: 'custom' }] },
        sources: [{ name: 'orders', kind: 'kinesis', streamArn: streamArn('orders') }],
        deadLetters: { kind: 'sqs', queueUrl: cloud.queueUrl },
        state: { tableName: 'orders-app-orders-state' },
        feeds: [{ stage: 'by-customer', slots: 64, streamArn: streamArn('orders-app-by-customer') }],
      }
      const entry = join(project.directory, handlerFile)
      await cloud.deploy('orders-fn', entry, project.directory, bindings)
      const run = () => redrive('--queue', cloud.queueUrl, '--endpoint', cloud.url, '--function', 'orders-fn', '--all')
      const { feeding, keyed } = letters()
      const others = [letters('sink').keyed, { ...keyed, stage: 'by-city', id: 'by-city/slot-0/7' }]
      for (const letter of [feeding, keyed]) cloud.send(JSON.stringify(letter))
      const first = await run()
      expect([first.code, first.stderr, first.stdout]).toEqual([0, '', expect.stringContaining('2 done')])
      expect(cloud.messages.size).toBe(0)

      // From a machine that knows nothing of it.
      for (const directory of await readdir(join(project.directory, '.millrace')))
        await rm(join(project.directory, '.millrace', directory), { recursive: true })
      for (const letter of [feeding, keyed]) cloud.send(JSON.stringify(letter))
      expect((await run()).stdout).toContain('2 done')
      for (const letter of others) cloud.send(JSON.stringify(letter))
      const last = await run()
      expect(last.stdout).toContain(
        '1 dead letter of other sources and keyed stages than orders, by-customer: left for their own functions.\n',
      )
      expect([last.code, last.stdout]).toEqual([
        1,
        expect.stringContaining('refused: its record is applied to the state'),
      ])

      const store = { client: dynamodb, tableName: 'orders-app-orders-state', stage: 'orders', clock: systemClock }
      await writeGeneration(new DynamoDBStateStore(store), 'orders', { generation: 2 }, AbortSignal.timeout(timeoutMs))
      dynamodb.destroy()
      for (const letter of [feeding, keyed]) {
        cloud.send(JSON.stringify({ ...letter, id: `${letter.id}/old` }))
        cloud.send(JSON.stringify({ ...letter, id: `${letter.id}/new`, generation: 2 }))
      }
      expect((await run()).stdout).toContain('2 done, 0 given up again, 0 returned, 3 refused')

      const reader = new KinesisShardReader({ client, streamName: 'orders-app-by-customer', clock: systemClock })
      const { records } = await reader.read(await reader.open('shardId-000000000000', { at: 'trim-horizon' }), 100)
      client.destroy()
      const sent = records.flatMap(({ data }) => {
        const frame = decodeFrame(data)
        return frame.kind === 'redrive' ? frame.records.map((one) => ({ ...one, generation: frame.generation })) : []
      })
      const since = sent.filter(({ generation }) => generation === 2).map(({ redrive }) => redrive)
      expect(since.toSorted()).toEqual(['by-customer/slot-0/7/new', 'orders/shardId-000000000000/1/0/0'])
      const what = sent
        .filter(({ generation }) => generation === undefined)
        .map(({ redrive, key, ownMarkMs, eventTimeMs }) => [redrive, key, ownMarkMs, eventTimeMs])
      const fromFeeding = ['orders/shardId-000000000000/1/0/0', 'ann', startMs + 60, startMs + 100]
      const fromKeyed = ['by-customer/slot-0/7', 'ann', startMs + 50, startMs + 100]
      expect(what.toSorted()).toEqual([fromKeyed, fromKeyed, fromFeeding, fromFeeding])
    } finally {
      await cloud.close()
    }
  },
  timeoutMs,
)
