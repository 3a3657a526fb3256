import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ensureStream, localKinesisClient } from '../../lib/local/run/streams.ts'
import type { DeadLetterBinding, SourceBinding } from '../../lib/plan/stage-bindings.ts'
import { aggregateOf } from '../aws/events/kpl-aggregate-bytes.ts'
import { CloudStandIn } from './cloud-stand-in.ts'
import { MillraceProject } from './millrace-project.ts'
import { handlerFile } from './orders-app.ts'
import { PricedOrders } from './priced-orders.ts'

const timeoutMs = 300_000
const streamArn = 'arn:aws:kinesis:us-east-1:000000000000:stream/orders'
const kinesis: SourceBinding = { name: 'orders', kind: 'kinesis', streamArn }
const fails = "(() => { throw new TerminalError('no price', { code: 'unknown-unit' }) })()"

let project: MillraceProject
let cloud: CloudStandIn
let app: PricedOrders
beforeEach(async () => {
  project = await MillraceProject.create()
  cloud = await CloudStandIn.start()
  app = new PricedOrders(project)
})
afterEach(async () => {
  await project.clear()
  await cloud.close()
})

interface Version {
  readonly price?: string
  readonly held?: number
  readonly before?: string
  readonly source?: SourceBinding
  readonly deadLetters?: DeadLetterBinding
}

async function deploy(version: Version): Promise<void> {
  const { price = '100', held, before, source = kinesis } = version
  const { deadLetters = { kind: 'sqs', queueUrl: cloud.queueUrl } } = version
  await app.writeTopology(price)
  await app.writeHandler(held, before)
  const sinks = [{ name: 'priced', kind: 'custom' }] as const
  const bindings = { formatVersion: 1, topology: 'orders-app', sources: [source], sinks, deadLetters } as const
  await cloud.deploy('orders-fn', join(project.directory, handlerFile), project.directory, bindings)
}

const order = (id: string, unit = 'barrel') => JSON.stringify({ id, unit })

/** The event source mapping's part: an event of Kinesis, a record for each. */
async function process(...records: readonly (string | Buffer)[]): Promise<void> {
  const Records = records.map((data, index) => ({
    eventID: `shardId-000000000000:${index + 1}`,
    eventSource: 'aws:kinesis',
    eventSourceARN: streamArn,
    kinesis: {
      ...{ sequenceNumber: `${index + 1}`, partitionKey: `key-${index}`, approximateArrivalTimestamp: 1.5 },
      data: Buffer.from(data as string).toString('base64'),
    },
  }))
  const outcome = await cloud.invoke('orders-fn', { Records })
  expect(outcome).toEqual({ kind: 'answered', payload: { batchItemFailures: [] } })
}

const queue = () => ['--queue', cloud.queueUrl, '--endpoint', cloud.url]
const redrive = (...flags: readonly string[]) =>
  project.result(
    'dead-letters',
    'redrive',
    ...queue(),
    '--function',
    'orders-fn',
    ...(flags.length > 0 ? flags : ['--all']),
  )

test(
  'records of an aggregate are redriven alone under their own identities, once, and their messages are deleted when they are done',
  async () => {
    await deploy({ price: fails })
    await process(
      aggregateOf(
        ['a', 'b', 'c'].map((id) => ({ partitionKey: id, data: order(id, id === 'a' ? 'piece' : 'barrel') })),
      ),
    )
    expect(cloud.messages.size).toBe(2)
    const before = await redrive()
    expect([before.code, before.stderr]).toEqual([1, ''])
    expect(before.stdout).toContain('0 done, 2 given up again, 0 returned, 0 refused\n')
    // The messages of before are deleted: those that came in their stead have the records.
    expect(cloud.messages.size).toBe(2)

    await deploy({})
    const after = await redrive()
    expect([after.code, after.stdout]).toEqual([0, expect.stringContaining('2 done, 0 given up again')])
    const place = 'orders/shardId-000000000000/1'
    expect(await app.applied()).toEqual({
      [`${place}/0/0`]: { id: 'a', price: 1 },
      [`${place}/1/0`]: { id: 'b', price: 100 },
      [`${place}/2/0`]: { id: 'c', price: 100 },
    })
    cloud.showHidden()
    expect(cloud.messages.size).toBe(0)
    expect(await redrive()).toEqual({ code: 0, stdout: 'Nothing to redrive.\n', stderr: '' })
    expect(await app.deliveries()).toHaveLength(3)
    expect((await readdir(join(project.directory, '.millrace/redrive/queue-failed'))).join()).toMatch(
      /redriven-127\.0\.0\.1_\d+-000000000000-127\.0\.0\.1_\d+\.ndjson/,
    )
  },
  timeoutMs,
)

