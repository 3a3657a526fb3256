import { minutes, seconds } from '../../lib/core/duration.ts'
import { RetryableError, TerminalError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { otherwise } from '../../lib/operators/branch.ts'
import { lookup, refreshedTable, staticTable, type Table } from '../../lib/operators/enrich/table.ts'
import type { Stream } from '../../lib/topology/stream.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { recordsOf, runnerOf } from './runner-world.ts'

const hanging = <T>(): Promise<T> => new Promise<T>(() => undefined)
const show = (line: string, row: unknown): string => `${line}=${String(row)}`

/** Joins the row of each value's own text. */
const joined = (stream: Stream<string>, from: Table<string>): Stream<string> =>
  stream.enrich({ from, key: (line) => line.split('=')[0], join: show })

function enriched(build: (stream: Stream<string>) => Stream<string>) {
  const app = new Topology('app')
  const out = app.sink<string>('out')
  build(app.source('lines', text())).to(out)
  const world = runnerOf(app)
  return { ...world, received: () => world.ports.received(out) }
}

/** A lookup of upper-case rows that remembers its calls. */
function upperCase(name: string, ttl = minutes(1), maxEntries?: number) {
  const calls: (readonly string[])[] = []
  const load = async (keys: readonly string[]) => {
    calls.push(keys)
    return new Map(keys.filter((key) => key !== 'none').map((key) => [key, `${name}:${key.toUpperCase()}`]))
  }
  return { calls, table: lookup(name, { load, ttl, maxEntries, answers: 'may-change' }) }
}

/** Turns of the microtask queue, enough for a batch to come as far as it can. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}

describe('a static table', () => {
  test('is loaded once, before the first batch, and batches that overlap share the load', async () => {
    let loads = 0
    const table = staticTable('t', async () => {
      loads++
      return new Map([['a', 'A']])
    })
    const world = enriched((stream) => joined(stream, table))
    const first = world.run({ p: recordsOf(['a']) })
    const second = world.run({ q: recordsOf(['b'], 'q') })
    expect([await first, await second, await world.run({ r: recordsOf(['a'], 'r') })]).toEqual([{}, {}, {}])
    expect(loads).toBe(1)
    expect(world.received()).toEqual(['a=A', 'b=undefined', 'a=A'])
  })

  test.each<[string, () => unknown, string]>([
    ['rejects', () => Promise.reject(new Error('down')), 'down'],
    ['rejects with null', () => Promise.reject(null), 'null'],
    [
      'throws',
      () => {
        throw new TerminalError('no')
      },
      'no',
    ],
    ['gives no Map', () => ({ a: 'A' }), 'did not give a Map'],
  ])('whose load %s fails the batch, which comes again', async (_what, load, message) => {
    let broken = true
    const table = staticTable('t', () => (broken ? (load() as Map<string, string>) : new Map([['a', 'A']])))
    const world = enriched((stream) => joined(stream, table))
    const failure: unknown = await world.run({ p: recordsOf(['a']) }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(RetryableError)
    expect((failure as Error).message).toContain(`table "t" could not be loaded`)
    expect((failure as Error).message).toContain(message)
    broken = false
    expect(await world.run({ p: recordsOf(['a']) })).toEqual({})
    expect(world.ports.deadLettered).toEqual([])
  })

  test('whose load hangs fails the batch before the deadline, and is loaded anew for the next', async () => {
    let loads = 0
    const table = staticTable<string>('t', () => (loads++ === 0 ? hanging() : new Map([['a', 'A']])))
    const world = enriched((stream) => joined(stream, table))
    const first = world.run({ p: recordsOf(['a']) }).catch((error: unknown) => error)
    world.clock.advance(59_000)
    expect(await first).toMatchObject({ name: 'RetryableError', code: 'deadline' })
    expect(await world.run({ p: recordsOf(['a']) })).toEqual({})
    expect(world.received()).toEqual(['a=A'])
  })
})

describe('a refreshed table', () => {
  function rates(options: { readonly maxStaleness?: { readonly ms: number } } = {}) {
    const versions: (() => Promise<ReadonlyMap<string, string>>)[] = []
    let version = 0
    // Slower than any batch of these tests, so that what a batch does not wait for comes behind it.
    const load = async (): Promise<ReadonlyMap<string, string>> => {
      const planned = versions.shift()
      if (planned) return planned()
      version++
      const rows = new Map([['a', `v${version}`]])
      await turns()
      return rows
    }
    const table = refreshedTable('rates', { load, every: minutes(5), ...options })
    const world = enriched((stream) =>
      stream.enrich({
        from: table,
        key: (line) => line,
        join: (line, row, { stalenessMs }) => `${line}=${row} ${stalenessMs}`,
      }),
    )
    return { ...world, versions }
  }

  test('is used until it is due, then replaced behind the batch that found it so', async () => {
    const world = rates()
    const one = { p: recordsOf(['a']) }
    await world.run(one)
    world.clock.advance(299_999)
    await world.run({ p: recordsOf(['a', 'a'], 'p2') })
    world.clock.advance(1)
    await world.run({ p: recordsOf(['a'], 'p3') })
    await world.runner.settled()
    await world.run({ p: recordsOf(['a'], 'p4') })
    expect(world.received()).toEqual(['a=v1 0', 'a=v1 299999', 'a=v1 299999', 'a=v1 300000', 'a=v2 0'])
    expect(world.ports.measured('table-staleness')).toBe(0)
  })

  test('shows its staleness as a metric', async () => {
    const world = rates()
    await world.run({ p: recordsOf(['a']) })
    world.clock.advance(1_234)
    await world.run({ p: recordsOf(['a']) })
    expect(world.ports.measured('table-staleness')).toBe(1_234)
  })

  test('whose refresh fails stays in use, and is tried again with the next batch', async () => {
    const world = rates()
    await world.run({ p: recordsOf(['a'], 'p1') })
    world.clock.advance(300_000)
    world.versions.push(() => Promise.reject(null))
    expect(await world.run({ p: recordsOf(['a'], 'p2') })).toEqual({})
    await world.runner.settled()
    expect(world.ports.lines).toMatchObject([{ level: 'warn', fields: { table: 'rates' } }])
    expect(await world.run({ p: recordsOf(['a'], 'p3') })).toEqual({})
    await world.runner.settled()
    await world.run({ p: recordsOf(['a'], 'p4') })
    expect(world.received()).toEqual(['a=v1 0', 'a=v1 300000', 'a=v1 300000', 'a=v2 0'])
  })

  test('whose refresh hangs is refreshed anew once that took as long as a refresh is good for', async () => {
    const world = rates()
    await world.run({ p: recordsOf(['a'], 'p1') })
    world.clock.advance(300_000)
    world.versions.push(hanging)
    await world.run({ p: recordsOf(['a'], 'p2') })
    world.clock.advance(299_999)
    await world.run({ p: recordsOf(['a'], 'p3') })
    await turns()
    world.clock.advance(1)
    await world.run({ p: recordsOf(['a'], 'p4') })
    await turns()
    await world.run({ p: recordsOf(['a'], 'p5') })
    expect(world.received().at(-2)).toBe('a=v1 600000')
    expect(world.received().at(-1)).toBe('a=v2 0')
  })

  test('an older load that ends late does not replace a newer copy', async () => {
    const world = rates()
    let endLate: (rows: ReadonlyMap<string, string>) => void = () => undefined
    await world.run({ p: recordsOf(['a'], 'p1') })
    world.clock.advance(300_000)
    world.versions.push(
      () =>
        new Promise((resolve) => {
          endLate = resolve
        }),
    )
    await world.run({ p: recordsOf(['a'], 'p2') })
    world.clock.advance(300_000)
    await world.run({ p: recordsOf(['a'], 'p3') })
    await turns()
    endLate(new Map([['a', 'old']]))
    await turns()
    await world.run({ p: recordsOf(['a'], 'p4') })
    expect(world.received().at(-1)).toBe('a=v2 0')
  })

  test('beyond its maxStaleness a batch waits for a fresh copy', async () => {
    const world = rates({ maxStaleness: minutes(10) })
    await world.run({ p: recordsOf(['a'], 'p1') })
    world.clock.advance(600_000)
    await world.run({ p: recordsOf(['a'], 'p2') })
    expect(world.received().at(-1)).toBe('a=v1 600000')
    await world.runner.settled()
    world.clock.advance(600_001)
    await world.run({ p: recordsOf(['a'], 'p3') })
    expect(world.received().at(-1)).toBe('a=v3 0')
  })

  test('beyond its maxStaleness a batch comes again where there is none', async () => {
    const world = rates({ maxStaleness: minutes(10) })
    await world.run({ p: recordsOf(['a'], 'p1') })
    world.clock.advance(600_001)
    world.versions.push(() => Promise.reject(new Error('down')))
    await expect(world.run({ p: recordsOf(['a'], 'p2') })).rejects.toMatchObject({
      name: 'RetryableError',
      code: 'table-too-stale',
    })
    expect(world.received()).toHaveLength(1)
  })
})

describe('a lookup', () => {
  test('is one call per batch, with the distinct keys that the cache lacks', async () => {
    const { calls, table } = upperCase('l')
    const world = enriched((stream) => joined(stream, table))
    await world.run({ p: recordsOf(['a', 'b', 'a', 'none']), q: recordsOf(['c', 'a'], 'q') })
    await world.run({ r: recordsOf(['c', 'd', 'none'], 'r') })
    await world.run({ s: recordsOf(['a', 'd'], 's') })
    expect(calls).toEqual([['a', 'b', 'none', 'c'], ['d']])
    expect(world.received().slice(0, 4)).toEqual(['a=l:A', 'b=l:B', 'a=l:A', 'none=undefined'])
    expect(world.ports.counted('lookup-calls')).toBe(2)
    expect(world.ports.counted('lookup-misses')).toBe(5)
    expect(world.ports.counted('lookup-hits')).toBe(4)
  })

  test('is not called where no record reaches it or names a key', async () => {
    const { calls, table } = upperCase('l')
    const world = enriched((stream) =>
      stream.filter((line) => line !== 'a').enrich({ from: table, key: () => undefined, join: show }),
    )
    expect(await world.run({ p: recordsOf(['a', 'b']) })).toEqual({})
    expect(calls).toEqual([])
    expect(world.received()).toEqual(['b=undefined'])
  })

  test('behind a lookup, and behind a merge of ways with and without one, is still one call', async () => {
    const [first, second, third] = [upperCase('first'), upperCase('second'), upperCase('third')]
    const world = enriched((stream) => {
      const { short, long } = stream.branch({ short: (line) => line.length < 2, long: otherwise })
      return joined(joined(joined(short, first.table), second.table).merge(long), third.table)
    })
    await world.run({ p: recordsOf(['a', 'bb', 'c', 'dd']) })
    expect(first.calls).toEqual([['a', 'c']])
    expect(second.calls).toEqual([['a', 'c']])
    expect(third.calls).toEqual([['bb', 'dd', 'a', 'c']])
    expect(world.received()).toEqual([
      'a=first:A=second:A=third:A',
      'bb=third:BB',
      'c=first:C=second:C=third:C',
      'dd=third:DD',
    ])
  })

  test('read early on one way and late on another is still one call', async () => {
    const [shared, other] = [upperCase('shared'), upperCase('other')]
    const world = enriched((stream) => {
      const { short, long } = stream.branch({ short: (line) => line.length < 2, long: otherwise })
      return joined(short, shared.table).merge(joined(joined(long, other.table), shared.table))
    })
    await world.run({ p: recordsOf(['a', 'bb']) })
    expect(shared.calls).toEqual([['a', 'bb']])
  })

  test('whose answer expires or is evicted within a batch keeps it for the batch', async () => {
    const { calls, table } = upperCase('l', seconds(0), 1)
    const world = enriched((stream) => joined(joined(stream, table), table))
    await world.run({ p: recordsOf(['a', 'b', 'c', 'a']) })
    expect(calls).toEqual([['a', 'b', 'c']])
    expect(world.received()).toEqual(['a=l:A=l:A', 'b=l:B=l:B', 'c=l:C=l:C', 'a=l:A=l:A'])
  })

  test('asks again once the time to live is over, for absent rows too', async () => {
    const { calls, table } = upperCase('l', seconds(10))
    const world = enriched((stream) => joined(stream, table))
    await world.run({ p: recordsOf(['a', 'none'], 'p1') })
    world.clock.advance(9_999)
    await world.run({ p: recordsOf(['a', 'none'], 'p2') })
    expect(calls).toHaveLength(1)
    world.clock.advance(1)
    await world.run({ p: recordsOf(['a', 'none'], 'p3') })
    expect(calls).toEqual([
      ['a', 'none'],
      ['a', 'none'],
    ])
  })

  test('keeps no more rows than it may, and drops the least recently used', async () => {
    const { calls, table } = upperCase('l', minutes(1), 2)
    const world = enriched((stream) => joined(stream, table))
    for (const [at, key] of ['a', 'b', 'a', 'c', 'a', 'b'].entries()) await world.run({ p: recordsOf([key], `p${at}`) })
    expect(calls).toEqual([['a'], ['b'], ['c'], ['b']])
  })

  test('that fails returns what needs it from there on; what needs it not, or is cached, is done', async () => {
    let broken = false
    const load = async (keys: readonly string[]) => {
      if (broken) throw new Error('down')
      return new Map(keys.map((key) => [key, key.toUpperCase()]))
    }
    const table = lookup('l', { load, ttl: minutes(1) })
    const world = enriched((stream) =>
      stream.enrich({ from: table, key: (line) => (line === 'free' ? undefined : line), join: show }),
    )
    await world.run({ p: recordsOf(['cached'], 'p1') })
    broken = true
    const batch = {
      p: recordsOf(['free', 'cached', 'new', 'free']),
      q: recordsOf(['new', 'cached'], 'q'),
      r: recordsOf(['cached', 'free'], 'r'),
    }
    expect(await world.run(batch)).toEqual({ p: 2, q: 0 })
    expect(world.ports.deadLettered).toEqual([])
    broken = false
    expect(await world.run({ p: batch.p.slice(2), q: batch.q })).toEqual({})
    expect(world.received()).toHaveLength(9)
  })

  test('rows that are cached stand although another lookup before them failed for others', async () => {
    const { table: second } = upperCase('second')
    let broken = false
    const first = lookup('first', {
      load: async (keys) => {
        if (broken) throw new Error('down')
        return new Map(keys.map((key) => [key, key]))
      },
      ttl: minutes(1),
    })
    const world = enriched((stream) => joined(joined(stream, first), second))
    await world.run({ p: recordsOf(['a'], 'p1') })
    broken = true
    expect(await world.run({ p: recordsOf(['a', 'b']) })).toEqual({ p: 1 })
  })

  test.each<[string, () => Promise<unknown>, string]>([
    ['gives no Map', async () => ({}), 'l" could not be read: its load function did not give a Map'],
    ['rejects with undefined', () => Promise.reject(undefined), 'l" could not be read'],
    [
      'throws at once',
      () => {
        throw new Error('sync')
      },
      'l" could not be read: sync',
    ],
  ])('that %s is retried', async (_what, load) => {
    const table = lookup('l', { load: load as () => Promise<ReadonlyMap<string, string>>, ttl: minutes(1) })
    const world = enriched((stream) => joined(stream, table))
    expect(await world.run({ p: recordsOf(['a']) })).toEqual({ p: 0 })
    expect(world.ports.deadLettered).toEqual([])
  })

  test('that throws a TerminalError makes dead letters of what needs it', async () => {
    const load = () => Promise.reject(new TerminalError('gone', { code: 'gone' }))
    const world = enriched((stream) => joined(stream, lookup('l', { load, ttl: minutes(1) })))
    expect(await world.run({ p: recordsOf(['a', 'b']) })).toEqual({})
    expect(world.ports.deadLettered).toMatchObject([{ reason: { code: 'gone' } }, { reason: { code: 'gone' } }])
  })

  test('that hangs until the margin returns the batch, unstepped and in time', async () => {
    const world = enriched((stream) => joined(stream, lookup('l', { load: hanging, ttl: minutes(1) })))
    const answer = world.run({ p: recordsOf(['a', 'b']) })
    await turns()
    world.clock.advance(59_000)
    expect(await answer).toEqual({ p: 0 })
    expect(world.ports.deadLettered).toEqual([])
  })

  test('behind a step that throws once is loaded nevertheless', async () => {
    const { calls, table } = upperCase('l')
    let thrown = false
    const world = enriched((stream) =>
      joined(
        stream.map((line) => {
          if (line === 'a' && !thrown) {
            thrown = true
            throw new Error('once')
          }
          return line
        }),
        table,
      ),
    )
    expect(await world.run({ p: recordsOf(['a', 'b']) })).toEqual({})
    expect(calls).toEqual([['a', 'b']])
    expect(world.received()).toEqual(['a=l:A', 'b=l:B'])
    expect(world.ports.deadLettered).toEqual([])
  })

  test('behind a RetryableError that passes makes no dead letter: the record comes again', async () => {
    const { table } = upperCase('l')
    let thrown = false
    const world = enriched((stream) =>
      joined(
        stream.map((line) => {
          if (line === 'b' && !thrown) {
            thrown = true
            throw new RetryableError('later')
          }
          return line
        }),
        table,
      ),
    )
    const records = recordsOf(['a', 'b', 'c'])
    expect(await world.run({ p: records })).toEqual({ p: 1 })
    expect(await world.run({ p: records.slice(1) })).toEqual({})
    expect(world.received()).toEqual(['a=l:A', 'b=l:B', 'c=l:C'])
    expect(world.ports.deadLettered).toEqual([])
  })

  test('whose key changes between two runs of one record is a dead letter that says so', async () => {
    const { table } = upperCase('l')
    let run = 0
    const world = enriched((stream) => stream.enrich({ from: table, key: () => `k${run++}`, join: show }))
    expect(await world.run({ p: recordsOf(['a']) })).toEqual({})
    expect(world.ports.deadLettered).toMatchObject([{ reason: { code: 'impure-key' } }])
  })

  test('overlapping batches have their own answers, though they share the cache', async () => {
    const waiting: { keys: readonly string[]; answer: (version: string) => void }[] = []
    const load = (keys: readonly string[]) =>
      new Promise<ReadonlyMap<string, string>>((resolve) => {
        waiting.push({ keys, answer: (version) => resolve(new Map(keys.map((key) => [key, version]))) })
      })
    const world = enriched((stream) => joined(stream, lookup('l', { load, ttl: minutes(1) })))
    const first = world.run({ p: recordsOf(['a', 'b']) })
    await turns()
    const second = world.run({ q: recordsOf(['b', 'c'], 'q') })
    await turns()
    waiting[1]?.answer('second')
    expect(await second).toEqual({})
    waiting[0]?.answer('first')
    expect(await first).toEqual({})
    expect(waiting.map(({ keys }) => keys)).toEqual([
      ['a', 'b'],
      ['b', 'c'],
    ])
    expect(world.received()).toEqual(['b=second', 'c=second', 'a=first', 'b=first'])
  })
})
