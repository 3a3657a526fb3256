/** Rules 1 and 3 of due-keys.ts: what is left in the table is found again, and goes when progress has passed it. */
import { z } from 'zod'
import { SlotMemo } from '../../../lib/core/slot.ts'
import { processingTimer, Topology, valueState } from '../../../lib/index.ts'
import { DueKeys } from '../../../lib/runtime/keyed/due-keys.ts'
import { blankKeyedProgress, type KeyedProgress } from '../../../lib/runtime/progress/progress.ts'
import { KeyDraft } from '../../../lib/state/key-draft.ts'
import { MemoryStateStore } from '../../../lib/state/memory-store.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'
import { StageWorld } from '../stage-world.ts'

const { signal } = new AbortController()
const schema = z.object({ key: z.string(), waitMs: z.number().optional() })

test('the due entry of a timer that fired inside an entry of the log which was cut is deleted when that is done', async () => {
  const app = new Topology('polls-app')
  const out = app.sink<string>('out')
  app
    .source('values', schema)
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .process('poll', {
      state: { seen: valueState<boolean>() },
      timers: { poll: processingTimer() },
      step({ key, waitMs }, { record, timers }): string[] {
        if (waitMs !== undefined) timers.poll.set(record.arrivalTimeMs + waitMs)
        return [key]
      },
      onTimer: { poll: (_, { key }) => [`${key} polled`] },
    })
    .to(out)
  const world = new StageWorld(app, 'by-key')
  world.frame([{ key: 'a', waitMs: 2_000 }], { arrivalTimeMs: 1_000 })
  world.frame([{ key: 'b' }, { key: 'c' }], { arrivalTimeMs: 5_000 })
  const refused = new Error('throttled')
  world.refuse = (_, value) => (value === 'c' ? { status: 'retry', error: refused } : undefined)
  const eachKeyAlone = { mostKeysPerCommit: 1 }
  expect(await world.run(world.container(eachKeyAlone))).toBe(1)
  expect(world.calls).toContain('commit a@2')
  world.refuse = () => undefined
  expect(await world.run(world.container(eachKeyAlone), 1)).toBe(2)
  expect(world.memory.received(out)).toEqual(['a', 'a polled', 'b', 'c'])
  expect(await entriesLeft(world.store)).toEqual([])
})

async function entriesLeft(store: StateStore) {
  return (await store.readDue(0, 'processing-time', 10_000, { limit: 10 }, signal)).entries
}

describe('what attempts at one partition leave each other', () => {
  const [passed, due, later] = [50, 100, 200] as const
  const nothing = { watermarkMs: Number.NEGATIVE_INFINITY, processingMs: Number.NEGATIVE_INFINITY }

  /** A partition of one slot that has done its first record. */
  const progressAt = (watermarkMs: number, earliestMs?: number): KeyedProgress => ({
    ...blankKeyedProgress(1, [0]),
    completed: '1',
    watermarkMs,
    earliest: { event: new Map(earliestMs === undefined ? [] : [[0, earliestMs]]), processing: new Map() },
  })

  const storeOf = () => new MemoryStateStore({ stage: 'by-key', clock: { nowMs: () => 0 } })
  const dueKeysOf = (progress: KeyedProgress, store = storeOf()) =>
    new DueKeys({ store, slots: new SlotMemo(1) }, progress, signal)

  /** A key as the table has it, that waits until then. */
  function waiting(timeMs: number): KeyDraft {
    const first = new KeyDraft('a', undefined, new Map())
    first.setTimer('event-time', 'bell', timeMs)
    first.accept(1)
    return new KeyDraft('a', first.commit(0, 0).item, new Map())
  }

  const entryOf = (timeMs: number) => ({ slot: 0, domain: 'event-time', timeMs, key: 'a' }) as const

  test('a step that was not committed does not hide what the table has its key wait for', () => {
    const keys = dueKeysOf(progressAt(passed))
    const draft = waiting(due)
    draft.setTimer('event-time', 'bell', later)
    keys.keepEarliest([draft])
    expect(keys.earliest(false, progressAt(passed)).event.get(0)).toBe(due)
  })

  test('a warm key fires although another attempt has deleted its due entry since progress was read', async () => {
    const keys = dueKeysOf(progressAt(passed, due))
    await keys.find({ watermarkMs: due, processingMs: 0 })
    keys.noteWarm([waiting(due)])
    expect(keys.take({ watermarkMs: due, processingMs: 0 }).map(({ key }) => key)).toEqual(['a'])
  })

  test('of a batch that was cut, what was due before it counts on, although its entry is gone', async () => {
    const keys = dueKeysOf(progressAt(passed, due))
    await keys.find({ watermarkMs: due, processingMs: 0 })
    expect(keys.earliest(true, nothing).event.get(0)).toBe(due)
    expect(keys.earliest(false, nothing).event.get(0)).toBeUndefined()
  })

  test('a due entry stays as long as its key waits for it, though progress has passed its time', async () => {
    const store = storeOf()
    await store.putDue([entryOf(due)], signal)
    const left = async () => (await store.readDue(0, 'event-time', later, { limit: 10 }, signal)).entries
    const keys = dueKeysOf(progressAt(passed, due), store)
    await keys.find({ watermarkMs: due, processingMs: 0 })
    keys.keepEarliest([waiting(due)])
    await keys.deletePassed(progressAt(due), signal)
    expect(await left()).toHaveLength(1)
    keys.keepEarliest([waiting(later)])
    await keys.deletePassed(progressAt(due), signal)
    expect(await left()).toEqual([])
  })
})
