import { dynamodbTableSink } from '../../lib/aws/sinks/dynamodb-table.ts'
import { kinesisSink } from '../../lib/aws/sinks/kinesis.ts'
import { outputIdentity } from '../../lib/core/record.ts'
import { delivered, type Outcome, type Output, type Sink } from '../../lib/runtime/sink.ts'
import { type Probe, type Refusal, type SinkUnderTest, sinkConformance } from '../../lib/testing/index.ts'
import { awsError, StubStream, StubTable, testPorts } from '../aws/sink-worlds.ts'

/** Spends planned refusals. */
class Refusals {
  #planned: Refusal | undefined

  readonly plan = (refusal: Refusal): void => {
    this.#planned = refusal
  }

  take(key: string): boolean {
    const planned = this.#planned
    if (planned?.key !== key) return false
    this.#planned = planned.times > 1 ? { ...planned, times: planned.times - 1 } : undefined
    planned.refused()
    return true
  }
}

async function kinesisWorld(): Promise<SinkUnderTest> {
  const stream = new StubStream()
  const refusals = new Refusals()
  stream.refuse = ({ PartitionKey }) => (refusals.take(PartitionKey) ? 'InternalFailure' : undefined)
  return {
    sink: kinesisSink<Probe>({ client: stream, streamName: 'out', ...testPorts() }),
    stored: async () => stream.texts.map((text) => JSON.parse(text) as Probe),
    idempotent: false,
    refuse: refusals.plan,
  }
}

async function tableWorld(): Promise<SinkUnderTest> {
  const table = new StubTable()
  const refusals = new Refusals()
  table.fail = ({ Key }) => {
    if (refusals.take(String(Key?.key?.S))) throw awsError('ThrottlingException')
  }
  return {
    sink: dynamodbTableSink({ client: table, tableName: 'rows', partitionKey: 'key', ...testPorts() }) as Sink,
    stored: async () => [...table.items.values()].map(({ key, n }) => ({ key: String(key?.S), n: Number(n?.N) })),
    keeps: 'latest',
    idempotent: true,
    refuse: refusals.plan,
  }
}

interface MemoryItem {
  readonly id: string
  readonly value: Probe
}

/** The simplest sink that keeps all rules: it stores in order and answers `retry` from a key's first refusal on. */
function memoryWorld(changes: (sink: Sink<Probe, MemoryItem>, world: MemoryWorld) => Partial<Sink<Probe, MemoryItem>>) {
  return async (): Promise<SinkUnderTest> => {
    const world: MemoryWorld = { stored: new Map(), refusals: new Refusals(), late: [] }
    const sink: Sink<Probe, MemoryItem> = {
      prepare: ({ value, record, index }: Output<Probe>) => ({ id: outputIdentity(record, index), value }),
      async deliver(items, { signal }) {
        const stuck = new Set<string>()
        return items.map(({ id, value }): Outcome => {
          if (signal.aborted || stuck.has(value.key) || world.refusals.take(value.key)) {
            stuck.add(value.key)
            return { status: 'retry', error: new Error('not now') }
          }
          if (!world.stored.has(id)) world.stored.set(id, value)
          return delivered
        })
      },
    }
    return {
      sink: { ...sink, ...changes(sink, world) },
      stored: async () => [...world.stored.values()],
      idempotent: true,
      refuse: world.refusals.plan,
      settle: async () => {
        for (const arrive of world.late.splice(0)) arrive()
      },
    }
  }
}

interface MemoryWorld {
  readonly stored: Map<string, Probe>
  readonly refusals: Refusals
  /** What reaches the outside world only after deliver has answered. */
  readonly late: (() => void)[]
}

describe.each([
  ['the Kinesis sink', kinesisWorld],
  ['the DynamoDB table sink', tableWorld],
  ['a memory sink', memoryWorld(() => ({}))],
])('%s keeps every rule', (name, make) => {
  for (const check of sinkConformance(name, { make })) test(check.name, () => check.run())
})

const stored = (world: MemoryWorld, { id, value }: MemoryItem): void => void world.stored.set(id, value)
const retry: Outcome = { status: 'retry', error: new Error('not now') }

