/** C06: a write whose answer is lost is found out and counted once; whoever dies midway blocks nobody. */
import { text } from '../../lib/core/format.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import { mapState, valueState } from '../../lib/state/states.ts'
import { kinesisEvent } from '../../lib/testing/events.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { awsError, never } from '../aws/sink-worlds.ts'
import { StateTable } from '../aws/state-table/state-table.ts'
import { StageOnTable } from './stage-on-table.ts'

const countedAt = (position: number, count: number) => ({ position, states: { count }, expiresAtSeconds: undefined })
const commit = (store: StateStore, readPosition: number | undefined, position: number, count: number, entry = false) =>
  store.commit(
    {
      key: 'k',
      readPosition,
      item: countedAt(position, count),
      entries: entry ? [{ state: 'seen', entry: String(position), value: true }] : [],
    },
    never(),
  )

/** What the runner does with record number `position`: it adds one, unless the key's position says that it did. */
async function count(store: StateStore, position: number, entry: boolean): Promise<void> {
  for (;;) {
    const found = (await store.readKeys(['k'], never())).get('k')
    if (found !== undefined && found.position >= position) return
    const seen = Number(found?.states.count ?? 0)
    const outcome = await commit(store, found?.position, position, seen + 1, entry).catch(() => undefined)
    if (outcome?.status === 'committed') return
  }
}

describe.each([
  ['a put', false],
  ['a transaction', true],
])('C06 with %s', (_, entry) => {
  test('the commit takes place, the socket resets: the record is counted once', async () => {
    const table = new StateTable()
    const store = table.store()
    for (const position of [1, 2, 3]) {
      table.loseNextAnswer()
      await count(store, position, entry)
    }
    expect((await store.readKeys(['k'], never())).get('k')).toEqual(countedAt(3, 3))
    // Nothing was written twice: the failed answer led to a look, not to a second write.
    expect(table.sent.filter(({ operation }) => /Put|Transact/.test(operation))).toHaveLength(3)
  })

  test('whoever tries all the same meets its own success, with the position that shows it', async () => {
    const table = new StateTable()
    const store = table.store()
    table.loseNextAnswer()
    await expect(commit(store, undefined, 1, 1, entry)).rejects.toMatchObject({ code: 'state-unanswered' })
    expect(await commit(store, undefined, 1, 1, entry)).toEqual({ status: 'conflict', found: countedAt(1, 1) })
  })

  test('a process that dies before its commit leaves nothing that blocks the replay', async () => {
    const table = new StateTable()
    table.before = ({ operation }) => {
      if (/Put|Transact/.test(operation)) throw awsError('Error', { code: 'ECONNRESET' })
    }
    const dying = table.store()
    await dying.readKeys(['k'], never())
    await expect(commit(dying, undefined, 1, 1, entry)).rejects.toMatchObject({ code: 'state-unanswered' })
    expect(table.model.call('Scan', { TableName: 'by-hotel' }).Count).toBe(0)

    table.before = () => undefined
    await count(table.store(), 1, entry)
    expect((await table.store().readKeys(['k'], never())).get('k')).toEqual(countedAt(1, 1))
  })
})

describe.each([
  ['a put', false],
  ['a transaction', true],
])('C06 in a keyed stage that commits with %s', (_, withEntries) => {
  function counting() {
    const app = new Topology('app')
    const out = app.sink<string>('out')
    app
      .source('lines', text())
      .keyBy('by-key', (line) => line)
      .process('counting', {
        state: { count: valueState<number>(), seen: mapState<number>() },
        step(line, { state }) {
          const count = (state.count.get() ?? 0) + 1
          state.count.set(count)
          if (withEntries) state.seen.set(String(count), count)
          return [`${line} ${count}`]
        },
      })
      .to(out)
    const stage = new StageOnTable(app, 'DynamoDB')
    return { out, stage, table: stage.tables.get('by-key') as StateTable }
  }
  const isWrite = (operation: string): boolean => /Put|Transact/.test(operation)

  /** Two batches; the write with that index goes wrong. Answers how many writes there were. */
  async function withWrite(index: number, wrong: 'before' | 'after'): Promise<number> {
    const { out, stage, table } = counting()
    let writes = 0
    table[wrong] = ({ operation }) => {
      if (isWrite(operation) && writes++ === index) throw awsError('Error', { code: 'ECONNRESET' })
    }
    await stage.send(kinesisEvent(['a', 'b', 'a']))
    await stage.send(kinesisEvent(['a', 'b'], { firstIndex: 3 }))
    expect(stage.ports.received(out).toSorted()).toEqual(['a 1', 'a 2', 'a 3', 'b 1', 'b 2'])
    expect(stage.ports.deadLettered).toEqual([])
    return writes
  }

  test.each(['before', 'after'] as const)(
    'whichever write is cut off %s its effect, each record counts once',
    async (wrong) => {
      const writes = await withWrite(-1, wrong)
      expect(writes).toBeGreaterThan(6)
      for (let index = 0; index < writes; index++) await withWrite(index, wrong)
    },
  )
})