test(
  'what a failing, throttled or hesitating function does not take stays in the queue, and no line quotes a record',
  async () => {
    await deploy({ price: fails })
    await process(order('secret-1'), order('secret-2'))
    await deploy({
      before: "throw new TypeError('cannot read ' + Buffer.from(event.Records[0].kinesis.data, 'base64'))",
    })
    const failing = await redrive()
    expect(failing.stdout.match(/returned: the function failed \(TypeError\): its log says why$/gm)).toHaveLength(2)
    await deploy({ price: "(() => { throw new RetryableError('later') })()" })
    const hesitating = await redrive()
    expect(hesitating.stdout.match(/returned: the function asks for it again later: its log says why$/gm)).toHaveLength(
      2,
    )
    cloud.isThrottled = true
    const throttled = await redrive()
    expect(throttled.stdout.match(/returned: TooManyRequestsException: /g)).toHaveLength(2)
    for (const { code, stdout, stderr } of [failing, hesitating, throttled]) {
      expect([code, stderr, stdout.includes('secret')]).toEqual([1, '', false])
      expect(stdout).toContain('0 done, 0 given up again, 2 returned, 0 refused\n')
    }
    expect(cloud.messages.size).toBe(2)
    cloud.isThrottled = false
    await deploy({})
    expect((await redrive()).stdout).toContain('2 done')
    expect(Object.values(await app.applied())).toHaveLength(2)
  },
  timeoutMs,
)

test(
  'a redrive that is killed loses nothing, and the next one applies nothing twice',
  async () => {
    await deploy({ price: fails })
    const ids = ['a', 'b', 'c', 'd', 'e', 'f']
    await process(...ids.map((id) => order(id)))
    await deploy({ held: 3 })
    const killed = project.run('dead-letters', 'redrive', ...queue(), '--function', 'orders-fn', '--all')
    await app.deliveredAtLeast(3)
    killed.signal('SIGKILL')
    expect(await killed.ends()).toBe('SIGKILL')
    expect(Object.values(await app.applied())).toHaveLength(3)
    await app.letGo()
    expect(cloud.messages.size).toBe(0)
    cloud.showHidden()
    expect(cloud.messages.size).toBe(ids.length)
    const next = await redrive()
    expect([next.code, next.stdout]).toEqual([0, expect.stringContaining('6 done, 0 given up again')])
    expect(Object.values(await app.applied())).toHaveLength(ids.length)
    expect((await app.deliveries()).length).toBeGreaterThan(ids.length)
    expect(cloud.messages.size).toBe(0)
  },
  timeoutMs,
)

test(
  'a message that could not be deleted is done all the same, and the next redrive only deletes it',
  async () => {
    await deploy({ price: fails })
    await process(order('a'), 'no json')
    await deploy({})
    cloud.refusesDeletes = true
    const first = await redrive('--reason', 'unknown-unit')
    expect([first.code, first.stdout]).toEqual([0, expect.stringContaining('1 done')])
    expect(first.stdout).toContain('1 message could not be deleted: the next redrive from here deletes what is done.\n')
    expect(cloud.messages.size).toBe(2)
    const listed = await project.result('dead-letters', 'list', ...queue())
    expect(listed.stdout).toMatch(/^1 dead letter of queue /)
    cloud.refusesDeletes = false
    expect((await redrive('--reason', 'unknown-unit')).stdout).toBe('Nothing to redrive.\n')
    expect([cloud.messages.size, (await app.deliveries()).length]).toEqual([1, 1])
  },
  timeoutMs,
)

test(
  'a Kafka record is redriven from its topic-partition and offset',
  async () => {
    const clusterArn = 'arn:aws:kafka:us-east-1:000000000000:cluster/c/1'
    const source: SourceBinding = { name: 'orders', kind: 'kafka', clusterArn, topic: 'eu-orders' }
    await deploy({ price: fails, source })
    const value = Buffer.from(order('k')).toString('base64')
    const row = { offset: 41, timestamp: 1_000, key: 'aw==', value, headers: [{ trace: [1, 255] }] }
    const event = { eventSource: 'aws:kafka', eventSourceArn: clusterArn, records: { 'eu-orders-3': [row] } }
    expect(await cloud.invoke('orders-fn', event)).toMatchObject({ payload: { batchItemFailures: [] } })
    await deploy({ source, price: "(() => { throw new RetryableError('later') })()" })
    expect((await redrive()).stdout).toContain('returned: the function asks for it again later')
    await deploy({ source })
    expect((await redrive()).stdout).toContain('1 done')
    expect(cloud.events.at(-1)).toMatchObject(event)
    expect(await app.applied()).toEqual({ 'orders/eu-orders-3/41/0/0': { id: 'k', price: 100 } })
  },
  timeoutMs,
)

