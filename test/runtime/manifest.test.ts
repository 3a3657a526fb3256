/** What a stage sends on stays on the kind of log that it began with: what lies in another would be read by nobody. */
import { z } from 'zod'
import { ConfigurationError, RetryableError, Topology, valueState } from '../../lib/index.ts'
import type { PartitionLineage } from '../../lib/runtime/progress/lineage.ts'
import { MemoryStateStore } from '../../lib/state/memory-store.ts'
import type { StateStore, StateValue } from '../../lib/state/state-store.ts'
import { VirtualClock } from '../../lib/testing/index.ts'
import { sourceLineage, wholePartition } from '../../lib/testing/memory-streams.ts'
import { partition, StageWorld } from './stage-world.ts'

const schema = z.object({ key: z.string() })
const { signal } = new AbortController()

/** `values` > the keyed stages that are told, each of which sends to another, `after-` and its name. */
function topologyOf(fed: readonly string[], name: string): Topology {
  const app = new Topology(name)
  const values = app.source('values', schema)
  for (const stage of fed) {
    values
      .keyBy(stage, ({ key }) => key, { slots: 1 })
      .process(`pass-${stage}`, { state: { last: valueState<number>() }, step: (value) => [value] })
      .keyBy(`after-${stage}`, ({ key }) => key, { slots: 1 })
      .process(`end-${stage}`, { state: { last: valueState<number>() }, step: () => [] })
  }
  return app
}

interface Deployment {
  readonly name?: string
  readonly fed?: readonly string[]
  /** The stages that read topics. */
  readonly topics?: readonly string[]
  /** Of the source. */
  readonly lineage?: PartitionLineage
}

/** A stage with its table, deployed now so, now so. */
class Deployed {
  readonly store: StateStore
  readonly #stage: string
  #records = 0
  /** The stages that the last batch has sent to. */
  sent: readonly string[] = []

  constructor(stage = 'values', store: StateStore = new MemoryStateStore({ stage, clock: new VirtualClock() })) {
    this.#stage = stage
    this.store = store
  }

  /** Runs a batch of one more record in a new container. */
  async run(deployment: Deployment = {}): Promise<void> {
    const { world, runner } = this.#begin(deployment)
    const index = await this.#listening(world, () => world.run(runner))
    if (world.error !== undefined) throw world.error
    expect(index).toBe(world.log.length)
  }

  /** Sends the same record once more, as a dead letter, in a new container. */
  async redrive(deployment: Deployment = {}): Promise<void> {
    const { world, runner } = this.#begin(deployment)
    const invocation = { deadlineMs: world.clock.nowMs() + 60_000 }
    const batch = [{ partition, records: world.log }]
    await this.#listening(world, async () => runner.redrive?.(batch, { ownMarkMs: null, applied: false }, invocation))
  }