const broken: [what: string, rule: RegExp, ...Parameters<typeof memoryWorld>][] = [
  [
    'prepares twice differently',
    /rule 1: .*two different items/,
    (sink) => {
      let calls = 0
      return { prepare: (output) => ({ ...sink.prepare(output), id: String(calls++) }) }
    },
  ],
  [
    'stores in prepare',
    /rule 1: prepare stored/,
    (sink, world) => ({
      prepare(output) {
        const item = sink.prepare(output)
        stored(world, item)
        return item
      },
    }),
  ],
  [
    'prepares asynchronously',
    /rule 1: prepare returned a promise/,
    (sink) => ({
      prepare: (async (output: Output<Probe>) => sink.prepare(output)) as never,
    }),
  ],
  [
    'answers for one item too few',
    /rule 2: .* outcomes for/,
    (sink) => ({
      deliver: async (items, call) => (await sink.deliver(items, call)).slice(1),
    }),
  ],
  [
    'answers an empty batch with an outcome',
    /rule 2: .* 1 outcomes for 0/,
    (sink) => ({
      deliver: async (items, call) => (items.length === 0 ? [delivered] : sink.deliver(items, call)),
    }),
  ],
  [
    'answers with no known status',
    /rule 2: .*status "ok"/,
    () => ({
      deliver: async (items) => items.map(() => ({ status: 'ok' }) as never),
    }),
  ],
  [
    'answers retry without an error',
    /rule 2: "retry" has no error/,
    () => ({
      deliver: async (items) => items.map(() => ({ status: 'retry' }) as never),
    }),
  ],
  ['never delivers', /rule 2: with nothing in the way/, () => ({ deliver: async (items) => items.map(() => retry) })],
  [
    'answers before it has stored',
    /rule 2: .*called delivered, but stored is nothing/,
    (_, world) => ({
      async deliver(items) {
        for (const item of items) world.late.push(() => stored(world, item))
        return items.map(() => delivered)
      },
    }),
  ],
  [
    'loses what it was refused',
    /rule 2: .*called delivered/,
    (sink) => ({
      deliver: async (items, call) => (await sink.deliver(items, call)).map(() => delivered),
    }),
  ],
  [
    'answers in another order than that of the items',
    /rule [25]: /,
    (sink) => ({
      deliver: async (items, call) => [...(await sink.deliver(items, call))].reverse(),
    }),
  ],
  [
    'stores a batch from its end',
    /rule 3: key a was sent as 1,2,3 and is stored as 3,2,1/,
    (sink) => ({
      deliver: (items, call) => sink.deliver([...items].reverse(), call),
    }),
  ],
  [
    'lets later items of a key overtake a refused one',
    /rule 3: .*overtook/,
    (_, world) => ({
      deliver: async (items, { signal }) =>
        items.map((item) => {
          if (signal.aborted || world.refusals.take(item.value.key)) return retry
          stored(world, item)
          return delivered
        }),
    }),
  ],
  [
    'stores again what comes again',
    /rule 4: .*called idempotent/,
    (_, world) => {
      let copies = 0
      return {
        async deliver(items, { signal }) {
          if (signal.aborted) return items.map(() => retry)
          for (const { value } of items) world.stored.set(String(copies++), value)
          return items.map(() => delivered)
        },
      }
    },
  ],
  [
    'refuses what comes again',
    /rule 4: .*answered "rejected"/,
    (sink, world) => ({
      deliver: async (items, call) => {
        const known = items.map(({ id }) => world.stored.has(id))
        const outcomes = await sink.deliver(items, call)
        return outcomes.map((outcome, i) => (known[i] ? { status: 'rejected', error: new Error('seen') } : outcome))
      },
    }),
  ],
  [
    'goes on after the abort',
    /rule 5: after the abort/,
    (_, world) => ({
      async deliver(items) {
        for (const item of items) stored(world, item)
        return items.map(() => delivered)
      },
    }),
  ],
  [
    'leaves a request in flight when it answers',
    /rule 5: after deliver had answered/,
    (sink, world) => ({
      async deliver(items, call) {
        const outcomes = await sink.deliver(items, call)
        for (const [i, item] of items.entries()) {
          if (outcomes[i] === undefined || outcomes[i].status === 'retry') world.late.push(() => stored(world, item))
        }
        return outcomes
      },
    }),
  ],
]

describe('a sink that breaks a rule is caught:', () => {
  test.each(broken)('one that %s', async (_, rule, changes) => {
    const failures: unknown[] = []
    for (const check of sinkConformance('broken', { make: memoryWorld(changes) })) {
      await check.run().catch((error: unknown) => failures.push(error))
    }
    expect(failures).toContainEqual(
      expect.objectContaining({ code: 'sink-conformance', message: expect.stringMatching(rule) }),
    )
  })

  test('one whose refusals do not work', async () => {
    const make = async (): Promise<SinkUnderTest> => ({ ...(await memoryWorld(() => ({}))()), refuse: () => undefined })
    const checks = sinkConformance('idle refusals', { make })
    const failures = await Promise.all(checks.map((check) => check.run().then(() => undefined, String)))
    expect(failures.filter(Boolean)).toEqual(Array(3).fill(expect.stringContaining('never called `refused`')))
  })

  test('one without refusals, unless it says so', async () => {
    const make = async (): Promise<SinkUnderTest> => ({ ...(await memoryWorld(() => ({}))()), refuse: undefined })
    const run = (options: { refusals?: boolean }) =>
      Promise.all(sinkConformance('plain', { make, ...options }).map((check) => check.run()))
    await expect(run({})).rejects.toThrow('refusals: false')
    await expect(run({ refusals: false })).resolves.toHaveLength(5)
  })
})
