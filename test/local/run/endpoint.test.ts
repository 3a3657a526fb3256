/** `endpoint` in place of the embedded Kinesis: an application on a service that it did not start. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeleteStreamCommand, DescribeStreamSummaryCommand, PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { type LocalApplication, startLocalApplication } from '../../../lib/local/run/application.ts'
import { localKinesisClient } from '../../../lib/local/run/streams.ts'
import { startKinesisService } from '../../../lib/local/services/kinesis.ts'
import { greetingsApp } from '../fixtures/greetings.ts'
import { startKinesisLocal } from '../fixtures/kinesis-local.ts'

const timeoutMs = 240_000
let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-endpoint-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = Date.now() + timeoutMs / 4
  while (!(await condition())) {
    if (Date.now() > endMs) throw new Error('the condition did not come true in time')
    await new Promise((go) => setTimeout(go, 20))
  }
}

/** Runs the application at an endpoint until all of the names have been greeted, and says what came out. */
async function greet(endpoint: string, names: readonly string[], state: string): Promise<readonly string[]> {
  const received: string[] = []
  const app: LocalApplication = await startLocalApplication({
    topology: greetingsApp,
    entry: 'test/local/fixtures/greetings.ts',
    directory: join(directory, state),
    endpoint,
    workers: 1,
    onOutput: (output, records) => {
      for (const { data } of records) received.push(`${output}: ${JSON.parse(Buffer.from(data).toString()).text}`)
    },
  })
  try {
    expect(app.endpoint).toBe(endpoint)
    await app.run()
    const Records = names.map((name) => ({ PartitionKey: name, Data: Buffer.from(JSON.stringify({ name })) }))
    await app.client.send(new PutRecordsCommand({ StreamName: app.streamOf('names').streamName, Records }))
    const sentAtMs = Date.now()
    await until(() => app.hasProcessed(sentAtMs))
    const processedAtMs = Date.now()
    await until(() => app.hasReadOutputs(processedAtMs))
    expect(app.status().stages[0]?.mapping.counters).toMatchObject({ invokedEvents: names.length })
  } finally {
    await app.stop()
  }
  // No Kinesis of our own was started for it.
  expect((await readdir(join(directory, state))).sort()).toEqual([
    'bundle',
    'checkpoints',
    'function.log',
    'stages.json',
  ])
  return received.sort()
}

const greetingsOf = (names: readonly string[]) => names.map((name) => `greetings: Hello ${name}`)

/** The endpoint works, keeps what is in it, and a second run goes on at its checkpoint. */
async function expectToWorkAt(url: string): Promise<void> {
  expect(await greet(url, ['Ada', 'Bob'], 'state')).toEqual(greetingsOf(['Ada', 'Bob']))
  expect(await greet(url, ['Cid'], 'state')).toEqual(greetingsOf(['Ada', 'Bob', 'Cid']))
  const client = localKinesisClient(url)
  const { StreamDescriptionSummary } = await client.send(new DescribeStreamSummaryCommand({ StreamName: 'greetings' }))
  expect(StreamDescriptionSummary?.StreamStatus).toBe('ACTIVE')
  client.destroy()
}

test(
  'an embedded service that another program started',
  async () => {
    const foreign = await startKinesisService()
    try {
      await expectToWorkAt(foreign.url)
    } finally {
      await foreign.close()
    }
  },
  timeoutMs,
)

test(
  'kinesis-local',
  async () => {
    const foreign = await startKinesisLocal()
    try {
      await expectToWorkAt(foreign.url)
    } finally {
      await foreign.stop()
    }
  },
  timeoutMs,
)

test(
  'an endpoint where nobody listens is one clear error',
  async () => {
    await expect(greet('http://127.0.0.1:1', ['Ada'], 'state')).rejects.toThrow(
      /^The stream names cannot be made ready: .*Check that the endpoint runs and speaks Kinesis\.$/,
    )
  },
  timeoutMs,
)

const ministackUrl = process.env.MILLRACE_MINISTACK_URL
if (ministackUrl === undefined) {
  console.warn(
    'SKIPPED: the application on MiniStack, since MILLRACE_MINISTACK_URL is not set. Run it with: .ci/ministack run npx jest test/local/run/endpoint',
  )
}
const onMiniStack = ministackUrl === undefined ? test.skip : test

onMiniStack(
  'MiniStack, an emulator that others wrote and that stands for LocalStack and its like',
  async () => {
    const url = ministackUrl ?? ''
    const client = localKinesisClient(url)
    for (const StreamName of ['names', 'greetings', 'greetings-dead-letters']) {
      await client.send(new DeleteStreamCommand({ StreamName })).catch(() => undefined)
    }
    client.destroy()
    await expectToWorkAt(url)
  },
  timeoutMs,
)
