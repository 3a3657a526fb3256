import type { CapacityReport } from '../../../lib/aws/state-table/calls.ts'
import type { DueEntry } from '../../../lib/state/state-store.ts'
import { awsError, never } from '../sink-worlds.ts'
import { StateTable, tableName } from './state-table.ts'

const dueAt = (timeMs: number, key = 'h1'): DueEntry => ({ slot: 3, domain: 'event-time', timeMs, key })
const many = (count: number): DueEntry[] => Array.from({ length: count }, (_, i) => dueAt(i))
const anyTime = Number.POSITIVE_INFINITY

const retryable = (code: string, message: RegExp = /./) =>
  expect.objectContaining({ name: 'RetryableError', code, message: expect.stringMatching(message) })

const rejection = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 'no rejection',
    (error: unknown) => error,
  )

const items = (table: StateTable) => table.model.call('Scan', { TableName: tableName }).Items ?? []

const batchSizes = ({ sent }: StateTable): number[] =>
  sent.map(({ input }) => (input.RequestItems as unknown as Record<string, unknown[]>)[tableName]?.length ?? 0)

/** Fails the first `times` calls: before they take effect, or after it. */
function fail(table: StateTable, when: 'before' | 'after', times: number, error: () => Error): void {
  let left = times
  table[when] = () => {
    if (left-- > 0) throw error()
  }
}

test('due entries are in the table as docs/state-table.md says', async () => {
  const table = new StateTable()
  await table.store().putDue([dueAt(1_767_225_600_000), { ...dueAt(-1), domain: 'processing-time' }], never())
  expect(items(table)).toEqual([
    { pk: { S: 'due#3' }, sk: { S: 'e#00001767225600000#h1' }, format: { N: '1' } },
    { pk: { S: 'due#3' }, sk: { S: 'p#-9007199254740990#h1' }, format: { N: '1' } },
  ])
})

describe('writes of due entries', () => {
  test.each(['putDue', 'deleteDue'] as const)('%s goes in batches of 25, each entry once', async (call) => {
    const table = new StateTable()
    const store = table.store()
    await store[call]([...many(60), ...many(60)], never())
    expect(batchSizes(table)).toEqual([25, 25, 10])
    expect(new Set(table.sent.map(({ operation }) => operation))).toEqual(new Set(['BatchWriteItem']))
    await store[call]([], never())
    expect(table.sent).toHaveLength(3)
  })

  test('keep a bound on batches in flight', async () => {
    const table = new StateTable()
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
    await table.store({ parallelWrites: 2 }).putDue(many(200), never())
    expect([most, table.sent.length, items(table).length]).toEqual([2, 8, 200])
  })

  test('send again what was not processed, after a rest that grows while nothing is', async () => {
    const table = new StateTable()
    const sizes = [3, 3, 2]
    table.before = ({ input }) => {
      const left = sizes.shift()
      if (left === undefined) return
      const requests = (input.RequestItems as unknown as Record<string, unknown[]>)[tableName] ?? []
      table.after = (_, answer) => {
        table.after = () => undefined
        Object.assign(answer, { UnprocessedItems: { [tableName]: requests.slice(requests.length - left) } })
      }
    }
    await table.store().putDue(many(3), never())
    expect(batchSizes(table)).toEqual([3, 3, 3, 2])
    expect(table.clock.sleptMs).toEqual([25, 50, 25])
    expect(items(table)).toHaveLength(3)
  })

  test('end with all of them, however many the table refuses at first', async () => {
    let refusals = 100
    const table = new StateTable({ refuse: () => (refusals-- > 0 ? 'throttle' : undefined) })
    const store = table.store()
    await store.putDue(many(70), never())
    expect(items(table)).toHaveLength(70)
    refusals = 100
    await store.deleteDue(many(70), never())
    expect(items(table)).toHaveLength(0)
  })

  test.each([
    ['a throttle', 'before' as const, () => awsError('ThrottlingException')],
    ['a lost answer', 'after' as const, () => awsError('Error', { code: 'ECONNRESET' })],
    ['a failure of the service', 'before' as const, () => awsError('InternalServerError', { $fault: 'server' })],
  ])('are sent again after %s: a second time changes nothing', async (_, when, error) => {
    const table = new StateTable()
    const store = table.store()
    fail(table, when, 2, error)
    await store.putDue(many(3), never())
    expect(items(table)).toHaveLength(3)
    fail(table, when, 1, error)
    await store.deleteDue(many(3), never())
    expect(items(table)).toHaveLength(0)
    expect(table.clock.sleptMs).toEqual([25, 50, 25])
  })

  test.each(['putDue', 'deleteDue'] as const)('%s starts nothing after the abort, and rejects', async (call) => {
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
    const error = await rejection(table.store({ parallelWrites: 3 })[call](many(200), controller.signal))
    expect(error).toEqual(retryable('state-deadline', /"by-hotel"/))
    expect([table.sent.length, answered]).toEqual([3, 3])
  })

  test('that are refused for ever end with the signal', async () => {
    const controller = new AbortController()
    const table = new StateTable({ refuse: () => 'throttle' })
    table.before = () => {
      if (table.sent.length === 4) controller.abort()
    }
    expect(await rejection(table.store().putDue(many(3), controller.signal))).toEqual(retryable('state-deadline'))
    expect(table.sent).toHaveLength(4)
  })

  test('of a key that the table cannot hold send nothing', async () => {
    const table = new StateTable()
    const error = await rejection(table.store().putDue([dueAt(1), dueAt(1, '\ud800')], never()))
    expect(error).toMatchObject({ name: 'TerminalError', code: 'unsupported-key' })
    expect(table.sent).toEqual([])
  })

  test('cost a write unit each', async () => {
    const reports: CapacityReport[] = []
    const store = new StateTable().store({ onCapacity: (report) => reports.push(report) })
    await store.putDue(many(30), never())
    await store.deleteDue(many(5), never())
    expect(reports).toEqual([25, 5, 5].map((units) => ({ kind: 'write', units })))
  })
})

