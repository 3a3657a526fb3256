import { Load } from '../../bench/windows/load.ts'
import { measureMassClose } from '../../bench/windows/mass-close.ts'
import { measureSilence } from '../../bench/windows/silence.ts'
import { WindowStages } from '../../bench/windows/stages.ts'
import { measureUnits } from '../../bench/windows/units.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { MemoryStateStore } from '../../lib/state/memory-store.ts'

test.each(['tumbling', 'hopping', 'session'] as const)(
  '%s: a key is written once a batch, in however many windows it is',
  async (kind) => {
    const { distinctKeys, warm, cold, writesPerKey, perResult, results } = await measureUnits(kind, 50, 1)
    expect(writesPerKey).toBe(1)
    // Beside the keys: progress of both stages, read and written.
    expect([warm.read, warm.write - distinctKeys]).toEqual([2, 2])
    expect(cold.read - warm.read).toBe(distinctKeys + 2)
    expect(results).toBe(50)
    // A read and a write of its key, a timer that is removed and, but for tumbling, one that is set.
    expect(perResult.write).toBeGreaterThanOrEqual(2)
    expect(perResult.write).toBeLessThan(4)
  },
)

test('what waits in the load is closed by its end alone', async () => {
  const stages = new WindowStages('tumbling', { store: new MemoryStateStore({ stage: 's', clock: systemClock }) })
  const load = await Load.open('tumbling', stages, 10)
  await stages.send(load.trips(load.keys(100)))
  expect(stages.takeOutputs('results')).toBe(0)
  await load.close()
  expect([stages.takeOutputs('results'), stages.takeOutputs('late')]).toEqual([10, 0])
})

test('a silent application wakes no stage while nothing is due, and no key is polled', async () => {
  const { waiting, closing, idle } = await measureSilence(30)
  expect([waiting.frames, closing.frames, idle.frames]).toEqual([0, 1, 0])
  expect([waiting.results, closing.results, idle.results]).toEqual([0, 30, 0])
  for (const { minutes, calls } of [waiting, idle]) expect([...calls]).toEqual([['readProgress', 4 * minutes]])
})

test('many windows close in processes of little memory, as many of them killed as are to be', async () => {
  const close = await measureMassClose({ windows: 1_500, memoryMiB: 256, invocationMs: 60_000, kills: 4 })
  expect(close).toMatchObject({ killed: 4, crashed: 0, pastDeadline: 0, missed: 0, doubled: 0 })
  expect(close.largestRssMiB).toBeGreaterThan(50)
  expect(close.largestRssMiB).toBeLessThanOrEqual(256)
}, 240_000)
