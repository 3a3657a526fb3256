/** Tables that are missing, somebody else's, or of another release of the topology: the real handler on the DynamoDB store. */
import { z } from 'zod'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { RetryableError } from '../../../lib/core/errors.ts'
import { valueState } from '../../../lib/state/states.ts'
import { kinesisEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { Topology } from '../../../lib/topology/topology.ts'
import { StateTable, tableName } from '../state-table/state-table.ts'

const schema = z.object({ key: z.string(), n: z.number() })

interface Release {
  readonly topology?: 'app' | 'other'
  readonly stage?: string
  readonly slots?: number
  readonly version?: 1 | 2
  readonly kept?: (sum: number) => unknown
}

function release({ topology = 'app', stage = 'by-key', slots = 4, version = 1, kept = (sum) => sum }: Release) {
  const app = new Topology(topology)
  const out = app.sink<string>('out')
  const sum =
    version === 1 ? valueState<unknown>() : valueState<unknown>({ version, upcast: { 1: (old: number) => old } })
  app
    .source('values', schema)
    .keyBy(stage, ({ key }) => key, { slots })
    .process('adder', {
      state: { sum },
      step({ key, n }, { state }) {
        const added = Number(state.sum.get() ?? 0) + n
        state.sum.set(kept(added))
        return [`${key} ${added}`]
      },
    })
    .to(out)
  return { app, out, stage }
}

/** Releases of an application, one after the other, on the same tables and streams. */
class Releases {
  /** Of the stage that feeds, in each topology one of its own. */
  readonly feeding = { app: new StateTable(), other: new StateTable() }
  readonly table = new StateTable()
  readonly ports = memoryPorts()
  #sent = 0

  /** Sends a record to the source; answers of the feeding stage, and of the keyed one or why it rejects. */
  async send(given: Release) {
    const { app, out, stage } = release(given)
    const { ports } = this
    const stores = new Map([
      ['values', this.feeding[given.topology ?? 'app'].store({ stage: 'values' })],
      [stage, this.table.store({ stage })],
    ])
    const state = (name: string) => stores.get(name)
    const handler = streamHandler(app, { ports: { ...ports, state } })
    const fed = await handler(kinesisEvent([{ key: 'a', n: 1 }], { firstIndex: this.#sent++ }), lambdaContext())
    const failures: unknown[] = []
    for (const event of ports.takeFrames(stage)) {
      try {
        const { batchItemFailures } = await handler(event, lambdaContext())
        if (batchItemFailures.length > 0) failures.push('goes back')
      } catch (error) {
        failures.push(error)
      }
    }
    return { fed: fed.batchItemFailures.length, failures, received: ports.received(out) }
  }

  get codes(): unknown[] {
    return this.ports.lines.map(({ fields }) => fields.code)
  }
}

test('a feeding stage whose table is gone publishes nothing, and the record goes back', async () => {
  const releases = new Releases()
  expect(await releases.send({})).toEqual({ fed: 0, failures: [], received: ['a 1'] })
  releases.feeding.app.model.call('DeleteTable', { TableName: tableName })
  expect(await releases.send({})).toMatchObject({ fed: 1, failures: [] })
  expect(releases.codes).toEqual(['state-table-unusable'])
})

test('a feeding stage whose table is missing says which table, whose, and what to look at', async () => {
  const table = new StateTable()
  table.model.call('DeleteTable', { TableName: tableName })
  const ports = memoryPorts()
  const store = table.store({ stage: 'values' })
  const state = (name: string) => (name === 'values' ? store : ports.state(name))
  const handler = streamHandler(release({}).app, { ports: { ...ports, state } })
  const event = kinesisEvent([{ key: 'a', n: 1 }])
  // The record goes back, and nothing of it has gone on.
  expect((await handler(event, lambdaContext())).batchItemFailures).toHaveLength(1)
  expect(ports.takeFrames('by-key')).toEqual([])
  const said = ports.lines.map(({ fields, message }) => `${message} ${JSON.stringify(fields)}`).join()
  expect(said).toContain('state-table-unusable')
  expect(said).toMatch(/the state table \W*by-hotel\W* of stage \W*values\W* cannot be used \(ResourceNotFound/)
  expect(said).toContain('check its name')
})

test('a feeding stage that is given no table says so before its first record', async () => {
  const ports = memoryPorts()
  const state = (name: string) => (name === 'values' ? undefined : ports.state(name))
  const handler = streamHandler(release({}).app, { ports: { ...ports, state } })
  await expect(handler(kinesisEvent([{ key: 'a', n: 1 }]), lambdaContext())).rejects.toThrow(
    'stage "values" of topology "app" has no state table: deploy it with StreamApplication, or give its ports one.',
  )
})

test('a keyed stage whose table is gone rejects, and says which table, whose, and what to look at', async () => {
  const table = new StateTable()
  const ports = memoryPorts()
  const { app } = release({})
  const store = table.store({ stage: 'by-key' })
  const state = (name: string) => (name === 'by-key' ? store : ports.state(name))
  const handler = streamHandler(app, { ports: { ...ports, state } })
  await handler(kinesisEvent([{ key: 'a', n: 1 }]), lambdaContext())
  table.model.call('DeleteTable', { TableName: tableName })
  const [event] = ports.takeFrames('by-key')
  const invoked = handler(event, lambdaContext())
  await expect(invoked).rejects.toThrow(RetryableError)
  await expect(invoked).rejects.toThrow(
    /the state table "by-hotel" of stage "by-key" cannot be used \(ResourceNotFound/,
  )
  await expect(invoked).rejects.toThrow(
    'check its name, that its keys are the texts "pk" and "sk", and the permissions',
  )
})

test.each<[string, Release, Release, string]>([
  [
    'another topology',
    { topology: 'other' },
    {},
    'the state table bound to stage "by-key" of topology "app" holds the state of stage "by-key" of "other"',
  ],
  [
    'the stage under its old name',
    {},
    { stage: 'by-name' },
    'the state table bound to stage "by-name" of topology "app" holds the state of stage "by-key" of "app": bind it to that stage, keep the stage\'s old name',
  ],
])('the table of %s is refused, and its state stays', async (_what, first, second, message) => {
  const releases = new Releases()
  await releases.send(first)
  const { failures } = await releases.send(second)
  expect(failures.length).toBeGreaterThan(0)
  for (const error of failures) expect(String(error)).toContain(message)
  const item = await releases.table.store().readKeys(['a'], new AbortController().signal)
  expect(item.get('a')?.states).toEqual({ 'adder.sum': 1 })
})

test('an item that somebody else wrote stops its partition', async () => {
  const releases = new Releases()
  const Item = { pk: { S: 'key#a' }, sk: { S: 'key' }, hello: { S: 'x' } }
  releases.table.model.call('PutItem', { TableName: tableName, Item })
  expect(await releases.send({})).toEqual({ fed: 0, failures: ['goes back'], received: [] })
  expect(releases.codes).toEqual(['foreign-item'])
  expect(releases.ports.deadLettered).toEqual([])
})

test('a value of a newer schema version goes back, and is no dead letter', async () => {
  const releases = new Releases()
  await releases.send({ version: 2 })
  expect(await releases.send({ version: 1 })).toEqual({ fed: 0, failures: ['goes back'], received: ['a 1'] })
  expect(releases.codes).toEqual(['newer-schema'])
  expect(releases.ports.deadLettered).toEqual([])
})

test.each<[string, unknown, string, string]>([
  [
    'a value that the table cannot return',
    new Date(0),
    'unsupported-value',
    'stage "by-key", key "a": the state adder.sum is a Date',
  ],
  [
    'a state beyond the limit',
    'x'.repeat(400_000),
    'state-too-large',
    'stage "by-key", key "a": the state adder.sum is the largest in an item of 400114 bytes, where 389120 are allowed: keep less per key, or use a map state',
  ],
])(
  '%s makes its record a dead letter that names stage, key, state and remedy; nothing is committed',
  async (_what, value, code, message) => {
    const releases = new Releases()
    expect(await releases.send({ kept: () => value })).toEqual({ fed: 0, failures: [], received: [] })
    const [letter] = releases.ports.deadLettered
    expect(letter).toMatchObject({ stage: 'by-key', reason: { code } })
    expect(letter?.reason.message).toContain(message)
    expect(letter?.reason.message).toMatch(/: keep /)
    // The position of the key has moved over it, so that no late attempt applies it.
    const item = await releases.table.store().readKeys(['a'], new AbortController().signal)
    expect(item.get('a')?.states).toEqual({})
    expect(await releases.send({})).toMatchObject({ received: ['a 1'] })
  },
)
