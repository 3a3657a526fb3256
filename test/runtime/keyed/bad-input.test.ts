/** Tables that are not the stage's, or not of this release. */
import { z } from 'zod'
import {
  ConfigurationError,
  count,
  listState,
  minutes,
  session,
  Topology,
  tumbling,
  valueState,
} from '../../../lib/index.ts'
import type { StateDeclarations } from '../../../lib/operators/keyed/declarations.ts'
import type { Windows } from '../../../lib/operators/keyed/window/window.ts'
import { sourceLineage } from '../../../lib/testing/memory-streams.ts'
import type { SessionWindows } from '../../../lib/time/windows/session.ts'
import { StageWorld } from '../stage-world.ts'
import { adder, value } from './keyed-world.ts'

function stage(topology: string, name: string, { slots = 1, version = 1 } = {}) {
  const app = new Topology(topology)
  const sum =
    version === 1 ? valueState<number>() : valueState<number>({ version: 2, upcast: { 1: (old: number) => old * 100 } })
  app
    .source('values', z.object({ key: z.string(), n: z.number() }))
    .keyBy(name, (given) => given.key, { slots })
    .process('adder', {
      state: { sum },
      step: (given, { state }) => {
        state.sum.set((state.sum.get() ?? 0) + given.n)
        return [state.sum.get()]
      },
    })
    .to(app.sink<unknown>('out'))
  return new StageWorld(app, name)
}

/** The second release on the table of the first. */
async function onTableOf(first: StageWorld, second: StageWorld): Promise<number> {
  first.frame([value('a', 1)])
  expect(await first.run(first.container())).toBe(1)
  second.frame([value('a', 1)])
  second.frame([value('a', 10)])
  return second.run(second.container({}, { state: () => first.store }))
}

/** A later release, with a record of its own, on the table that is there. */
function afterThat(first: StageWorld, later: StageWorld): Promise<number> {
  later.frame([value('a', 1)])
  return later.run(later.container({}, { state: () => first.store }))
}

test('the table of another stage is refused by name', async () => {
  await expect(onTableOf(stage('app', 'by-key'), stage('app', 'by-name'))).rejects.toThrow(
    'the state table bound to stage "by-name" of topology "app" holds the state of stage "by-key" of "app"',
  )
  await expect(onTableOf(stage('app', 'by-key'), stage('other', 'by-key'))).rejects.toThrow(ConfigurationError)
})

test('other slots than those that the state was made with are refused', async () => {
  await expect(onTableOf(stage('app', 'by-key'), stage('app', 'by-key', { slots: 4 }))).rejects.toThrow(
    'stage "by-key" of topology "app" has 4 slots, but its state was made with 1',
  )
})

test('a topic for a stage whose state was made from a stream is refused, and a stream for one of a topic', async () => {
  const onTopic = { lineage: () => ({ ...sourceLineage, identity: async () => 'topic-1' }) }
  const fromStream = stage('app', 'by-key')
  fromStream.frame([value('a', 1)])
  expect(await fromStream.run(fromStream.container())).toBe(1)
  fromStream.frame([value('a', 10)])
  await expect(fromStream.run(fromStream.container({}, onTopic))).rejects.toThrow(
    /^stage "by-key" of topology "app" reads a topic, but its state was made from a stream: .*give the stage another name/,
  )
  const fromTopic = stage('app', 'by-key')
  fromTopic.frame([value('a', 1)])
  expect(await fromTopic.run(fromTopic.container({}, onTopic))).toBe(1)
  fromTopic.frame([value('a', 10)])
  await expect(fromTopic.run(fromTopic.container())).rejects.toMatchObject({ code: 'log-changed' })
})

function keeping(states: StateDeclarations) {
  const app = new Topology('app')
  app
    .source('values', z.object({ key: z.string(), n: z.number() }))
    .keyBy('by-key', (given) => given.key, { slots: 1 })
    .process('adder', { state: states, step: () => [] })
  return new StageWorld(app, 'by-key')
}

