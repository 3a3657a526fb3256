import fc from 'fast-check'
import { upsertOnce } from '../../../lib/index.ts'
import { awsError } from '../sink-worlds.ts'
import { UpsertWorld } from './upsert-world.ts'

interface Visits {
  readonly visits: number
  readonly last?: string
}

const add = (row: Visits | undefined): Visits => ({ visits: (row?.visits ?? 0) + 1 })
const key = { user: 'u1' }
const terminal = (code: string) => expect.objectContaining({ name: 'TerminalError', code })
const retryable = (code: string) => expect.objectContaining({ name: 'RetryableError', code })

describe('a position', () => {
  test('is applied once: the row keeps it, and says so when it comes again', async () => {
    const { table, items } = new UpsertWorld()
    expect(await upsertOnce(table, key, '7', add)).toEqual({ status: 'applied', row: { user: 'u1', visits: 1 } })
    expect(await upsertOnce(table, key, '7', add)).toEqual({ status: 'already-there', row: { user: 'u1', visits: 1 } })
    expect(items()).toEqual([{ user: { S: 'u1' }, visits: { N: '1' }, 'millrace#position': { S: '001:7' } }])
  })

  test('below the one of the row was there already', async () => {
    const { table } = new UpsertWorld()
    await upsertOnce(table, key, '7', add)
    expect(await upsertOnce(table, key, '6', add)).toMatchObject({ status: 'already-there', row: { visits: 1 } })
  })

  // C14 of the cases from the field: as text the first would be the greater.
  test.each([
    ['9900000000002513012315', '10000000000002513012315'],
    ['9', '10'],
    ['0009', '10'],
    ['5', '5/0'],
    ['5/9', '5/10'],
    ['5/9', '6/0'],
  ])('%s is before %s', async (before, after) => {
    const { table } = new UpsertWorld()
    expect((await upsertOnce(table, key, before, add)).status).toBe('applied')
    expect((await upsertOnce(table, key, after, add)).status).toBe('applied')
    expect((await upsertOnce(table, key, before, add)).status).toBe('already-there')
  })

  test('compares in the table as its number does, whatever its length', async () => {
    const digits = fc.bigInt({ min: 0n, max: 10n ** 56n })
    await fc.assert(
      fc.asyncProperty(digits, digits, async (first, second) => {
        const { table } = new UpsertWorld()
        await upsertOnce(table, key, first, add)
        const { status } = await upsertOnce(table, key, String(second), add)
        expect(status).toBe(second > first ? 'applied' : 'already-there')
      }),
    )
  })

  test.each(['', 'latest', '-1', '1.5', '1/', '1e3', 2 ** 53, -1, 0.5])('%p is refused', async (position) => {
    const { table, sent } = new UpsertWorld()
    await expect(upsertOnce(table, key, position, add)).rejects.toEqual(terminal('unsupported-position'))
    expect(sent).toEqual([])
  })
})

describe('what is written', () => {
  test('costs one read and one write unit', async () => {
    const { table, units } = new UpsertWorld()
    await upsertOnce(table, key, '1', add)
    expect(units()).toEqual({ read: 1, write: 1 })
  })

  test('is what `next` returned: what it leaves out is removed', async () => {
    const { table, items } = new UpsertWorld()
    await upsertOnce<Visits>(table, key, '1', () => ({ visits: 1, last: 'a' }))
    await upsertOnce<Visits>(table, key, '2', () => ({ visits: 2 }))
    expect(items()[0]).not.toHaveProperty('last')
  })

  test('comes back as it was: numbers, integers beyond 2^53, bytes, nested data', async () => {
    const { table } = new UpsertWorld()
    const row = { n: 0.1, small: 1e-7, total: 2n ** 60n, raw: Uint8Array.of(0, 255), list: [1, { a: null }], yes: true }
    await upsertOnce<object>(table, key, '1', () => row)
    const seen: unknown[] = []
    await upsertOnce<object>(table, key, '2', (current) => {
      seen.push(current)
      return row
    })
    expect(seen).toEqual([{ user: 'u1', ...row }])
  })

  test('takes over a row that somebody else wrote', async () => {
    const world = new UpsertWorld()
    world.put({ user: { S: 'u1' }, visits: { N: '41' } })
    expect(await upsertOnce(world.table, key, '1', add)).toMatchObject({ status: 'applied', row: { visits: 42 } })
  })

  test.each([
    ['a key of its own', () => ({ user: 'u2' }), 'key-differs'],
    ['the position', () => ({ 'millrace#position': 'x' }), 'reserved-attribute'],
    ['a promise', async () => ({ visits: 1 }), 'asynchronous-step'],
    ['a date', () => ({ at: new Date(0) }), 'unsupported-value'],
    ['nothing', () => undefined as never, 'unsupported-value'],
    ['too much', () => ({ text: 'x'.repeat(409_600) }), 'oversize'],
  ])('a row with %s is refused, and nothing is written', async (_, next: () => object, code) => {
    const { table, items } = new UpsertWorld()
    await expect(upsertOnce<object>(table, key, '1', next)).rejects.toEqual(terminal(code))
    expect(items()).toEqual([])
  })

  test.each([
    ['a set', { tags: { SS: ['a'] } }, 'unsupported-value'],
    ['a number that is too exact', { n: { N: '0.12345678901234567890123' } }, 'unsupported-value'],
    ['another position', { 'millrace#position': { N: '5' } }, 'unsupported-position'],
    ['a position that is text of another form', { 'millrace#position': { S: '5' } }, 'unsupported-position'],
  ])('a row that holds %s is left alone', async (_, attributes, code) => {
    const world = new UpsertWorld()
    world.put({ user: { S: 'u1' }, ...attributes })
    const before = world.items()
    await expect(upsertOnce(world.table, key, '1', add)).rejects.toEqual(terminal(code))
    expect(world.items()).toEqual(before)
  })
})

