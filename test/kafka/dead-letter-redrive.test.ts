/**
 * `millrace dead-letters` of an application that is on Kafka altogether: source, topic of the keyed stage and dead letters are topics of
 * the broker. Its functions are real workers; the test stands in for the event source mappings.
 */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { KafkaRecord } from '../../lib/aws/kafka/kafka-port.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { slotOf } from '../../lib/core/slot.ts'
import { ensureStateTable, localDynamoDBClient } from '../../lib/local/run/tables.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'
import { decodeFrame } from '../../lib/runtime/frames/frame-format.ts'
import { CloudStandIn } from '../bin/cloud-stand-in.ts'
import { MillraceProject } from '../bin/millrace-project.ts'
import { handlerFile } from '../bin/orders-app.ts'
import { TotalsApp } from '../bin/totals-app.ts'
import { allRecords, never, newTopic, plain, producer, recordsIn, recreate, withBroker } from './broker.ts'

jest.setTimeout(240_000)

const cluster = { brokers: plain.bootstrapBrokers as string[], auth: { kind: 'none' }, tls: false } as const
const startMs = Date.UTC(2026, 0, 1)
const partitions = 4
/** Records of long ago, by their timestamps, would be past their retention. */
const keeps = { 'retention.ms': '-1' }

class Deployed {
  readonly #read = new Map<string, bigint>()
  readonly project: MillraceProject
  readonly orders: TotalsApp
  readonly cloud: CloudStandIn
  readonly topics: { readonly orders: string; readonly byCustomer: string; readonly dead: string }

  private constructor(project: MillraceProject, cloud: CloudStandIn, topics: Deployed['topics']) {
    this.project = project
    this.orders = new TotalsApp(project)
    this.cloud = cloud
    this.topics = topics
  }

  static async create(): Promise<Deployed> {
    const [orders, byCustomer, dead] = await Promise.all([newTopic(2, keeps), newTopic(partitions), newTopic(2)])
    const [project, cloud] = [await MillraceProject.create(), await CloudStandIn.start()]
    const dynamodb = localDynamoDBClient(cloud.url)
    for (const stage of ['orders', 'by-customer']) await ensureStateTable(dynamodb, systemClock, `${stage}-table`)
    dynamodb.destroy()
    const deployed = new Deployed(project, cloud, { orders, byCustomer, dead })
    await deployed.orders.writeHandler()
    return deployed
  }

  async deploy(isBroken: boolean): Promise<void> {
    const { orders, byCustomer, dead } = this.topics
    await this.orders.writeTopology({ feeding: isBroken, keyed: isBroken })
    const common = {
      ...({ formatVersion: 1, topology: 'orders-app', sinks: [{ name: 'totals', kind: 'custom' }] } as const),
      deadLetters: { kind: 'kafka', topic: dead, cluster },
    } as const
    const feeding: StageBindings = {
      ...common,
      sources: [{ name: 'orders', kind: 'kafka', topic: orders, cluster }],
      state: { tableName: 'orders-table' },
      feeds: [{ stage: 'by-customer', slots: 64, topic: byCustomer, partitions, cluster }],
    }
    const keyed: StageBindings = {
      ...common,
      sources: [{ name: 'by-customer', kind: 'kafka', topic: byCustomer, partitions, cluster }],
      state: { tableName: 'by-customer-table' },
    }
    const entry = join(this.project.directory, handlerFile)
    await this.cloud.deploy('orders-fn', entry, this.project.directory, feeding)
    await this.cloud.deploy('by-customer-fn', entry, this.project.directory, keyed)
  }

  /** What the mappings do: each function has what came to its topic since. */
  async process(): Promise<void> {
    await this.#deliver('orders-fn', this.topics.orders)
    await this.#deliver('by-customer-fn', this.topics.byCustomer)
  }

