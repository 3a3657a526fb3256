/** A release with other aggregators on the table of the release before, in which windows are open. */
import { z } from 'zod'
import {
  ConfigurationError,
  collect,
  count,
  distinct,
  mean,
  minutes,
  quantile,
  sum,
  Topology,
  topN,
  tumbling,
  type WindowResult,
} from '../../../lib/index.ts'
import type { StateValue } from '../../../lib/state/state-store.ts'
import { StageWorld } from '../stage-world.ts'

const { signal } = new AbortController()
const n = (given: { readonly n: number }) => given.n

type Result = WindowResult<string, unknown>

/** The releases of one stage, on one table. */
class Releases {
  readonly #first = this.#release({ x: count() })
  #records = 0
  /** What the windows of the release that ran last came to. */
  results: readonly unknown[] = []

  get store() {
    return this.#first.store
  }

  #release(aggregation: unknown): StageWorld {
    const app = new Topology('app')
    const windows = app
      .source('values', z.object({ key: z.string(), n: z.number() }))
      .keyBy('by-key', (given) => given.key, { slots: 1 })
      .window(tumbling(minutes(5), { grace: minutes(1) }))
      .aggregate('totals', aggregation as { x: ReturnType<typeof count> }, { emit: 'on-update' })
    windows.results.to(app.sink<unknown>('out'))
    windows.late.to(app.sink<unknown>('late'))
    return new StageWorld(app, 'by-key')
  }

  /** A container of a release takes what was sent before, and a record of each of these numbers. */
  async run(aggregation: unknown, ...numbers: readonly number[]): Promise<void> {
    const world = this.#release(aggregation)
    for (let i = 0; i < this.#records; i++) world.frame([{ key: 'a', n: 0 }])
    for (const number of numbers) world.frame([{ key: 'a', n: number }])
    const done = await world.run(world.container({}, { state: () => this.store }))
    expect(done).toBe(world.log.length)
    expect(world.memory.deadLettered).toEqual([])
    this.#records = world.log.length
    this.results = world.memory.received({ name: 'out' } as never).map((result) => (result as Result).value)
  }

  /** What the manifest says of aggregators. */
  async aggregators(): Promise<unknown> {
    const { states, aggregators } = await this.#manifest()
    expect(states).toEqual({ totals: { kind: 'packed', version: 1, windows: 'slices' } })
    return (aggregators as { readonly totals: StateValue } | undefined)?.totals
  }

  /** As if a container of another release had written the manifest, which keeps fields that it does not know. */
  async rewrite(change: (manifest: Manifest) => Manifest): Promise<void> {
    const found = await this.#manifest()
    expect(await this.store.replaceManifest(found, change(found), signal)).toBe(true)
  }

  async #manifest(): Promise<Manifest> {
    return (await this.store.readManifest(signal)) as Manifest
  }
}

type Manifest = { readonly [field: string]: StateValue }

/** The state as a release writes it that knows no aggregators, and as one did that had them in the state. */
const withoutAggregators = { totals: { kind: 'packed', version: 1, windows: 'slices' } }
const withAggregators = (aggregators: StateValue) => ({ totals: { ...withoutAggregators.totals, aggregators } })

describe('an aggregator that has become another one under its name', () => {
  test.each<[string, unknown, unknown, string, string]>([
    ['a count as a sum', count(), sum(n), 'count', 'sum'],
    ['a count as a mean', count(), mean(n), 'count', 'mean'],
    ['a sum as a set', sum(n), distinct(n), 'sum', 'distinct'],
    [
      'a sketch of another error',
      quantile(0.9, n),
      quantile(0.9, n, { relativeError: 0.1 }),
      'quantile(relativeError: 0.01)',
      'quantile(relativeError: 0.1)',
    ],
  ])('%s is refused, and the release before goes on', async (_, before, now, was, is) => {
    const releases = new Releases()
    await releases.run({ x: before }, 5)
    const refused = releases.run({ x: now }, 9)
    await expect(refused).rejects.toThrow(ConfigurationError)
    await expect(refused).rejects.toMatchObject({
      code: 'state-changed',
      message: `aggregator "x" of state "totals" of stage "by-key" is ${is}, but its table has values of it that are ${was}: go back to that, or give the new aggregator another name.`,
    })
    expect(await releases.aggregators()).toEqual({ x: was })
    await releases.run({ x: before }, 9)
    expect(releases.results).toHaveLength(1)
  })

  test('is told of a single one too, and of several that were one', async () => {
    const releases = new Releases()
    await releases.run(count(), 5)
    expect(await releases.aggregators()).toEqual('count')
    for (const [now, is] of [
      [sum(n), 'a single sum'],
      [{ x: count() }, 'several by name (x)'],
    ]) {
      await expect(releases.run(now, 9)).rejects.toThrow(
        `the aggregation of state "totals" of stage "by-key" is ${is}, but its table has values of it that are a single count: go back to that, or give the new window another name.`,
      )
    }
    await releases.run(count(), 9)
    expect(releases.results).toEqual([2])
  })
})