describe('when something goes wrong', () => {
  // C06 of the cases from the field.
  test('a write whose answer is lost counts once', async () => {
    const world = new UpsertWorld()
    world.failNext('PutItem', 'after', () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }))
    expect(await upsertOnce(world.table, key, '1', add)).toMatchObject({ status: 'already-there', row: { visits: 1 } })
  })

  test("a retry of the SDK's own that meets its success counts once", async () => {
    const world = new UpsertWorld()
    world.repeatNextPut()
    expect(await upsertOnce(world.table, key, '1', add)).toMatchObject({ row: { visits: 1 } })
  })

  test('a throttle is waited out, reading or writing', async () => {
    const world = new UpsertWorld()
    world.failNext('GetItem', 'before', () => awsError('ThrottlingException'))
    world.failNext('PutItem', 'before', () => awsError('ProvisionedThroughputExceededException'))
    expect(await upsertOnce(world.table, key, '1', add)).toMatchObject({ status: 'applied', row: { visits: 1 } })
    expect(world.clock.sleptMs).toHaveLength(2)
  })

  test('a writer that was faster is built upon, not overwritten', async () => {
    const world = new UpsertWorld()
    world.beforeNextPut(() => upsertOnce(world.table, key, '1', add))
    expect(await upsertOnce(world.table, key, '2', add)).toMatchObject({ status: 'applied', row: { visits: 2 } })
  })

  test('a position in between that another writer took is not lost', async () => {
    const world = new UpsertWorld()
    await upsertOnce(world.table, key, '1', add)
    world.beforeNextPut(() => upsertOnce(world.table, key, '2', add))
    expect(await upsertOnce(world.table, key, '3', add)).toMatchObject({ status: 'applied', row: { visits: 3 } })
  })

  test('a writer that was faster and further wins', async () => {
    const world = new UpsertWorld()
    world.beforeNextPut(() => upsertOnce(world.table, key, '2', add))
    expect(await upsertOnce(world.table, key, '1', add)).toMatchObject({ status: 'already-there', row: { visits: 1 } })
  })

  test('a row that is deleted meanwhile begins anew', async () => {
    const world = new UpsertWorld()
    await upsertOnce(world.table, key, '1', add)
    world.beforeNextPut(() => world.delete({ user: { S: 'u1' } }))
    expect(await upsertOnce(world.table, key, '2', add)).toMatchObject({ status: 'applied', row: { visits: 1 } })
  })

  test('the signal ends the attempts, and nothing is sent after it', async () => {
    const world = new UpsertWorld()
    const stop = new AbortController()
    world.failNext('PutItem', 'before', () => {
      stop.abort()
      return awsError('ThrottlingException')
    })
    const call = upsertOnce(world.table, key, '1', add, { signal: stop.signal })
    await expect(call).rejects.toEqual(retryable('table-deadline'))
    expect(world.sent).toEqual(['GetItem', 'PutItem'])
  })

  test('a missing table is retryable and says what to do', async () => {
    const world = new UpsertWorld()
    const call = upsertOnce({ ...world.table, tableName: 'other' }, key, '1', add)
    await expect(call).rejects.toThrow(/table "other" cannot be used .*: check its name, its key attributes/)
    await expect(call).rejects.toEqual(retryable('table-unusable'))
  })

  test('what `next` throws is thrown, and nothing is written', async () => {
    const world = new UpsertWorld()
    const fail = () => {
      throw new Error('no such user')
    }
    await expect(upsertOnce(world.table, key, '1', fail)).rejects.toThrow('no such user')
    expect(world.items()).toEqual([])
  })
})

test('workers that replay one log over each other, under every fault, leave the state of a sequential run', async () => {
  const log = fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(
      log,
      fc.integer({ min: 1, max: 3 }),
      fc.infiniteStream(fc.nat(99)),
      async (keys, workers, draws) => {
        const world = new UpsertWorld()
        const draw = () => draws.next().value as number
        world.disturb(draw)
        const applied: string[] = []
        const work = async () => {
          for (const [index, user] of keys.entries()) {
            const next = (row: { seen: string } | undefined) => ({ seen: `${row?.seen ?? ''}${index},` })
            // A crash: the worker begins this record again, as Lambda would.
            for (;;) {
              const outcome = await upsertOnce(world.table, { user }, index, next).catch(() => undefined)
              if (outcome?.status === 'applied') applied.push(`${index}`)
              if (outcome) break
            }
          }
        }
        await Promise.all(Array.from({ length: workers }, work))
        for (const user of new Set(keys)) {
          const expected = keys.flatMap((other, index) => (other === user ? [`${index},`] : [])).join('')
          expect(world.row(user)?.seen).toEqual({ S: expected })
        }
        expect(applied).toHaveLength(new Set(applied).size)
      },
    ),
    { numRuns: 300 },
  )
})