describe('reads of due entries', () => {
  const keyOf = 'x'.repeat(100)

  async function filled(count: number) {
    const reports: CapacityReport[] = []
    const table = new StateTable()
    const store = table.store({ onCapacity: (report) => reports.push(report) })
    await store.putDue(
      many(count).map((entry) => ({ ...entry, key: keyOf })),
      never(),
    )
    table.sent.length = 0
    reports.length = 0
    return { table, store, reports }
  }

  test('are strongly consistent, and cost one call and one unit where little is due, whatever waits behind', async () => {
    const { table, store, reports } = await filled(1_000)
    const page = await store.readDue(3, 'event-time', 9, { limit: 1_000 }, never())
    expect([page.entries.length, page.nextMs, page.isComplete]).toEqual([10, 10, true])
    expect(table.sent.map(({ operation, input }) => [operation, input.ConsistentRead])).toEqual([['Query', true]])
    expect(reports).toEqual([{ kind: 'read', units: 1 }])
  })

  test('take larger pages where more is due, and never look far beyond', async () => {
    const { table, store } = await filled(2_000)
    const page = await store.readDue(3, 'event-time', anyTime, { limit: 1_000 }, never())
    expect([page.entries.length, page.isComplete]).toEqual([1_000, false])
    expect(table.sent.map(({ input }) => input.Limit)).toEqual([16, 64, 256, 665])
    table.sent.length = 0
    await store.readDue(3, 'event-time', anyTime, { limit: 2, after: dueAt(500, keyOf) }, never())
    expect(table.sent.map(({ input }) => input.Limit)).toEqual([3])
  })

  test('go on after a throttle or a lost connection', async () => {
    const { table, store } = await filled(3)
    fail(table, 'before', 2, () => awsError('Error', { code: 'ECONNRESET' }))
    expect((await store.readDue(3, 'event-time', anyTime, { limit: 9 }, never())).entries).toHaveLength(3)
    expect(table.clock.sleptMs.slice(-2)).toEqual([25, 50])
  })

  test.each([
    ['of a newer format', { sk: { S: 'e#00000000000000001#h1' }, format: { N: '2' } }, 'newer-format'],
    ['that is none', { sk: { S: 'e#soon#h1' }, format: { N: '1' } }, 'foreign-item'],
    ['without a format', { sk: { S: 'e#00000000000000001#h1' } }, 'foreign-item'],
  ])('refuse an entry %s by its name', async (_, item, code) => {
    const table = new StateTable()
    table.model.call('PutItem', { TableName: tableName, Item: { pk: { S: 'due#3' }, ...item } })
    const error = await rejection(table.store().readDue(3, 'event-time', anyTime, { limit: 9 }, never()))
    expect(error).toEqual(retryable(code, /\["due#3","e#/))
  })
})

test.each(['putDue', 'deleteDue', 'readDue'] as const)(
  '%s names a missing table, the stage and the remedy',
  async (call) => {
    const table = new StateTable()
    const store = table.store({ tableName: 'missing' })
    const calls = {
      putDue: () => store.putDue(many(100), never()),
      deleteDue: () => store.deleteDue(many(100), never()),
      readDue: () => store.readDue(3, 'event-time', 1, { limit: 1 }, never()),
    }
    expect(await rejection(calls[call]())).toEqual(
      retryable('state-table-unusable', /"missing" of stage "by-hotel".*check its name/),
    )
  },
)