test('one more aggregator begins with nothing in the windows that are open, and goes on from there', async () => {
  const releases = new Releases()
  await releases.run({ x: count() }, 5, 6)
  const more = { list: collect({ atMost: 2, keep: n }), x: count(), kinds: distinct(n), mid: quantile(0.5, n) }
  await releases.run(more, 9)
  expect(releases.results).toEqual([{ x: 3, list: [9], kinds: 1, mid: 9 }])
  await releases.run(more, 9)
  expect(releases.results).toEqual([{ x: 4, list: [9, 9], kinds: 1, mid: 9 }])
  const kinds = { x: 'count', list: 'collect', kinds: 'distinct', mid: 'quantile(relativeError: 0.01)' }
  expect(await releases.aggregators()).toEqual(kinds)
})

test('one less is dropped from the windows that are open, and its name stays with its kind', async () => {
  const releases = new Releases()
  await releases.run({ x: count(), total: sum(n) }, 5, 6)
  await releases.run({ x: count() }, 9)
  expect(releases.results).toEqual([{ x: 3 }])
  expect(await releases.aggregators()).toEqual({ x: 'count', total: 'sum' })
  await expect(releases.run({ x: count(), total: mean(n) }, 1)).rejects.toMatchObject({ code: 'state-changed' })
  await releases.run({ x: count(), total: sum(n) }, 7)
  expect(releases.results).toEqual([{ x: 4, total: 7 }])
})

test('fewer values that are kept are no more than said, in windows that are open too', async () => {
  const releases = new Releases()
  const keeping = (most: number) => ({ best: topN(most, n, { keep: n }), last: collect({ atMost: most, keep: n }) })
  await releases.run(keeping(3), 5, 7, 6)
  await releases.run(keeping(2), 1)
  expect(releases.results).toEqual([{ best: [7, 6], last: [6, 1] }])
})

test('a manifest of a release that recorded no aggregators is completed by the first container', async () => {
  const releases = new Releases()
  await releases.run({ x: count() }, 5)
  await releases.rewrite(({ aggregators: _, ...before }) => before)
  expect(await releases.aggregators()).toBeUndefined()
  await releases.run({ x: count(), total: sum(n) }, 9)
  expect(releases.results).toEqual([{ x: 2, total: 9 }])
  expect(await releases.aggregators()).toEqual({ x: 'count', total: 'sum' })
  await expect(releases.run({ x: sum(n) }, 1)).rejects.toMatchObject({ code: 'state-changed' })
})

test('a container of a release that knows no aggregators, cold while a deployment rolls out, erases none', async () => {
  const releases = new Releases()
  await releases.run({ x: count() }, 5)
  await releases.rewrite((found) => ({ ...found, states: withoutAggregators }))
  await expect(releases.run({ x: sum(n) }, 9)).rejects.toMatchObject({ code: 'state-changed' })
  await releases.run({ x: count() }, 9)
  expect(releases.results).toHaveLength(1)
})

test('aggregators that a release recorded in the state are read, and written where no other release erases them', async () => {
  const releases = new Releases()
  await releases.run({ x: count() }, 5)
  await releases.rewrite(({ aggregators: _, ...before }) => ({ ...before, states: withAggregators({ x: 'count' }) }))
  await expect(releases.run({ x: sum(n) }, 9)).rejects.toMatchObject({ code: 'state-changed' })
  await releases.run({ x: count(), total: sum(n) }, 9)
  expect(await releases.aggregators()).toEqual({ x: 'count', total: 'sum' })
  // That release runs once more, with an aggregator that it alone knows.
  await releases.rewrite((found) => ({ ...found, states: withAggregators({ x: 'count', most: 'max' }) }))
  await expect(releases.run({ x: count(), most: sum(n) }, 9)).rejects.toMatchObject({ code: 'state-changed' })
  await releases.run({ x: count() }, 9)
  expect(await releases.aggregators()).toEqual({ x: 'count', total: 'sum', most: 'max' })
})

test('an aggregator that is new may have the name of what every object has', async () => {
  const releases = new Releases()
  await releases.run({ x: count() }, 5)
  await releases.run({ x: count(), constructor: sum(n) }, 9)
  expect(releases.results).toEqual([{ x: 2, constructor: 9 }])
})
