/** Tables that are not the stage's, or not of this release. */
import { z } from 'zod'
import { ConfigurationError, Topology, valueState } from '../../../lib/index.ts'
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

test('an older schema version is brought up to ours', async () => {
  const [first, second] = [stage('app', 'by-key'), stage('app', 'by-key', { version: 2 })]
  expect(await onTableOf(first, second)).toBe(2)
  expect(await first.stateOf('a')).toEqual({ 'adder.sum': 110 })
})

test('a newer schema version goes back until the newer release is there', async () => {
  const [first, second] = [stage('app', 'by-key', { version: 2 }), stage('app', 'by-key')]
  expect(await onTableOf(first, second)).toBe(1)
  expect(second.error).toMatchObject({ code: 'newer-schema' })
  expect(String(second.error)).toContain('key "a": the state adder.sum has the schema version 2')
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