  async #deliver(functionName: string, topic: string): Promise<void> {
    const records: Record<string, object[]> = {}
    for (const record of await allRecords(topic, topic === this.topics.orders ? 2 : partitions)) {
      const place = `${topic}-${record.partition}`
      if (record.offset < (this.#read.get(place) ?? 0n)) continue
      this.#read.set(place, record.offset + 1n)
      records[place] = [...(records[place] ?? []), rowOf(record)]
    }
    if (Object.keys(records).length === 0) return
    const outcome = await this.cloud.invoke(functionName, { eventSource: 'SelfManagedKafka', records })
    expect(outcome).toEqual({ kind: 'answered', payload: { batchItemFailures: [] } })
  }

  millrace(verb: string, ...flags: readonly string[]) {
    const place = ['--topic', this.topics.dead, '--function', 'orders-fn', '--endpoint', this.cloud.url]
    return this.project.result('dead-letters', verb, ...place, ...flags)
  }

  /** As on a machine that knows nothing of what was redriven. */
  async forget(): Promise<void> {
    for (const directory of await readdir(join(this.project.directory, '.millrace')))
      await rm(join(this.project.directory, '.millrace', directory), { recursive: true })
  }

  async close(): Promise<void> {
    await this.project.clear()
    await this.cloud.close()
  }
}

const base64 = (bytes: Uint8Array | null | undefined) =>
  bytes === null || bytes === undefined ? undefined : Buffer.from(bytes).toString('base64')

/** As Lambda's event has it. */
const rowOf = ({ offset, timestampMs, key, value, headers }: KafkaRecord) => ({
  ...{ offset: Number(offset), timestamp: timestampMs, key: base64(key), value: base64(value) },
  headers: headers.map((header) => ({ [header.name]: [...header.value] })),
})

const order = (customer: string, unit: string, count: number, note = '') => ({
  partition: 1,
  key: Buffer.from(`key of ${unit}`),
  value: Buffer.from(JSON.stringify({ customer, unit, count, at: startMs + count, note })),
  headers: [{ name: 'trace', value: Buffer.from([1, 255]) }],
  timestampMs: startMs + 1_000 + count,
})

withBroker('dead letters in a topic', () => {
  let app: Deployed
  beforeEach(async () => {
    app = await Deployed.create()
  })
  afterEach(() => app.close())

  const send = (...records: readonly ReturnType<typeof order>[]) => producer().send(app.topics.orders, records, never())

  test('are redriven into the state of a keyed stage once, however often, with key, headers and timestamp', async () => {
    await app.deploy(true)
    await send(order('ann', 'piece', 1), order('ann', 'barrel', 10), order('ann', 'crate', 100))
    await app.process()
    expect(await app.orders.totals()).toEqual({ ann: 1 })
    const listed = await app.millrace('list')
    expect([listed.code, listed.stderr]).toEqual([0, ''])
    expect(listed.stdout).toContain(`2 dead letters of topic ${app.topics.dead}\n`)
    expect(listed.stdout).toMatch(new RegExp(`unknown-unit \\(step\\) +orders ${app.topics.orders}-1 2$`, 'm'))

    const before = await app.millrace('redrive', '--all')
    // The keyed stage fails again when it runs.
    expect([before.code, before.stdout]).toEqual([1, expect.stringContaining('1 done, 1 given up again, 0 returned')])
    await app.process()
    expect(await app.orders.totals()).toEqual({ ann: 1 })

    await app.deploy(false)
    const after = await app.millrace('redrive', '--all')
    expect([after.code, after.stderr]).toEqual([0, ''])
    expect(after.stdout).toContain('2 done, 0 given up again, 0 returned, 0 refused\n')
    const [sent] = await recordsIn(app.topics.orders, 1).then((records) => records.slice(2))
    const records = { [`${app.topics.orders}-1`]: [expect.objectContaining(rowOf(sent as KafkaRecord))] }
    expect(app.cloud.events.at(-1)).toMatchObject({ eventSource: 'SelfManagedKafka', records })
    await app.process()
    expect(await app.orders.totals()).toEqual({ ann: 111 })
    expect((await app.millrace('redrive', '--all')).stdout).toBe('Nothing to redrive.\n')

    await app.forget()
    expect((await app.millrace('redrive', '--all')).stdout).toContain('2 done, 0 given up again')
    await send(order('ann', 'piece', 1))
    await app.process()
    expect(await app.orders.totals()).toEqual({ ann: 112 })

    const frames = (await allRecords(app.topics.byCustomer, partitions)).flatMap(({ partition, value }) => {
      const frame = decodeFrame(value as Uint8Array)
      return frame.kind === 'redrive' ? [{ partition, slot: frame.slot }] : []
    })
    expect(frames.length).toBeGreaterThanOrEqual(4)
    const slot = slotOf('ann', 64)
    expect(frames).toEqual(frames.map(() => ({ slot, partition: slot % partitions })))
  })

  test('of a record too large for their topic are read from its source; from a topic that was made again they are not', async () => {
    await app.deploy(true)
    await send(order('ann', 'crate', 100, 'x'.repeat(900_000)))
    await app.process()
    const [letter] = (await app.millrace('list', '--json')).stdout.split('\n')
    const shown = await app.millrace('show', JSON.parse(letter ?? '').handle)
    expect(shown.stdout).toMatch(/^1,200,\d+ bytes are only at the source: the entry has/m)
    await app.deploy(false)
    const done = await app.millrace('redrive', '--all')
    expect([done.code, done.stdout]).toEqual([0, expect.stringContaining('1 done')])
    await app.process()
    expect(await app.orders.totals()).toEqual({ ann: 100 })

    await app.forget()
    await recreate(app.topics.orders, 2, keeps)
    const gone = await app.millrace('redrive', '--all')
    expect([gone.code, gone.stdout]).toEqual([1, expect.stringContaining('and the source no longer holds the record')])
    await send(order('bob', 'piece', 7))
    expect((await app.millrace('redrive', '--all')).stdout).toContain(
      `the source cannot be read: offset 0 of ${app.topics.orders}-1 holds another record: the topic was made again`,
    )
  })

  test('what was redriven is remembered of this topic alone, and a wrong place is one line', async () => {
    await app.deploy(true)
    await send(order('ann', 'crate', 100))
    await app.process()
    await app.deploy(false)
    const kept = (await allRecords(app.topics.dead, 2)).map(({ partition, key, value }) => ({ partition, key, value }))
    expect((await app.millrace('redrive', '--all')).stdout).toContain('1 done')
    expect((await app.millrace('list')).stdout).toMatch(/^0 dead letters of topic /)
    await recreate(app.topics.dead, 2)
    await producer().send(app.topics.dead, kept, never())
    expect((await app.millrace('list')).stdout).toMatch(/^1 dead letter of topic /)

    const line = async (...flags: readonly string[]) => {
      const { code, stderr } = await app.project.result('dead-letters', 'list', ...flags, '--endpoint', app.cloud.url)
      return [code, stderr]
    }
    expect(await line('--topic', app.topics.dead)).toEqual([
      2,
      expect.stringContaining('--topic needs --function NAME'),
    ])
    expect(await line('--topic', 'other', '--function', 'orders-fn')).toEqual([
      1,
      `millrace: The function orders-fn gives its dead letters to the topic ${app.topics.dead}: name that place.\n`,
    ])
  })
})
