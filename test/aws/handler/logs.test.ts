/** What a function logs: JSON lines that say where a record stands and why it failed, and nothing of what it holds. */
import { z } from 'zod'
import { lambdaLogger } from '../../../lib/aws/handler/observability.ts'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { RetryableError, TerminalError, Topology, valueState } from '../../../lib/index.ts'
import { kafkaEvent, kinesisEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'

const secret = 'hunter2'

/** Everything that is written while it runs, by whatever way. */
async function writtenBy(run: () => Promise<void>): Promise<readonly string[]> {
  const lines: string[] = []
  const take = (...texts: unknown[]) => void lines.push(texts.map(String).join(' '))
  const methods = ['log', 'info', 'warn', 'error', 'debug'] as const
  const spies = methods.map((method) => jest.spyOn(console, method).mockImplementation(take))
  process.env.POWERTOOLS_DEV = 'true'
  try {
    await run()
  } finally {
    for (const spy of spies) spy.mockRestore()
    delete process.env.POWERTOOLS_DEV
  }
  return lines
}

function topology() {
  const app = new Topology('app')
  const out = app.sink<string>('out')
  const faults: { thrown: Error | undefined; at: 'source' | 'key' } = { thrown: undefined, at: 'source' }
  app
    .source('orders', z.object({ card: z.string(), kind: z.enum(['paid', 'open']) }))
    .map((order) => {
      if (faults.thrown && faults.at === 'source') throw faults.thrown
      return order
    })
    .keyBy('by-card', ({ card }) => card)
    .process('last', {
      state: { kind: valueState<string>() },
      step({ kind }, { state }) {
        if (faults.thrown && faults.at === 'key') throw faults.thrown
        state.kind.set(kind)
        return [kind]
      },
    })
    .to(out)
  return { app, faults }
}

const order = { card: secret, kind: 'paid' }
const poisons: readonly (readonly [string, string | object])[] = [
  ['no JSON', `{"card":"${secret}`],
  ['text', secret],
  ['a value that the schema refuses', { card: secret, kind: secret }],
  ['a value of another type', { card: [secret], kind: 'paid' }],
]

async function run(payload: unknown, thrown?: Error, at: 'source' | 'key' = 'source') {
  const { app, faults } = topology()
  const memory = memoryPorts()
  Object.assign(faults, { thrown, at })
  const lines = await writtenBy(async () => {
    const logger = lambdaLogger({ application: 'app', stage: 'orders' })
    const handler = streamHandler(app, { ports: { ...memory, logger } })
    for (let attempt = 0; attempt < 5; attempt++) await handler(kinesisEvent([payload]), lambdaContext())
    for (const event of memory.takeFrames('by-card')) {
      for (let attempt = 0; attempt < 5; attempt++) await handler(event, lambdaContext())
    }
  })
  return { lines, memory }
}

function expectNothingOf(lines: readonly string[]): void {
  for (const line of lines) {
    expect(line).not.toContain(secret)
    expect(line).not.toContain(Buffer.from(secret).toString('base64').replaceAll('=', ''))
    expect(JSON.parse(line)).toMatchObject({ service: 'app', stage: expect.any(String), message: expect.any(String) })
  }
}

test.each(poisons)('%s becomes a dead letter, and no line holds anything of it', async (_, payload) => {
  const { lines, memory } = await run(payload)
  expect(memory.deadLettered).toHaveLength(1)
  expectNothingOf(lines)
})

const failures = {
  TerminalError: () => new TerminalError(`${secret} is refused`),
  RetryableError: () => new RetryableError(`${secret} is asked for`),
  Error: () => new Error(`no card ${secret}`),
}

test.each([
  ['TerminalError', 'source'],
  ['RetryableError', 'source'],
  ['Error', 'source'],
  ['TerminalError', 'key'],
  ['RetryableError', 'key'],
  ['Error', 'key'],
] as const)(
  'a record whose step throws a %s that quotes it (%s) is named by where it stands alone',
  async (name, at) => {
    const { lines } = await run(order, failures[name](), at)
    expect(lines.length).toBeGreaterThan(0)
    expectNothingOf(lines)
    if (name === 'TerminalError') return
    const told = lines.map((line) => JSON.parse(line))
    expect(told).toContainEqual(
      expect.objectContaining({ partition: expect.any(String), number: expect.any(Number), error: name }),
    )
  },
)

test('of a thousand dead letters a few are told, and how many more there were', async () => {
  const app = new Topology('app')
  app.source('orders', z.object({ card: z.string() })).to(app.sink('out'))
  const lines = await writtenBy(async () => {
    const logger = lambdaLogger({ application: 'app', stage: 'orders' })
    const handler = streamHandler(app, { ports: { ...memoryPorts(), logger } })
    await handler(kinesisEvent(Array(1_000).fill(secret)), lambdaContext())
  })
  expect(lines.length).toBeLessThan(50)
  expectNothingOf(lines)
  expect(lines.some((line) => line.includes('more records of the batch became dead letters'))).toBe(true)
})

test('a keyed stage says which sampled traces wrote what it reads', async () => {
  const { app } = topology()
  const memory = memoryPorts()
  const handler = streamHandler(app, { ports: memory })
  await handler(kinesisEvent([order]), lambdaContext())
  const trace = '1-5759e988-bd862e3fe1be46a994272793'
  for (const { Records } of memory.takeFrames('by-card')) {
    const traced = Records.map((record) => ({ ...record, kinesis: { ...record.kinesis, partitionKey: `0 ${trace}` } }))
    await handler({ Records: traced }, lambdaContext())
    await handler({ Records }, lambdaContext())
  }
  const told = memory.lines.filter(({ message }) => message === 'continues traces')
  expect(told.length).toBeGreaterThan(0)
  for (const { fields } of told) expect(fields).toEqual({ upstreamTraces: [trace] })
})

test('a keyed stage on a topic of its own says so too, whatever the keys of other entries are', async () => {
  const { app } = topology()
  const memory = memoryPorts()
  const handler = streamHandler(app, { ports: memory })
  const trace = '1-5759e988-bd862e3fe1be46a994272793'
  const keys = [`0 ${trace}`, Uint8Array.of(0xff), '1']
  const entries = keys.map((key, offset) => ({ offset, key, value: 'no frame' }))
  await handler(kafkaEvent({ 'by-card-0': entries }), lambdaContext())
  const told = memory.lines.filter(({ message }) => message === 'continues traces')
  expect(told.map(({ fields }) => fields)).toEqual([{ upstreamTraces: [trace] }])
})
