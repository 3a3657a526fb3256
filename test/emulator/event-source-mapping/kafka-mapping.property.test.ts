/** Whatever fails, is throttled, reported and handed on: what a Kafka mapping owes its function. */
import fc from 'fast-check'
import type { InvocationOutcome } from '../../../lib/emulator/event-source-mapping/index.ts'
import { type KafkaDelivery, KafkaWorld, reportsItems, topic } from './kafka-world.ts'
import { answered, failed, throttled } from './memory-ports.ts'

const plan = fc.record({
  mode: fc.constantFrom('on-demand' as const, 'provisioned' as const),
  retriedItems: fc.constantFrom('reported' as const, 'and-later' as const),
  batchSize: fc.integer({ min: 1, max: 6 }),
  pollers: fc.integer({ min: 1, max: 4 }),
  bisect: fc.boolean(),
  puts: fc.array(fc.nat(2), { minLength: 1, maxLength: 25 }),
  outcomes: fc.array(fc.constantFrom('done', 'fails', 'throttles', 'reports', 'slow'), { maxLength: 25 }),
  rebalances: fc.array(fc.integer({ min: 100, max: 20_000 }), { maxLength: 4 }),
})

/** As the handler does: of each partition the first that is not done and all behind it. */
function reported({ records }: KafkaDelivery, from: number): InvocationOutcome {
  const first = records[from % records.length] ?? ''
  const [partition = '', offset] = first.split(':')
  return reportsItems(
    ...records.filter((record) => {
      const [own, at] = record.split(':')
      return own === partition && Number(at) >= Number(offset)
    }),
  )
}

test('every record is done or comes again, in the order of its partition, and a commit never passes one that is not', async () => {
  await fc.assert(
    fc.asyncProperty(plan, async ({ mode, retriedItems, batchSize, pollers, bisect, puts, outcomes, rebalances }) => {
      const world = new KafkaWorld(
        {
          ...{ mode, batchSize, pollers, bisectBatchOnFunctionError: bisect },
          emulation: { pollIntervalMs: 20_000, backoff: { initialMs: 400, factor: 2, maxMs: 2_000 } },
        },
        { topic: { partitions: 3 }, format: { retriedItems } },
      )
      const done = new Set<string>()
      world.answer = async (delivery, index) => {
        const outcome = outcomes[index] ?? 'done'
        if (outcome === 'fails') return failed()
        if (outcome === 'throttles') return throttled
        if (outcome === 'slow') await world.clock.sleep(5_000)
        // In on-demand mode the handler never answers in part.
        const left = outcome === 'reports' && mode === 'provisioned' ? reported(delivery, index) : answered(null)
        const items = ((left as { payload: { batchItemFailures: unknown[] } | null }).payload?.batchItemFailures ?? [])
          .length
        const isLeft = new Set(items === 0 ? [] : leftOf(left))
        for (const record of delivery.records) if (!isLeft.has(record)) done.add(record)
        return left
      }
      const ends = [0, 0, 0]
      for (const partition of puts) {
        world.put(partition, 'v')
        ends[partition] = (ends[partition] ?? 0) + 1
      }
      await world.run(0)
      for (const ms of rebalances) {
        await world.clock.advance(ms)
        world.mapping.rebalance()
        checkCommits(world, done)
      }
      await world.clock.advance(240_000)
      checkCommits(world, done)
      for (const [partition, end] of ends.entries()) {
        if (end > 0) expect(world.committed[partition]).toBe(end)
        const own = world.deliveries.map(({ records }) => offsetsOf(records, partition))
        // Within a payload offsets ascend, and no record is skipped: one comes only when all before it had come.
        let reached = 0
        for (const offsets of own) {
          expect(offsets).toEqual(offsets.toSorted((a, b) => a - b))
          for (const offset of offsets) {
            expect(offset).toBeLessThanOrEqual(reached)
            reached = Math.max(reached, offset + 1)
          }
        }
        expect(reached).toBe(end)
      }
      await world.stop(60_000)
    }),
    { numRuns: 60 },
  )
}, 120_000)

const offsetsOf = (records: readonly string[], partition: number): number[] =>
  records.filter((record) => record.startsWith(`${partition}:`)).map((record) => Number(record.split(':')[1]))

function leftOf(outcome: InvocationOutcome): string[] {
  const { payload } = outcome as {
    payload: { batchItemFailures: { itemIdentifier: { partition: string; offset: number } }[] }
  }
  return payload.batchItemFailures.map(
    ({ itemIdentifier: { partition, offset } }) => `${partition.slice(topic.length + 1)}:${offset}`,
  )
}

function checkCommits(world: KafkaWorld, done: ReadonlySet<string>): void {
  for (const [partition, committed] of Object.entries(world.committed)) {
    for (let offset = 0; offset < committed; offset += 1) expect(done).toContain(`${partition}:${offset}`)
  }
}
