/** S12: readers of a state table, on the model of DynamoDB, which the production store wrote. */
import type { DynamoDBRecord } from 'aws-lambda'
import { z } from 'zod'
import { TableWorld } from '../../../bin/demos/tables/table-world.ts'
import { type ReadDeclarations, readState, stateView } from '../../../lib/aws/state-table/reader.ts'
import {
  aggregatingState,
  epochMs,
  hours,
  listState,
  mapState,
  operatorState,
  reducingState,
  Topology,
  text,
  valueState,
} from '../../../lib/index.ts'

const Reading = z.object({ sensor: z.string(), atMs: z.number(), value: z.number() })
type Reading = z.infer<typeof Reading>
const startMs = Date.UTC(2026, 2, 1)
const hour = hours(1).ms
const ttl = { by: 'event-time', after: hours(1) } as const
const states = {
  last: valueState<Reading>({ ttl }),
  recent: listState<number>({ atMost: 2 }),
  byHour: mapState<number>(),
  highest: reducingState<number>(Math.max),
  mean: aggregatingState({
    init: () => ({ count: 0, sum: 0n }),
    add: ({ count, sum }, value: number) => ({ count: count + 1, sum: sum + BigInt(value) }),
    result: ({ count, sum }) => Number(sum) / count,
  }),
  raw: valueState<Uint8Array>(),
  slot: operatorState({ initial: 0, add: (count: number) => count + 1 }),
}

function sensors() {
  const app = new Topology('sensors')
  const source = app.source('readings', Reading, { eventTime: epochMs(({ atMs }) => atMs) })
  const totals = app.sink<number>('totals')
  const bySensor = source.keyBy('by-sensor', ({ sensor }) => sensor)
  bySensor.process('sensor', {
    state: states,
    step(reading, { state }) {
      if (reading.value < 0) return state.byHour.delete('h0')
      if (reading.value !== 1) state.last.set(reading)
      state.recent.add(reading.value)
      state.byHour.set(`h${Math.floor((reading.atMs - startMs) / hour)}`, reading.value)
      state.highest.add(reading.value)
      state.mean.add(reading.value)
      state.raw.set(Uint8Array.of(reading.value))
    },
  })
  bySensor
    .aggregate('count', { init: () => 0, add: (count) => count + 1, result: (count) => count }, { emit: 'on-update' })
    .to(totals)
  return { app, source }
}

const reads = { sensor: states, count: valueState<number>() } satisfies ReadDeclarations

function world() {
  const parts = sensors()
  const table = new TableWorld(parts.app, { nowMs: startMs, withStreams: true })
  const of = { sensor: states, count: aggregatingState<Reading, number, number>(counting) }
  const view = stateView(parts.app, 'by-sensor', of)
  const reader = readState({ client: table.client, tableName: 'sensors-by-sensor-state', view, clock: table.clock })
  const send = (...readings: readonly (readonly [value: number, afterMs?: number])[]) =>
    table.send(
      parts.source,
      readings.map(([value, afterMs = 0]) => ({ sensor: 's-1', atMs: startMs + afterMs, value })),
    )
  return { ...parts, table, view, reader, send }
}
const counting = {
  init: () => 0,
  add: (count: number) => count + 1,
  result: (count: number) => count,
}

/** The whole stream of the stage's table. */
function streamOf({ model }: TableWorld) {
  const [stream] = model.call('ListStreams', {}).Streams ?? []
  const StreamArn = stream?.StreamArn ?? ''
  const ShardId = model.call('DescribeStream', { StreamArn }).StreamDescription?.Shards?.[0]?.ShardId ?? ''
  const { ShardIterator = '' } = model.call('GetShardIterator', {
    StreamArn,
    ShardId,
    ShardIteratorType: 'TRIM_HORIZON',
  })
  return model.call('GetRecords', { ShardIterator }).Records ?? []
}

test('a lookup shows every kind of state in the types of the user, and nothing of the runner', async () => {
  const { send, reader } = world()
  await send([10], [20, hour], [30, hour + 1])
  const found = await reader.get('s-1')
  expect(found).toEqual({
    key: 's-1',
    position: expect.any(Number),
    states: {
      sensor: {
        last: { sensor: 's-1', atMs: startMs + hour + 1, value: 30 },
        recent: [20, 30],
        byHour: new Map([
          ['h0', 10],
          ['h1', 30],
        ]),
        highest: 30,
        mean: 20,
        raw: Uint8Array.of(30),
      },
      count: 3,
    },
  })
  // Types are the user's: these lines compile.
  const mean: number | undefined = found?.states.sensor.mean
  const count: number | undefined = found?.states.count
  const inFirst: number | undefined = found?.states.sensor.byHour.get('h0')
  expect([mean, count, inFirst]).toEqual([20, 3, 10])
})

test('a key that nothing came for has no state', async () => {
  const { send, reader } = world()
  await send([10])
  expect(await reader.get('s-2')).toBeUndefined()
})

