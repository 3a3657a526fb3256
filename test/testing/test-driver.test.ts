import { z } from 'zod'
import { type Duration, minutes, seconds } from '../../lib/core/duration.ts'
import { ConfigurationError, RetryableError, TerminalError } from '../../lib/core/errors.ts'
import { bytes, type Format, json, text } from '../../lib/core/format.ts'
import { refreshedTable } from '../../lib/operators/enrich/table.ts'
import { operatorState, valueState } from '../../lib/state/states.ts'
import { TestDriver } from '../../lib/testing/test-driver.ts'
import { Topology } from '../../lib/topology/topology.ts'

function orders(options: { readonly gzip?: boolean } = {}) {
  const app = new Topology('orders')
  const format = json({ compression: options.gzip ? 'gzip' : 'none' })
  const source = app.source('requests', z.object({ id: z.string(), amount: z.coerce.number() }), { format })
  const out = app.sink<string>('out')
  let later = true
  source
    .map(({ id, amount }, record) => {
      if (id === 'later' && later) throw new RetryableError('later')
      return `${record.partition} ${record.position} ${record.key} ${id} ${amount}`
    })
    .to(out)
  return {
    app,
    source,
    out,
    driver: new TestDriver(app),
    fix: () => {
      later = false
    },
  }
}

test('sends values through the schema, and shows what the sinks received', async () => {
  const { driver, source, out } = orders()
  await driver.send(
    source,
    [
      { id: 'a', amount: '7' },
      { id: 'b', amount: 8 },
    ],
    { key: ({ id }) => `k-${id}` },
  )
  await driver.send(source, [{ id: 'c', amount: 9 }], { partition: 'shard-1' })
  await driver.send(source, [{ id: 'd', amount: 1 }])
  expect(driver.received(out)).toEqual([
    'shard-0 0 k-a a 7',
    'shard-0 1 k-b b 8',
    'shard-1 0 key c 9',
    'shard-0 2 key d 1',
  ])
})

test('sends to a source in the format that it reads, gzip included', async () => {
  const { driver, source, out } = orders({ gzip: true })
  await driver.send(source, [{ id: 'a', amount: 7 }])
  expect(driver.deadLetters).toEqual([])
  expect(driver.received(out)).toHaveLength(1)

  const app = new Topology('formats')
  const [asText, asBytes] = [app.source('text', text()), app.source('bytes', bytes())]
  const lines = app.sink<unknown>('lines')
  asText
    .map((line): unknown => line)
    .merge(asBytes.map((raw): unknown => [...raw]))
    .to(lines)
  const other = new TestDriver(app)
  await other.send(asText, ['{"not":"json"'])
  await other.send(asBytes, [Uint8Array.of(1, 255)])
  expect(other.received(lines)).toEqual(['{"not":"json"', [1, 255]])
})

test('sends payloads byte for byte; what cannot be read is a dead letter and its neighbours go on', async () => {
  const { driver, source, out } = orders()
  await driver.sendRaw(source, [
    '{"id":"a","amount":1}',
    '{"id":',
    Uint8Array.of(0xff),
    null,
    '',
    '{"id":"b","amount":"x"}',
  ])
  expect(driver.received(out)).toHaveLength(1)
  expect(driver.deadLetters.map(({ position, reason }) => [position, reason.code, reason.phase])).toEqual([
    ['1', 'not-json', 'decode'],
    ['2', 'not-utf8', 'decode'],
    ['3', 'unexpected-delete', 'decode'],
    ['4', 'empty', 'decode'],
    ['5', 'invalid', 'validate'],
  ])
})

test('what goes back stays pending with everything behind it in its partition, until it is sent to or retried', async () => {
  const { driver, source, out, fix } = orders()
  await driver.send(source, [
    { id: 'a', amount: 1 },
    { id: 'later', amount: 1 },
    { id: 'b', amount: 1 },
  ])
  await driver.send(source, [{ id: 'c', amount: 1 }], { partition: 'shard-1' })
  expect(driver.pending(source)).toBe(2)
  await driver.send(source, [{ id: 'd', amount: 1 }])
  expect(driver.pending(source)).toBe(3)
  fix()
  await driver.retry()
  expect(driver.pending(source)).toBe(0)
  expect(driver.received(out).map((line) => line.split(' ')[3])).toEqual(['a', 'c', 'later', 'b', 'd'])
})

test('a sink that refuses keeps the order of the partition and loses nothing', async () => {
  const { driver, source, out } = orders()
  driver.ports.refuse(out, (line) => (line.includes(' b ') ? { status: 'retry', error: new Error('full') } : undefined))
  await driver.send(
    source,
    ['a', 'b', 'c'].map((id) => ({ id, amount: 1 })),
  )
  expect(driver.pending(source)).toBe(2)
  driver.ports.refuse(out)
  await driver.retry()
  expect(driver.received(out).map((line) => line.split(' ')[3])).toEqual(['a', 'b', 'c'])
})

test('keeps copies: a value that a test changes later does not change what was received', async () => {
  const app = new Topology('copies')
  const source = app.source('in', text())
  const out = app.sink<{ n: number }>('out')
  const made: { n: number }[] = []
  source
    .map(() => {
      const value = { n: 1 }
      made.push(value)
      return value
    })
    .to(out)
  const driver = new TestDriver(app)
  await driver.send(source, ['a'])
  for (const value of made) value.n = 2
  expect(driver.received(out)).toEqual([{ n: 1 }])
})

