import fc from 'fast-check'
import type { CapacityReport } from '../../../lib/aws/state-table/calls.ts'
import { writeKeyItem } from '../../../lib/aws/state-table/items.ts'
import { itemBytes } from '../../../lib/emulator/dynamodb/value.ts'
import { checkedCommit } from '../../../lib/state/commit-rules.ts'
import { keyItemKey } from '../../../lib/state/key-encoding.ts'
import type { KeyCommit, StateStore, StateValue } from '../../../lib/state/state-store.ts'
import { stateTable } from '../../../lib/testing/state-table.ts'
import { awsError, never } from '../sink-worlds.ts'
import { type SentCall, StateTable, tableName } from './state-table.ts'

const retryable = (code: string, message: RegExp = /./) =>
  expect.objectContaining({ name: 'RetryableError', code, message: expect.stringMatching(message) })

const rejection = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 'no rejection',
    (error: unknown) => error,
  )

function commitOf(position: number, readPosition?: number, entries: KeyCommit['entries'] = []): KeyCommit {
  return { key: 'h1', readPosition, item: { position, states: { n: position }, expiresAtSeconds: undefined }, entries }
}

const room = (entry: string, value: StateValue | undefined = 1) => ({ state: 'rooms', entry, value })
const operations = ({ sent }: StateTable): string[] => sent.map(({ operation }) => operation)

/** Fails the first `times` calls before they take effect. */
function failFirst(table: StateTable, times: number, error: () => Error): void {
  let left = times
  table.before = () => {
    if (left-- > 0) throw error()
  }
}

async function manyKeys(store: StateStore, count: number, states: KeyCommit['item']['states'] = {}): Promise<string[]> {
  const keys = Array.from({ length: count }, (_, i) => `key ${i}`)
  for (const key of keys) await store.commit({ ...commitOf(1), key, item: { ...commitOf(1).item, states } }, never())
  return keys
}

describe('the table', () => {
  test('holds what docs/state-table.md says', async () => {
    const table = new StateTable()
    const store = table.store()
    const states = { count: 3, total: 12n, seats: [1, 'a', null, true], raw: Uint8Array.of(255) }
    const own = { eventTimeMs: 5, states: { count: { version: 2 } } }
    const item = { position: 7, states, expiresAtSeconds: 1_800_000_000, own }
    const entries = [
      { ...room('12', { guest: 'ä' }), expiresAtSeconds: 1_800_000_001, own: { touchedMs: 5 } },
      { ...room('#'), value: undefined },
    ]
    await store.commit({ key: 'h1', readPosition: undefined, item, entries }, never())
    await store.writeProgress('shardId-000000000001', 0, { completed: 5 }, never())
    await store.writeManifest({ stage: 'by-hotel', slots: 64 }, never())
    const { Items } = table.model.call('Scan', { TableName: tableName })
    expect(Items).toHaveLength(5)
    expect(JSON.parse(JSON.stringify(Items))).toEqual(
      expect.arrayContaining([
        {
          pk: { S: 'key#h1' },
          sk: { S: 'key' },
          format: { N: '1' },
          position: { N: '7' },
          states: {
            M: {
              count: { N: '3' },
              total: { NS: ['12'] },
              seats: { L: [{ N: '1' }, { S: 'a' }, { NULL: true }, { BOOL: true }] },
              raw: { B: { 0: 255 } },
            },
          },
          own: { M: { eventTimeMs: { N: '5' }, states: { M: { count: { M: { version: { N: '2' } } } } } } },
          ttl: { N: '1800000000' },
        },
        {
          pk: { S: 'key#h1' },
          sk: { S: 'map#rooms#12' },
          format: { N: '1' },
          position: { N: '7' },
          value: { M: { guest: { S: 'ä' } } },
          own: { M: { touchedMs: { N: '5' } } },
          ttl: { N: '1800000001' },
        },
        { pk: { S: 'key#h1' }, sk: { S: 'map#rooms##' }, format: { N: '1' }, position: { N: '7' } },
        {
          pk: { S: 'progress#shardId-000000000001' },
          sk: { S: 'progress' },
          format: { N: '1' },
          version: { N: '1' },
          value: { M: { completed: { N: '5' } } },
        },
        {
          pk: { S: 'manifest#' },
          sk: { S: 'manifest' },
          format: { N: '1' },
          value: { M: { slots: { N: '64' }, stage: { S: 'by-hotel' } } },
        },
      ]),
    )
  })

  test('the size that is checked is never below what DynamoDB counts', () => {
    const value = fc.oneof(
      fc.double({ noNaN: true, min: -1e120, max: 1e120 }).filter((n) => n === 0 || Math.abs(n) > 1e-120),
      fc.bigInt({ min: -(10n ** 38n), max: 10n ** 38n }),
      fc.string({ unit: 'binary' }),
      fc.array(fc.integer()),
      fc.dictionary(
        fc.string({ minLength: 1 }).filter((name) => name !== '__proto__'),
        fc.integer(),
      ),
    )
    const key = fc.oneof(fc.string(), fc.constant('ä'.repeat(3_000)))
    fc.assert(
      fc.property(key, value, fc.option(value, { nil: undefined }), (text, state, own) => {
        let counted = 0
        const limits = {
          stage: 's',
          largeItemBytes: 0,
          onLargeItem: ({ bytes }: { bytes: number }) => {
            counted = bytes
          },
        }
        const { item } = checkedCommit(
          { ...commitOf(2), key: text, item: { ...commitOf(2).item, states: { state }, own } },
          limits,
        )
        const bytes = itemBytes(writeKeyItem(keyItemKey(text), { ...item, expiresAtSeconds: 1_800_000_000 }))
        expect(counted).toBeGreaterThanOrEqual(bytes)
        expect(counted).toBeLessThan(bytes * 1.5 + 100)
      }),
    )
  })
})

