import { MemoryStateStore } from '../../../lib/state/memory-store.ts'
import type { KeyCommit } from '../../../lib/state/state-store.ts'
import { DueWatch } from '../../../lib/testing/simulator/due-watch.ts'

const never = new AbortController().signal
const watch = () => new DueWatch(new MemoryStateStore({ stage: 'by-user', clock: { nowMs: () => 0 } }))
const entry = { slot: 0, domain: 'event-time', timeMs: 5, key: 'a' } as const
const commit: KeyCommit = {
  key: 'a',
  readPosition: undefined,
  item: {
    position: 1,
    states: {},
    expiresAtSeconds: undefined,
    own: { timers: { 'event-time': { idle: 5, later: 9 } } },
  },
  entries: [],
}

test('a key that waits for its earliest timer with an entry is in order', async () => {
  const table = watch()
  await table.putDue([entry], never)
  await table.commit(commit, never)
  expect(table.findings).toEqual([])
})

test('a commit without its due entry is found', async () => {
  const table = watch()
  await table.commit(commit, never)
  expect(table.findings).toEqual(['no due entry was put for event-time 5 of a'])
})

test('an entry that is deleted while its key waits is found', async () => {
  const table = watch()
  await table.putDue([entry], never)
  await table.commit(commit, never)
  await table.deleteDue([entry], never)
  expect(table.findings).toEqual(['the due entry event-time 5 of a was deleted, and it waits'])
})