test('time stands still until it is moved, and a table is refreshed behind it', async () => {
  const app = new Topology('rates')
  let version = 0
  const table = refreshedTable('t', { load: async () => new Map([['k', ++version]]), every: minutes(1) })
  const source = app.source('in', text())
  const out = app.sink<string>('out')
  source
    .enrich({ from: table, key: () => 'k', join: (line, row, { stalenessMs }) => `${line} v${row} ${stalenessMs}` })
    .to(out)
  const driver = new TestDriver(app, { nowMs: 1_000 })
  await driver.send(source, ['a'])
  await driver.advanceProcessingTime(seconds(60))
  expect(driver.clock.nowMs()).toBe(61_000)
  await driver.send(source, ['b'])
  await driver.advanceProcessingTime(seconds(1))
  await driver.send(source, ['c'])
  const [first, , third] = driver.received(out)
  expect(first).toBe('a v1 0')
  expect(third).toBe('c v2 1000')
})

test('headers go with what is sent, by name or as a record has them, and are seen in steps and behind keyBy', async () => {
  const app = new Topology('audit')
  const source = app.source('orders', json() as Format<{ id: string; tenant: string }>)
  const out = app.sink<string>('out', { key: (line) => line.slice(0, 1) })
  source
    .map(({ id }, record) => ({ id, hops: record.headers.map(({ value }) => Buffer.from(value).toString()).join() }))
    .keyBy('by-id', ({ id }) => id)
    .process('audit', {
      state: { orders: valueState<number>() },
      step: ({ id, hops }, { state, record }) => {
        state.orders.set((state.orders.get() ?? 0) + 1)
        if (id === 'bad') throw new TerminalError('no')
        return [`${id} ${hops} ${record.header('hop')}`]
      },
    })
    .to(out)
  const driver = new TestDriver(app)
  await driver.send(
    source,
    [
      { id: 'a', tenant: 'acme' },
      { id: 'bad', tenant: 'bolt' },
    ],
    { headers: ({ tenant }) => ({ tenant, hop: Uint8Array.of(0x68) }) },
  )
  await driver.send(source, [{ id: 'b', tenant: 'acme' }], {
    headers: () => [
      { name: 'hop', value: 'edge' },
      { name: 'hop', value: 'core' },
    ],
  })
  await driver.send(source, [{ id: 'c', tenant: 'acme' }])
  const outputs = driver.outputs(out)
  expect(outputs.map(({ value, key, index }) => [value, key, index])).toEqual([
    ['a acme,h h', 'a', 0],
    ['b edge,core core', 'b', 0],
    ['c  undefined', 'c', 0],
  ])
  expect(outputs.map(({ record }) => [record.header('tenant'), record.headers.map(({ name }) => name)])).toEqual([
    ['acme', ['tenant', 'hop']],
    [undefined, ['hop', 'hop']],
    [undefined, []],
  ])
  expect(driver.deadLetters).toMatchObject([
    {
      headers: [
        { name: 'tenant', value: Buffer.from('bolt').toString('base64') },
        { name: 'hop', value: Buffer.from('h').toString('base64') },
      ],
    },
  ])
})

test.each<[unknown, string]>([
  [{ ms: Number.NaN }, 'NaN ms'],
  [{ ms: Number.POSITIVE_INFINITY }, 'Infinity ms'],
  [{ ms: -1 }, '-1 ms'],
  [{ ms: 0.5 }, '0.5 ms'],
  [{ ms: '5' }, 'an object without a number of ms'],
  [5, '5'],
  ['5m', '"5m"'],
  [undefined, 'undefined'],
])('%j is no length of time to move on by, and moves nothing', async (length, shown) => {
  const { driver } = orders()
  const beforeMs = driver.clock.nowMs()
  for (const method of ['advanceProcessingTime', 'advanceEventTime'] as const) {
    const moved = driver[method](length as Duration)
    await expect(moved).rejects.toThrow(ConfigurationError)
    await expect(moved).rejects.toThrow(`${method}: the length is ${shown}: give a length of time, such as minutes(5).`)
  }
  expect(driver.clock.nowMs()).toBe(beforeMs)
})

test('a source of another topology is refused by name', async () => {
  const { driver } = orders()
  const other = new Topology('other').source('theirs', text())
  await expect(driver.send(other, ['x'])).rejects.toThrow(ConfigurationError)
  await expect(driver.send(other, ['x'])).rejects.toThrow('topology "orders" has no source "theirs"')
})

test.each(['key function', 'operator state'])('an impure %s is refused', async (what) => {
  let calls = 0
  const app = new Topology('impure-keys')
  const source = app.source('lines', text())
  source
    .keyBy('by-key', (line) => (what === 'key function' ? `${line}${calls++}` : line))
    .process('seen', {
      state: {
        last: valueState<number>(),
        inSlot: operatorState({ initial: 0, add: (n: number) => n + (what === 'key function' ? 1 : calls++) }),
      },
      step: (_, { state }) => [state.inSlot.get()],
    })
    .to(app.sink<number>('out'))
  await expect(new TestDriver(app).send(source, ['a', 'a'])).rejects.toThrow('in two ways')
})