describe('reading', () => {
  test('is strongly consistent, a hundred keys at a time, key items apart from entries', async () => {
    const table = new StateTable()
    const store = table.store()
    const keys = await manyKeys(store, 230)
    table.sent.length = 0
    expect((await store.readKeys(keys, never())).size).toBe(230)
    const requests = table.sent.map(
      ({ input }) => (input.RequestItems as unknown as Record<string, { Keys: { sk: { S: string } }[] }>)[tableName],
    )
    expect(requests).toEqual(Array(3).fill({ Keys: expect.anything(), ConsistentRead: true }))
    const read = requests.map((request) => request?.Keys ?? [])
    expect(read.map(({ length }) => length)).toEqual([100, 100, 30])
    expect(new Set(read.flat().map(({ sk }) => sk.S))).toEqual(new Set(['key']))
    await store.readProgress('p', never())
    await store.listEntries('h1', 'rooms', never())
    expect(table.sent.slice(3).map(({ input }) => input.ConsistentRead)).toEqual([true, true])
  })

  test('asks for a key once, however often it is named', async () => {
    const table = new StateTable()
    const store = table.store()
    await manyKeys(store, 1)
    expect((await store.readKeys(['key 0', 'key 0'], never())).size).toBe(1)
  })

  test('keeps a bound on batches in flight', async () => {
    const table = new StateTable()
    const store = table.store({ parallelReads: 2 })
    let inFlight = 0
    let most = 0
    table.before = async () => {
      inFlight += 1
      most = Math.max(most, inFlight)
      await Promise.resolve()
    }
    table.after = () => {
      inFlight -= 1
    }
    await store.readKeys(
      Array.from({ length: 900 }, (_, i) => String(i)),
      never(),
    )
    expect(most).toBe(2)
    expect(table.sent).toHaveLength(9)
  })

  test('asks again for what was not processed, after a rest, until it has all', async () => {
    let refusals = 250
    const table = new StateTable({
      refuse: ({ operation }) => (operation === 'BatchGetItem' && refusals-- > 0 ? 'throttle' : undefined),
    })
    const store = table.store()
    const keys = await manyKeys(store, 120)
    expect((await store.readKeys(keys, never())).size).toBe(120)
    expect(refusals).toBeLessThan(0)
    expect(table.clock.sleptMs.length).toBeGreaterThan(0)
  })

  test('rests longer each time that nothing was processed', async () => {
    const table = new StateTable()
    const store = table.store()
    await manyKeys(store, 2)
    table.sent.length = 0
    table.after = ({ input }, answer) => {
      const { Keys } = (input.RequestItems as unknown as Record<string, { Keys: object[] }>)[tableName] ?? { Keys: [] }
      if (table.sent.length > 4) return
      const left = table.sent.length === 4 ? Keys.slice(1) : Keys
      Object.assign(answer, { Responses: {}, UnprocessedKeys: { [tableName]: { Keys: left } } })
    }
    await store.readKeys(['key 0', 'key 1'], never())
    expect(table.clock.sleptMs).toEqual([25, 50, 100, 25])
  })

  test('starts no further batch after one failed', async () => {
    const table = new StateTable()
    const store = table.store({ tableName: 'missing', parallelReads: 2 })
    const error = await rejection(
      store.readKeys(
        Array.from({ length: 900 }, (_, i) => String(i)),
        never(),
      ),
    )
    expect(error).toEqual(retryable('state-table-unusable'))
    expect(table.sent).toHaveLength(2)
  })

  test('reads more than one answer can hold', async () => {
    const table = new StateTable()
    const store = table.store()
    const keys = await manyKeys(store, 70, { text: 'x'.repeat(300_000) })
    table.sent.length = 0
    expect((await store.readKeys(keys, never())).size).toBe(70)
    expect(table.sent.length).toBeGreaterThan(1)
  })

  test('lists more entries than one page can hold, in order', async () => {
    const table = new StateTable()
    const store = table.store()
    const names = ['a', 'b', 'c', 'd', 'e'].map((letter) => letter.repeat(1_200))
    let readPosition: number | undefined
    for (const [i, name] of [...names].reverse().entries()) {
      await store.commit(commitOf(i + 1, readPosition, [room(name, 'x'.repeat(300_000))]), never())
      readPosition = i + 1
    }
    table.sent.length = 0
    expect([...(await store.listEntries('h1', 'rooms', never())).keys()]).toEqual(names)
    expect(operations(table)).toEqual(['Query', 'Query'])
  })

  test.each([
    ['a throttle', () => awsError('ThrottlingException')],
    ['a lost connection', () => awsError('Error', { code: 'ECONNRESET' })],
    ['a failure of the service', () => awsError('InternalServerError', { $fault: 'server' })],
  ])('goes on after %s', async (_, error) => {
    const table = new StateTable()
    const store = table.store()
    await store.commit(commitOf(1, undefined, [room('1')]), never())
    await store.writeProgress('p', 0, 1, never())
    failFirst(table, 2, error)
    expect((await store.readKeys(['h1'], never())).size).toBe(1)
    failFirst(table, 1, error)
    expect((await store.listEntries('h1', 'rooms', never())).size).toBe(1)
    failFirst(table, 1, error)
    expect(await store.readProgress('p', never())).toEqual({ version: 1, value: 1 })
    expect(table.clock.sleptMs).toEqual([25, 50, 25, 25])
  })

  test('gives up when the signal aborts, and says why it had to wait', async () => {
    const table = new StateTable()
    const controller = new AbortController()
    table.before = () => {
      if (table.sent.length === 3) controller.abort()
      throw awsError('ThrottlingException')
    }
    const error = await rejection(table.store().readKeys(['h1'], controller.signal))
    expect(error).toEqual(retryable('state-deadline', /"by-hotel".*ThrottlingException/))
    expect(table.sent).toHaveLength(3)
  })

  test('starts no further batch after an abort, and awaits those in flight', async () => {
    const table = new StateTable()
    const controller = new AbortController()
    let answered = 0
    table.before = async () => {
      if (table.sent.length === 3) controller.abort()
      await Promise.resolve()
    }
    table.after = () => {
      answered += 1
    }
    const keys = Array.from({ length: 900 }, (_, i) => String(i))
    const error = await rejection(table.store({ parallelReads: 3 }).readKeys(keys, controller.signal))
    expect(error).toEqual(retryable('state-deadline'))
    expect([table.sent.length, answered]).toEqual([3, 3])
  })
})