  #begin({ name = 'app', fed = ['by-key'], topics = [], lineage = sourceLineage }: Deployment) {
    const world = new StageWorld(topologyOf(fed, name), this.#stage)
    this.#records += 1
    const position = String(100 + this.#records)
    if (this.#stage === 'values') world.append('{"key":"a"}', { position })
    else for (let i = 0; i < this.#records; i++) world.frame([{ key: 'a' }])
    const onTopic = { ...sourceLineage, identity: async () => 'id' }
    const ports = { state: () => this.store, lineage: (of: string) => (topics.includes(of) ? onTopic : lineage) }
    return { world, runner: world.container({}, ports) }
  }

  async #listening<T>(world: StageWorld, work: () => Promise<T>): Promise<T> {
    this.sent = []
    const result = await work()
    const published = world.calls.filter((call) => call.startsWith('publish '))
    this.sent = [...new Set(published.map((call) => call.slice('publish '.length)))].sort()
    return result
  }
}

describe.each([
  ['from a stream to a topic', [], ['by-key'], 'topic', 'stream'],
  ['from a topic to a stream', ['by-key'], [], 'stream', 'topic'],
] as const)('a keyed stage that moves %s', (_, topics, moved, now, before) => {
  test('gets nothing from the stage that feeds it, which goes on once it is back', async () => {
    const stage = new Deployed()
    await stage.run({ topics })
    expect(stage.sent).toEqual(['by-key'])
    const refused = stage.run({ topics: moved })
    await expect(refused).rejects.toThrow(ConfigurationError)
    await expect(refused).rejects.toMatchObject({
      code: 'log-changed',
      message: `stage "values" of topology "app" would send to stage "by-key" by a ${now}, but has sent to it by a ${before} so far: "by-key" goes on with that alone, so nothing is sent. Leave keyed stages where they were, or give "by-key" another name and with it new state.`,
    })
    expect(await stage.store.readProgress('values/shard-0', signal)).toMatchObject({ version: 1 })
    await stage.run({ topics })
    expect(stage.sent).toEqual(['by-key'])
  })

  test('gets no dead letters either, which are redriven once it is back', async () => {
    const stage = new Deployed()
    await stage.run({ topics })
    await expect(stage.redrive({ topics: moved })).rejects.toMatchObject({ code: 'log-changed' })
    expect(stage.sent).toEqual([])
    await stage.redrive({ topics })
    expect(stage.sent).toEqual(['by-key'])
  })

  test('gets nothing from the keyed stage before it', async () => {
    const onward = (list: readonly string[]) => list.map((stage) => `after-${stage}`)
    const stage = new Deployed('by-key')
    await stage.run({ topics: onward(topics) })
    expect(stage.sent).toEqual(['after-by-key'])
    await expect(stage.run({ topics: onward(moved) })).rejects.toMatchObject({ code: 'log-changed' })
    await stage.run({ topics: onward(topics) })
    expect(stage.sent).toEqual(['after-by-key'])
  })
})

test('a feed that was not there before may be of the other kind; that of the others is not forgotten, nor that of one which was taken away', async () => {
  const stage = new Deployed()
  await stage.run()
  await stage.run({ fed: ['by-key', 'by-other'], topics: ['by-other'] })
  expect(stage.sent).toEqual(['by-key', 'by-other'])
  await stage.run({ fed: ['by-other'], topics: ['by-other'] })
  for (const topics of [[], ['by-key', 'by-other']]) {
    await expect(stage.run({ fed: ['by-key', 'by-other'], topics })).rejects.toMatchObject({ code: 'log-changed' })
  }
  await stage.run({ fed: ['by-key', 'by-other'], topics: ['by-other'] })
})

test('a table of a release that recorded no feeds, or no manifest, takes them up with the first batch', async () => {
  const keyed = new Deployed('by-key')
  await keyed.run()
  const { feeds, ...before } = (await keyed.store.readManifest(signal)) as { readonly feeds: StateValue }
  expect(feeds).toEqual({ 'after-by-key': 'stream' })
  await keyed.store.replaceManifest({ ...before, feeds }, before, signal)
  await keyed.run({ topics: ['after-by-key'] })
  expect(await keyed.store.readManifest(signal)).toEqual({ ...before, feeds: { 'after-by-key': 'topic' } })
  const feeding = new Deployed()
  await feeding.run()
  const manifest = { format: 1, topology: 'app', stage: 'values', feeds: { 'by-key': 'stream' } }
  expect(await feeding.store.readManifest(signal)).toEqual(manifest)
})

test('the table of another topology is refused by a stage that only feeds others too', async () => {
  const stage = new Deployed()
  await stage.run()
  await expect(stage.run({ name: 'other' })).rejects.toMatchObject({ code: 'foreign-table' })
  expect(stage.sent).toEqual([])
})

test('of two containers that begin at once the later one adds to what the first one wrote', async () => {
  const stage = new Deployed()
  const { writeManifest } = stage.store
  const first = { format: 1, topology: 'app', stage: 'values', feeds: { other: 'topic' } }
  stage.store.writeManifest = async (_, until) => {
    stage.store.writeManifest = writeManifest
    await writeManifest.call(stage.store, first, until)
    return false
  }
  await stage.run()
  expect(await stage.store.readManifest(signal)).toEqual({ ...first, feeds: { other: 'topic', 'by-key': 'stream' } })
})

describe('progress of a release whose feeding stages had no manifest', () => {
  const topics = ['by-key']
  const upgraded = async (): Promise<Deployed> => {
    const stage = new Deployed()
    const { readManifest, writeManifest } = stage.store
    Object.assign(stage.store, { readManifest: async () => undefined, writeManifest: async () => true })
    await stage.run()
    Object.assign(stage.store, { readManifest, writeManifest })
    expect(await readManifest.call(stage.store, signal)).toBeUndefined()
    return stage
  }
  const refusal = {
    code: 'log-changed',
    message:
      'stage "values" of topology "app" would send to stage "by-key" by a topic, but its progress is of a release that recorded nothing of that and sent by streams: where "by-key" had one, it goes on with that alone, so nothing is sent. Deploy this release on streams first; then keyed stages may be on topics that have other names, and with them new state.',
  }

  test('is sent on by streams: a topic is refused before anything goes there, and the streams go on', async () => {
    const stage = await upgraded()
    const moved = stage.run({ topics })
    await expect(moved).rejects.toThrow(ConfigurationError)
    await expect(moved).rejects.toMatchObject(refusal)
    expect(stage.sent).toEqual([])
    expect(await stage.store.readProgress(`values/${partition}`, signal)).toMatchObject({ version: 1 })
    await stage.run()
    expect(stage.sent).toEqual(['by-key'])
    await stage.run({ fed: ['by-key', 'by-other'], topics: ['by-other'] })
    expect(stage.sent).toEqual(['by-key', 'by-other'])
  })

  test('is found in whichever partition it is of', async () => {
    const before = (await upgraded()).store
    const found = await before.readProgress(`values/${partition}`, signal)
    const stage = new Deployed()
    await stage.store.writeProgress('values/shard-7', 0, found?.value as StateValue, signal)
    const shards = ['shard-6', partition, 'shard-7'].map((id) => ({
      ...wholePartition,
      partition: id,
      isClosed: false,
    }))
    const listing = (list: typeof shards) => ({ ...sourceLineage, list: async () => list })
    await expect(stage.run({ topics, lineage: listing(shards) })).rejects.toMatchObject(refusal)
    await stage.run({ topics, lineage: listing(shards.slice(0, 2)) })
    expect(stage.sent).toEqual(['by-key'])
  })

  test('is not looked for by a keyed stage, whose table had a manifest from the first batch on', async () => {
    const stage = new Deployed('by-key')
    const listing = { ...sourceLineage, list: () => Promise.reject(new Error('partitions are listed')) }
    await stage.run({ topics: ['after-by-key'], lineage: listing })
    expect(stage.sent).toEqual(['after-by-key'])
  })

  test('is none where another container has begun on topics meanwhile', async () => {
    const stage = new Deployed()
    const { readManifest } = stage.store
    stage.store.readManifest = async () => {
      stage.store.readManifest = readManifest
      await new Deployed('values', stage.store).run({ topics })
      return undefined
    }
    await stage.run({ topics })
    expect(await stage.store.readManifest(signal)).toMatchObject({ feeds: { 'by-key': 'topic' } })
  })
})

test('the table of another stage of the topology is refused, and one of a newer format waits for its release', async () => {
  const stage = new Deployed()
  await stage.run()
  const other = new Deployed('by-key', stage.store)
  await expect(other.run()).rejects.toMatchObject({
    code: 'foreign-table',
    message: expect.stringContaining('holds the state of stage "values" of "app"'),
  })
  const manifest = (await stage.store.readManifest(signal)) as object
  await stage.store.replaceManifest(manifest as never, { ...manifest, format: 2 }, signal)
  const waits = stage.run()
  await expect(waits).rejects.toThrow(RetryableError)
  await expect(waits).rejects.toMatchObject({ code: 'newer-format' })
})

test('a container that finds all recorded writes nothing', async () => {
  const stage = new Deployed('by-key')
  await stage.run()
  stage.store.replaceManifest = () => Promise.reject(new Error('the manifest is written again'))
  await stage.run()
  expect(stage.sent).toEqual(['after-by-key'])
})

test('a keyed stage that is fed newly may have the name of what every object has', async () => {
  const stage = new Deployed()
  await stage.run()
  await stage.run({ fed: ['by-key', 'constructor'] })
  expect(stage.sent).toEqual(['by-key', 'constructor'])
})