test("what has expired by its key's time is not shown, though the table still holds it", async () => {
  const { send, reader } = world()
  await send([10])
  await send([1, hour])
  expect((await reader.get('s-1'))?.states.sensor.last).toBeUndefined()
})

test('a view reads what it names only: without maps a lookup is one read unit', async () => {
  const { app, table, send } = world()
  await send([10])
  const view = stateView(app, 'by-sensor', { sensor: { highest: states.highest } })
  const reader = readState({ client: table.client, tableName: 'sensors-by-sensor-state', view, clock: table.clock })
  const before = table.model.consumedUnits('sensors-by-sensor-state')
  expect((await reader.get('s-1'))?.states).toEqual({ sensor: { highest: 10 } })
  const after = table.model.consumedUnits('sensors-by-sensor-state')
  expect([after.read - before.read, after.write - before.write]).toEqual([1, 0])
})

test('a lookup that a commit falls into is read again, and shows one commit', async () => {
  const { table, view, send } = world()
  await send([10])
  let commitsLeft = 1
  const client = {
    async send(command: { readonly constructor: { readonly name: string } }) {
      // Between the read of the key item and the query of its entries.
      if (command.constructor.name === 'QueryCommand' && commitsLeft-- > 0) await send([20])
      return table.client.send(command as never)
    },
  }
  const reader = readState({
    client: client as never,
    tableName: 'sensors-by-sensor-state',
    view,
    clock: table.clock,
  })
  const states = (await reader.get('s-1'))?.states
  expect([states?.sensor.highest, states?.sensor.byHour.get('h0'), states?.count]).toEqual([20, 20, 2])
})

test('a key that is committed during every read is refused, with what to do', async () => {
  const { table, view, send } = world()
  await send([10])
  let value = 10
  const client = {
    async send(command: { readonly constructor: { readonly name: string } }) {
      value += 1
      if (command.constructor.name === 'QueryCommand') await send([value])
      return table.client.send(command as never)
    },
  }
  const tableName = 'sensors-by-sensor-state'
  const reader = readState({ client: client as never, tableName, view, clock: table.clock })
  await expect(reader.get('s-1')).rejects.toMatchObject({ code: 'state-changing' })
})

test('the changelog, applied change by change, comes to what lookups show', async () => {
  const { table, view, reader, send } = world()
  await send([10], [20])
  await send([30, hour])
  await send([-1])
  const seen: { after?: unknown; entries: Map<string, number>; position: number } = { entries: new Map(), position: 0 }
  for (const record of streamOf(table)) {
    const change = view.change(record)
    if (change?.kind === 'key') {
      expect(change.before).toEqual(seen.after)
      seen.after = change.after
      seen.position = change.position
    } else if (change?.state === 'sensor.byHour') {
      expect(change.before).toBe(seen.entries.get(change.entry))
      if (change.after === undefined) seen.entries.delete(change.entry)
      else seen.entries.set(change.entry, change.after)
    }
  }
  const found = await reader.get('s-1')
  const { byHour, ...others } = found?.states.sensor ?? { byHour: undefined }
  expect(seen.after).toEqual({ sensor: others, count: found?.states.count })
  expect([seen.entries, seen.position]).toEqual([byHour, found?.position])
  expect(seen.entries).toEqual(new Map([['h1', 30]]))
})

test('an item that TTL removes is a change to nothing', async () => {
  const app = new Topology('sensors')
  const source = app.source('readings', Reading, { eventTime: epochMs(({ atMs }) => atMs) })
  const seen = { last: valueState<number>({ ttl }) }
  source
    .keyBy('by-sensor', ({ sensor }) => sensor)
    .process('sensor', {
      state: seen,
      step: ({ value }, { state }) => state.last.set(value),
    })
  const table = new TableWorld(app, { nowMs: startMs, withStreams: true })
  await table.send(source, [{ sensor: 's-1', atMs: startMs, value: 5 }])
  const written = streamOf(table)
  table.clock.advance(17 * 24 * hour)
  expect(table.model.sweepExpired()).toBe(1)
  const view = stateView(app, 'by-sensor', { sensor: seen })
  // The stream keeps its records for a day, so the first ones are gone from it by now.
  const changes = [...written, ...streamOf(table)].flatMap((record) => view.change(record) ?? [])
  expect(changes).toMatchObject([
    { kind: 'key', key: 's-1', before: undefined, after: { sensor: { last: 5 } } },
    { kind: 'key', key: 's-1', before: { sensor: { last: 5 } }, after: undefined },
  ])
  expect(changes[1]?.position).toBe(changes[0]?.position)
})

test('the records of an event of Lambda are understood too: there bytes are base64', async () => {
  const { table, view, send } = world()
  await send([7])
  const asEvent = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
    if (Array.isArray(value)) return value.map(asEvent)
    if (typeof value !== 'object' || value === null || value instanceof Date) return value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, asEvent(inner)]))
  }
  const records = streamOf(table)
  const events = records.map((record) => asEvent(record) as DynamoDBRecord)
  expect(JSON.stringify(events)).toContain('Bw==')
  expect(events.map((record) => view.change(record))).toEqual(records.map((record) => view.change(record)))
})