describe('a commit', () => {
  test('of a key item alone is one put and one write unit', async () => {
    const reports: CapacityReport[] = []
    const table = new StateTable()
    const store = table.store({ onCapacity: (report) => reports.push(report) })
    await store.commit(commitOf(1), never())
    await store.readKeys(['h1', 'h2'], never())
    await store.commit(commitOf(2, 1), never())
    expect(operations(table)).toEqual(['PutItem', 'BatchGetItem', 'PutItem'])
    expect(reports).toEqual([
      { kind: 'write', units: 1 },
      { kind: 'read', units: 2 },
      { kind: 'write', units: 1 },
    ])
  })

  test('with entries is one transaction', async () => {
    const reports: CapacityReport[] = []
    const table = new StateTable()
    const store = table.store({ onCapacity: (report) => reports.push(report) })
    await store.commit(commitOf(1, undefined, [room('1'), room('2')]), never())
    expect(operations(table)).toEqual(['TransactWriteItems'])
    expect(reports).toEqual([{ kind: 'write', units: 6 }])
  })

  test('DynamoDB is not asked for units that nobody wants', async () => {
    const table = new StateTable()
    await table.store().commit(commitOf(1), never())
    expect(table.sent[0]?.input).not.toHaveProperty('ReturnConsumedCapacity')
  })

  test('that lost needs no read to know who won', async () => {
    const table = new StateTable()
    const store = table.store()
    await store.commit(commitOf(5), never())
    table.sent.length = 0
    for (const entries of [[], [room('1')]]) {
      const outcome = await store.commit(commitOf(3, 2, entries), never())
      expect(outcome).toEqual({ status: 'conflict', found: commitOf(5).item })
    }
    expect(operations(table)).toEqual(['PutItem', 'TransactWriteItems'])
  })

  test.each([
    ['the put', [], 'throttle' as const],
    ['the transaction', [room('1')], 'throttle' as const],
    ['the put, for a conflict with a transaction,', [], 'conflict' as const],
    ['the transaction, for a conflict with another,', [room('1')], 'conflict' as const],
  ])('goes on after %s was refused', async (_, entries, refusal) => {
    let left = 2
    const table = new StateTable({ refuse: () => (left-- > 0 ? refusal : undefined) })
    expect(await table.store().commit(commitOf(1, undefined, entries), never())).toEqual({ status: 'committed' })
    expect(table.clock.sleptMs.length).toBeGreaterThan(0)
  })

  test('goes on where it was never sent', async () => {
    const table = new StateTable()
    failFirst(table, 1, () => awsError('Error', { code: 'ECONNREFUSED' }))
    expect(await table.store().commit(commitOf(1), never())).toEqual({ status: 'committed' })
  })

  test.each([
    ['a lost connection', () => awsError('Error', { code: 'ECONNRESET' })],
    ['a time-out', () => awsError('TimeoutError')],
    ['a failure of the service', () => awsError('InternalServerError', { $fault: 'server' })],
  ])('is not sent again after %s, which may hide that it took place', async (_, error) => {
    for (const entries of [[], [room('1')]]) {
      const table = new StateTable()
      failFirst(table, 1, error)
      const store = table.store()
      expect(await rejection(store.commit(commitOf(1, undefined, entries), never()))).toEqual(
        retryable('state-unanswered', /may have taken effect/),
      )
      failFirst(table, 1, error)
      expect(await rejection(store.writeProgress('p', 0, 1, never()))).toEqual(retryable('state-unanswered'))
      expect(table.sent).toHaveLength(2)
    }
  })

  test('that was cancelled for more than one reason lost, if it lost', async () => {
    const table = new StateTable()
    const reasons = (...Codes: string[]) => ({ CancellationReasons: Codes.map((Code) => ({ Code })) })
    failFirst(table, 1, () =>
      awsError('TransactionCanceledException', reasons('ConditionalCheckFailed', 'TransactionConflict')),
    )
    const store = table.store()
    const write = commitOf(1, undefined, [room('1')])
    expect(await store.commit(write, never())).toEqual({ status: 'conflict', found: undefined })
    failFirst(table, 1, () => awsError('TransactionCanceledException', reasons('None', 'ThrottlingError')))
    expect(await store.commit(write, never())).toEqual({ status: 'committed' })
    failFirst(table, 1, () => awsError('TransactionCanceledException', reasons('None', 'ValidationError')))
    expect(await rejection(store.commit(write, never()))).toEqual(
      retryable('state-table-unusable', /None, ValidationError/),
    )
    failFirst(table, 1, () => awsError('TransactionCanceledException'))
    expect(await rejection(store.commit(write, never()))).toEqual(retryable('state-table-unusable'))
  })

  test('that is throttled until the signal aborts was not written', async () => {
    const controller = new AbortController()
    const table = new StateTable({ refuse: () => 'throttle' })
    table.before = () => {
      if (table.sent.length === 4) controller.abort()
    }
    const error = await rejection(table.store().commit(commitOf(1), controller.signal))
    expect(error).toEqual(retryable('state-deadline', /throughput/))
    expect(table.sent).toHaveLength(4)
  })

  test('that is answered after the abort is answered as it is', async () => {
    const controller = new AbortController()
    const table = new StateTable()
    table.before = () => controller.abort()
    expect(await table.store().commit(commitOf(1), controller.signal)).toEqual({ status: 'committed' })
  })
})

