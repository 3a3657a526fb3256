/** Rule 3 of due-keys.ts: what is left in the table is found again, and goes when progress has passed it. */
import { z } from 'zod'
import { processingTimer, Topology, valueState } from '../../../lib/index.ts'
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