test('a state of another kind than what is stored under its name is refused, in the deployment after the next one too', async () => {
  const [values, lists] = [{ kept: valueState() }, { kept: listState({ atMost: 2 }) }]
  const [first, without] = [keeping(values), keeping({ other: valueState() })]
  expect(await onTableOf(first, without)).toBe(2)
  await expect(afterThat(first, keeping(lists))).rejects.toThrow(
    'state "adder.kept" of stage "by-key" is of the kind "list", but its table has values of it that are of the kind "value": go back to that kind, or give the new state another name.',
  )
  await expect(afterThat(first, keeping(lists))).rejects.toMatchObject({ code: 'state-changed' })
  expect(await afterThat(first, keeping(values))).toBe(1)
})

test('a state may have the name of what every object has', async () => {
  const reducing = () => {
    const app = new Topology('app')
    app
      .source('values', z.object({ key: z.string(), n: z.number() }))
      .keyBy('by-key', (given) => given.key, { slots: 1 })
      .reduce('constructor', (sum, given) => ({ ...sum, n: sum.n + given.n }), { emit: 'on-update' })
      .to(app.sink<unknown>('out'))
    return new StageWorld(app, 'by-key')
  }
  expect(await onTableOf(reducing(), reducing())).toBe(2)
})

test('windows that are laid out in another way are refused, and other ones of the same layout are not', async () => {
  const windowed = (windows: Windows) => {
    const app = new Topology('app')
    const counts = app
      .source('values', z.object({ key: z.string(), n: z.number() }))
      .keyBy('by-key', (given) => given.key, { slots: 1 })
      .window(windows as SessionWindows)
      .aggregate('counts', { count: count() }, { emit: 'final' })
    counts.results.to(app.sink<unknown>('out'))
    counts.late.to(app.sink<unknown>('late'))
    return new StageWorld(app, 'by-key')
  }
  const grace = { grace: minutes(1) }
  const first = windowed(tumbling(minutes(5), grace))
  expect(await onTableOf(first, windowed(tumbling(minutes(10), grace)))).toBe(2)
  await expect(afterThat(first, windowed(session(minutes(5), grace)))).rejects.toThrow(
    'state "counts" of stage "by-key" is windows kept as sessions, but its table has values of it that are windows kept as slices',
  )
})

test('what two containers find missing at once is recorded by one, and compared by the other', async () => {
  const first = keeping({ kept: valueState() })
  first.frame([value('a', 1)])
  const [one, other] = [first.container(), first.container()]
  await Promise.all([first.run(one), first.run(other)])
  expect(await first.store.readManifest(new AbortController().signal)).toEqual({
    ...{ format: 1, topology: 'app', stage: 'by-key', slots: 1 },
    states: { 'adder.kept': { kind: 'value', version: 1 } },
  })
})

test('an older schema version is brought up to ours', async () => {
  const [first, second] = [stage('app', 'by-key'), stage('app', 'by-key', { version: 2 })]
  expect(await onTableOf(first, second)).toBe(2)
  expect(await first.stateOf('a')).toEqual({ 'adder.sum': 110 })
})

test('a newer schema version goes back until the newer release is there', async () => {
  const [first, second] = [stage('app', 'by-key', { version: 2 }), stage('app', 'by-key')]
  expect(await onTableOf(first, second)).toBe(1)
  expect(second.error).toMatchObject({ code: 'newer-schema' })
  expect(String(second.error)).toContain('stage "by-key", key "a": the state adder.sum has the schema version 2')
  expect(second.memory.deadLettered).toEqual([])
})

test('progress of a newer format goes back', async () => {
  const { world } = adder()
  world.frame([value('a', 1)])
  const { signal } = new AbortController()
  await world.store.writeProgress('by-key/shard-0', 0, { format: 99 }, signal)
  expect(await world.run(world.container())).toBe(0)
  expect(world.error).toMatchObject({ code: 'newer-format' })
})

test('a table that cannot be reached fails the invocation', async () => {
  const { world } = adder()
  world.frame([value('a', 1)])
  world.before = ({ name }) => (name === 'read-progress' ? Promise.reject(new Error('no such table')) : undefined)
  expect(await world.run(world.container())).toBe(0)
  expect(String(world.error)).toContain('no such table')
})
