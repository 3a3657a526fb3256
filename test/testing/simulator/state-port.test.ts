import { MemoryStateStore } from '../../../lib/state/memory-store.ts'
import type { KeyCommit } from '../../../lib/state/state-store.ts'
import { type Faults, noFaults } from '../../../lib/testing/simulator/faults.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import { newOwner } from '../../../lib/testing/simulator/scheduler.ts'
import { ScheduledStore } from '../../../lib/testing/simulator/state-port.ts'
import { run, scheduler } from './simulator-world.ts'

const never = new AbortController().signal

function world(faults: Partial<Faults> = {}) {
  const clocked = scheduler()
  const owner = newOwner('test')
  const clock = clocked.clockOf(owner)
  const table = new MemoryStateStore({ stage: 'by-user', clock })
  const limits = { refusesUntilMs: 0 }
  const store = new ScheduledStore(table, {
    owner,
    scheduler: clocked,
    clock,
    random: new Random(1),
    faults: () => ({ ...noFaults, ...faults }),
    refusesUntilMs: () => limits.refusesUntilMs,
    writes: () => 0,
    count: () => undefined,
  })
  const answered = async <T>(call: Promise<T>): Promise<T> => {
    const settled = Promise.allSettled([call])
    await run(clocked)
    await settled
    return call
  }
  return { clocked, table, store, limits, answered }
}

const commit = (key: string, position: number): KeyCommit => ({
  key,
  readPosition: undefined,
  item: { position, states: { total: position }, expiresAtSeconds: undefined },
  entries: [],
})

test('a commit whose answer is lost took place, and meets itself as a conflict or does not answer', async () => {
  const seen = new Set<string>()
  const { table, store, answered } = world({ lostAnswer: 1 })
  for (let i = 0; i < 20; i++) {
    const call = answered(store.commit(commit(`k${i}`, 7), never))
    const answer = await call.catch((error) => error)
    seen.add(answer.status ?? answer.code)
    if (answer.status === 'conflict') expect(answer.found.position).toBe(7)
    expect((await table.readKeys([`k${i}`], never)).get(`k${i}`)?.position).toBe(7)
  }
  expect([...seen].sort()).toEqual(['conflict', 'state-unanswered'])
})

test('a torn read shows keys of two moments', async () => {
  const { clocked, table, store, answered } = world({ tornRead: 1 })
  const keys = ['a', 'b']
  for (const key of keys) await table.commit(commit(key, 1), never)
  const reading = store.readKeys(keys, never)
  // The first of both reads takes effect, then another attempt writes both keys.
  await clocked.step()
  for (const key of keys) {
    await table.commit({ ...commit(key, 2), readPosition: 1 }, never)
  }
  const read = await answered(reading)
  expect([...read.values()].map(({ position }) => position).sort()).toEqual([1, 2])
})

test('while the table refuses, callers wait until it takes calls again or their time is over', async () => {
  const { clocked, store, limits, answered } = world()
  limits.refusesUntilMs = 10_000
  expect(await answered(store.readProgress('p', never))).toBeUndefined()
  expect(clocked.elapsedMs).toBeGreaterThanOrEqual(10_000)
  limits.refusesUntilMs = 1_000_000
  const late = answered(store.readProgress('p', AbortSignal.abort()))
  await expect(late).rejects.toMatchObject({ code: 'state-deadline' })
})