test(
  'a stream of dead letters keeps its records, and those that are done are open no more',
  async () => {
    const client = localKinesisClient(cloud.url)
    await ensureStream(client, systemClock, 'failed', 1)
    client.destroy()
    const deadLetters: DeadLetterBinding = { kind: 'kinesis', streamName: 'failed' }
    await deploy({ price: fails, deadLetters })
    await process(order('a'), 'no json')
    await deploy({ deadLetters })
    const place = ['--stream', 'failed', '--endpoint', cloud.url]
    const run = () => project.result('dead-letters', 'redrive', ...place, '--function', 'orders-fn', '--all')
    const first = await run()
    expect([first.code, first.stderr]).toEqual([1, ''])
    expect(first.stdout).toContain('dead letter again: not-json (decode)\n')
    expect(first.stdout).toContain('1 done, 1 given up again')
    expect((await run()).stdout).toContain('0 done, 1 given up again')
    expect(await app.deliveries()).toEqual(['orders/shardId-000000000000/1/0/0'])
    const open = await project.result('dead-letters', 'list', ...place)
    expect(open.stdout).toMatch(/^1 dead letter of stream failed\n/)
    const all = await project.result('dead-letters', 'list', ...place, '--include-redriven')
    expect(all.stdout).toMatch(/^2 dead letters of stream failed\n/)
    // What redrives remember is no local run.
    const local = await project.result('dead-letters', 'list')
    expect(local.stderr).toBe('millrace: There is no local run in .millrace: `millrace dev TOPOLOGY` makes one.\n')
  },
  timeoutMs,
)

test(
  'an entry that was offloaded is read from its bucket; where that holds something else it is refused',
  async () => {
    await deploy({ price: fails })
    await process(order('a'), order('b'))
    for (const [message, text] of [...cloud.messages]) {
      const entry = JSON.parse(text)
      const isFirst = entry.position === '1'
      cloud.objects.set(`big/dead/${entry.position}.json`, isFirst ? text : '{"hello":1}')
      const offloaded = { bucket: 'big', key: `dead/${entry.position}.json` }
      cloud.messages.set(message, JSON.stringify({ ...entry, key: null, payload: null, offloaded }))
    }
    await deploy({})
    const { code, stdout } = await redrive()
    expect(code).toBe(1)
    expect(stdout).toContain(
      'refused: its bytes are in s3://big/dead/2.json only, and the object is no dead letter: it is not a dead letter of Millrace\n',
    )
    expect(stdout).toContain('1 done, 0 given up again, 0 returned, 1 refused\n')
    expect(await app.applied()).toEqual({ 'orders/shardId-000000000000/1/0/0': { id: 'a', price: 100 } })
    expect(cloud.messages.size).toBe(1)
  },
  timeoutMs,
)

test(
  'letters of another source of the queue wait for their own function',
  async () => {
    await deploy({ price: fails })
    await process(order('a'))
    const [text = ''] = cloud.messages.values()
    cloud.send(JSON.stringify({ ...JSON.parse(text), source: 'returns', id: 'returns/shardId-000000000000/1/0' }))
    await deploy({})
    const { code, stdout } = await redrive()
    expect([code, cloud.messages.size]).toEqual([0, 1])
    expect(stdout).toContain('1 dead letter of other sources than orders: left for their own functions.\n')
  },
  timeoutMs,
)

test(
  'what cannot be done is one line, and nothing is taken from the queue',
  async () => {
    await deploy({})
    const line = async (...flags: readonly string[]) => {
      const { code, stdout, stderr } = await project.result('dead-letters', 'redrive', '--all', ...flags)
      expect([stdout, stderr.split('\n').length]).toEqual(['', 2])
      return [code, stderr]
    }
    expect(await line(...queue())).toEqual([
      2,
      expect.stringContaining('--stream, --queue and --topic need --function NAME'),
    ])
    expect(await line('--function', 'f')).toEqual([
      2,
      expect.stringContaining('--function goes with --stream, --queue or --topic'),
    ])
    expect(await line(...queue(), '--function', 'gone')).toEqual([
      1,
      expect.stringContaining('The function gone cannot be read: ResourceNotFoundException'),
    ])
    expect(await line('--stream', 'failed', '--endpoint', cloud.url, '--function', 'orders-fn')).toEqual([
      1,
      `millrace: The function orders-fn gives its dead letters to the queue ${cloud.queueUrl}: name that place.\n`,
    ])
  },
  timeoutMs,
)