describe('a table that is not ours', () => {
  const calls: [string, (store: StateStore) => Promise<unknown>][] = [
    ['readProgress', (store) => store.readProgress('p', never())],
    ['writeProgress', (store) => store.writeProgress('p', 0, 1, never())],
    ['readKeys', (store) => store.readKeys(['h1'], never())],
    ['readEntries', (store) => store.readEntries([{ key: 'h1', state: 'rooms', entry: '1' }], never())],
    ['listEntries', (store) => store.listEntries('h1', 'rooms', never())],
    ['commit', (store) => store.commit(commitOf(1), never())],
    ['commit of entries', (store) => store.commit(commitOf(1, undefined, [room('1')]), never())],
  ]

  test.each(calls)('%s names a missing table, the stage and the remedy, at once', async (_, call) => {
    const table = new StateTable()
    const error = await rejection(call(table.store({ tableName: 'missing' })))
    expect(error).toEqual(retryable('state-table-unusable', /"missing" of stage "by-hotel".*check its name/))
    expect(table.sent).toHaveLength(1)
  })

  test.each(calls)('%s names a table with other keys', async (_, call) => {
    const table = new StateTable()
    table.model.call('CreateTable', {
      ...stateTable,
      TableName: 'foreign',
      AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    })
    const error = await rejection(call(table.store({ tableName: 'foreign' })))
    expect(error).toEqual(retryable('state-table-unusable', /"foreign".*"pk" and "sk"/))
  })

  const plant = (table: StateTable, item: object): void =>
    void table.model.call('PutItem', {
      TableName: tableName,
      Item: {
        pk: { S: 'key#h1' },
        sk: { S: 'key' },
        position: { N: '1' },
        states: { M: {} },
        format: { N: '1' },
        ...item,
      },
    })

  test.each<[string, object, string, RegExp]>([
    ['of a newer format', { format: { N: '2' } }, 'newer-format', /format 2.*deploy/],
    ['without a format', { format: { S: '1' } }, 'foreign-item', /\["key#h1","key"\]/],
    ['without a position', { position: { NULL: true } }, 'foreign-item', /table of its own/],
    ['without states', { states: { S: 'x' } }, 'foreign-item', /table of its own/],
    ['with a value that we never write', { states: { M: { a: { SS: ['x'] } } } }, 'foreign-item', /type SS/],
    ['of another key that was cut alike', { pkText: { S: 'key#other' } }, 'foreign-item', /another key/],
  ])('an item %s is refused by its name, in reads and in conflicts', async (_, item, code, message) => {
    const table = new StateTable()
    plant(table, item)
    expect(await rejection(table.store().readKeys(['h1'], never()))).toEqual(retryable(code, message))
    expect(await rejection(table.store().commit(commitOf(2), never()))).toEqual(retryable(code, message))
  })

  test('what no retry could write never reaches the table', async () => {
    const table = new StateTable()
    const store = table.store()
    const large = { ...commitOf(1).item, states: { a: 'x'.repeat(390_000) } }
    expect(await rejection(store.commit({ ...commitOf(1), item: large }, never()))).toMatchObject({
      name: 'TerminalError',
      code: 'state-too-large',
      message: expect.stringContaining('stage "by-hotel", key "h1": the state a'),
    })
    expect(table.sent).toEqual([] satisfies SentCall[])
  })
})

test('a bigint is read however DynamoDB writes it, and names in their own order', async () => {
  const table = new StateTable()
  const store = table.store()
  await store.commit(commitOf(1), never())
  table.after = (_, answer) => {
    const { Responses } = answer as { Responses: Record<string, { states: { M: object } }[]> }
    const [item] = Responses[tableName] ?? []
    if (item) item.states = { M: { negative: { NS: ['-12'] }, large: { NS: ['1E+3'] } } }
  }
  const states = (await store.readKeys(['h1'], never())).get('h1')?.states
  expect(Object.entries(states ?? {})).toEqual([
    ['large', 1_000n],
    ['negative', -12n],
  ])
})