test('keys of several parts and of bytes, and odd names of entries, come back as they went in', async () => {
  const app = new Topology('odd')
  const source = app.source('names', text())
  const odd = { seen: mapState<number>() }
  source
    .keyBy('by-name', (name) => [name, 'a#b'])
    .process('odd', {
      state: odd,
      step: (name, { state }) => state.seen.set(`x#${name}\n`, 1),
    })
  const table = new TableWorld(app, { nowMs: startMs, withStreams: true })
  const names = ['["', 'key#', '\u{1f600}', 'long'.repeat(600)]
  await table.send(source, names)
  const view = stateView(app, 'by-name', { odd })
  const reader = readState({ client: table.client, tableName: 'odd-by-name-state', view, clock: table.clock })
  for (const name of names) {
    const found = await reader.get([name, 'a#b'])
    expect(found?.states.odd.seen).toEqual(new Map([[`x#${name}\n`, 1]]))
  }
  const changes = streamOf(table).flatMap((record) => view.change(record) ?? [])
  const entries = changes.flatMap((change) => (change.kind === 'entry' ? [[change.key, change.entry]] : []))
  expect(new Set(entries.map((entry) => JSON.stringify(entry)))).toEqual(
    new Set(names.map((name) => JSON.stringify([[name, 'a#b'], `x#${name}\n`]))),
  )
})

test('a state that the stage does not have, a stage without keys and a stream without images are refused by name', () => {
  const { app, view } = world()
  expect(() => stateView(app, 'by-sensor', { sensor: { latest: valueState<number>() } })).toThrow(
    /stage "by-sensor" has no value state "sensor.latest": it has sensor.last \(value\), .*count \(aggregating\)/,
  )
  expect(() => stateView(app, 'by-sensor', reads)).toThrow(/has no value state "count"/)
  expect(() => stateView(app, 'readings', {})).toThrow(/stage "readings" keeps no keys/)
  const keysOnly = { eventName: 'MODIFY', dynamodb: {} }
  expect(() => view.change(keysOnly)).toThrow(/no new image: give the table a stream of the view NEW_AND_OLD_IMAGES/)
})

test("an entry that has expired by its key's time is not shown by a lookup of it", async () => {
  const app = new Topology('entries')
  const source = app.source('readings', Reading, { eventTime: epochMs(({ atMs }) => atMs) })
  const byValue = { seen: mapState<number>({ ttl }) }
  source
    .keyBy('by-sensor', ({ sensor }) => sensor)
    .process('sensor', {
      state: byValue,
      step: ({ value }, { state }) => state.seen.set(`v${value}`, value),
    })
  const table = new TableWorld(app, { nowMs: startMs })
  const view = stateView(app, 'by-sensor', { sensor: byValue })
  const reader = readState({ client: table.client, tableName: table.tableOf('by-sensor'), view, clock: table.clock })
  await table.send(source, [{ sensor: 's-1', atMs: startMs, value: 1 }])
  await table.send(source, [{ sensor: 's-1', atMs: startMs + hour - 1, value: 2 }])
  expect(await reader.entry('s-1', 'sensor.seen', 'v1')).toBe(1)
  await table.send(source, [{ sensor: 's-1', atMs: startMs + hour, value: 3 }])
  expect(await reader.entry('s-1', 'sensor.seen', 'v1')).toBeUndefined()
  expect(await reader.entry('s-1', 'sensor.seen', 'v2')).toBe(2)
  expect((await reader.get('s-1'))?.states.sensor.seen).toEqual(
    new Map([
      ['v2', 2],
      ['v3', 3],
    ]),
  )
})

test('an error of a value says of which stage it is', async () => {
  const appOf = (state: typeof states.last) => {
    const app = new Topology('versions')
    const source = app.source('readings', Reading, { eventTime: epochMs(({ atMs }) => atMs) })
    source
      .keyBy('by-sensor', ({ sensor }) => sensor)
      .process('sensor', { state: { last: state }, step: (reading, { state: { last } }) => last.set(reading) })
    return { app, source }
  }
  const newer = appOf(valueState<Reading>({ version: 2, upcast: { 1: (value: Reading) => value } }))
  const table = new TableWorld(newer.app, { nowMs: startMs, withStreams: true })
  const view = stateView(appOf(valueState<Reading>()).app, 'by-sensor', { sensor: { last: valueState<Reading>() } })
  const tableName = table.tableOf('by-sensor')
  const reader = readState({ client: table.client, tableName, view, clock: table.clock })
  await table.send(newer.source, [{ sensor: 's-1', atMs: startMs, value: 1 }])
  const message = 'stage "by-sensor", key "s-1": the state sensor.last has the schema version 2'
  await expect(reader.get('s-1')).rejects.toThrow(message)
  const [record] = streamOf(table).filter(({ dynamodb }) => JSON.stringify(dynamodb).includes('key#s-1'))
  expect(() => view.change(record as never)).toThrow(message)
})
