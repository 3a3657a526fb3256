/** C06, as far as stores go: a write whose answer is lost is found out and counted once; whoever dies midway blocks nobody. */
import type { StateStore } from '../../lib/state/state-store.ts'
import { awsError, never } from '../aws/sink-worlds.ts'
import { StateTable } from '../aws/state-table.ts'

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
