import { takenCounter } from '../../../bin/flights/processing.ts'
import type { LocalApplication } from '../../../lib/local/run/application.ts'

/** An application of one shard that has done so many records and has so many in flight. */
function application(work: { done: number; inFlight: number }): Pick<LocalApplication, 'status'> {
  return {
    status: () =>
      ({
        stages: [
          {
            recordsDone: new Map([['shardId-000000000000', work.done]]),
            // Read ahead: 7 more wait for a worker.
            mapping: { shards: [{ unfinished: work.inFlight + 7, lanes: [{ waiting: 7 }] }] },
          },
        ],
      }) as never,
  }
}

test('a run that goes on counts from what earlier runs had taken', () => {
  const work = { done: 0, inFlight: 0 }
  const taken = takenCounter(application(work), { total: 1_000, repeats: 0 })
  work.done = 200
  work.inFlight = 50
  expect(taken(2_000)).toBe(1_250)
})

test('after a crash what is taken again is counted once, and never more than was sent', () => {
  // GIVEN 1,000 records with outcomes, the last 300 of which have no checkpoint; 1,200 are sent
  const work = { done: 0, inFlight: 0 }
  const outcomes = { total: 1_000, repeats: 0 }
  const taken = takenCounter(application(work), outcomes)
  // WHEN they are taken again: first in flight, then out once more
  work.inFlight = 300
  expect(taken(1_200)).toBe(1_200)
  Object.assign(work, { done: 300, inFlight: 0 })
  outcomes.repeats = 300
  // THEN
  expect(taken(1_200)).toBe(1_000)
  Object.assign(work, { done: 500 })
  expect(taken(1_200)).toBe(1_200)
})

test('repeats of earlier runs are taken already', () => {
  const outcomes = { total: 1_000, repeats: 40 }
  const taken = takenCounter(application({ done: 10, inFlight: 0 }), outcomes)
  expect(taken(2_000)).toBe(1_010)
})
