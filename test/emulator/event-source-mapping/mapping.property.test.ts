import fc from 'fast-check'
import { laneOf } from '../../../lib/emulator/event-source-mapping/batching.ts'
import type { InvocationOutcome } from '../../../lib/emulator/event-source-mapping/index.ts'
import { type AttemptResult, afterAttempt, firstAttempt } from '../../../lib/emulator/event-source-mapping/retry.ts'
import { MappingWorld, s0 } from './mapping-world.ts'
import { answered, failed, reports, throttled } from './memory-ports.ts'

const s1 = 'shardId-000000000001'
const keys = ['a', 'b', 'c', 'd']

const plan = fc.record({
  records: fc.array(fc.record({ key: fc.constantFrom(...keys), waitMs: fc.integer({ min: 0, max: 900 }) }), {
    maxLength: 25,
  }),
  batchSize: fc.integer({ min: 1, max: 7 }),
  windowSeconds: fc.constantFrom(0, 0, 2),
  lanes: fc.constantFrom(1, 1, 3),
  retries: fc.constantFrom(-1, 0, 2),
  ageSeconds: fc.constantFrom(-1, -1, 60),
  bisect: fc.boolean(),
  retriedBatch: fc.constantFrom('stays', 'regroups'),
  /** What becomes of each invocation, as a number to choose from; after the list all succeed. */
  fates: fc.array(fc.nat(99), { maxLength: 40 }),
  /** After how many records the shard is split, the mapping restarted, the disk full for a while. */
  splitAfter: fc.nat(30),
  restartAfter: fc.nat(30),
  diskFullAfter: fc.nat(40),
  /** After how many records another poller takes over, and whether it replays from the beginning. */
  failOverAfter: fc.nat(40),
  replays: fc.boolean(),
})
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

function fateOf(fate: number, sequenceNumbers: readonly string[]): InvocationOutcome {
  if (fate < 30) return answered(null)
  if (fate < 50) return failed()
  if (fate < 60) return throttled
  if (fate < 65) return reports('')
  return reports(sequenceNumbers[fate % sequenceNumbers.length])
}

interface Delivered {
  readonly shardId: string
  readonly lane: number
  readonly run: number
  readonly checkpoint: bigint
  readonly sequences: readonly bigint[]
  /** The records that the answer let pass. */
  readonly passed: readonly bigint[]
}

/** Runs a plan and notes every delivery with the checkpoint at its time. */
async function simulate(given: Plan) {
  const world = new MappingWorld({
    batchSize: given.batchSize,
    maximumBatchingWindowInSeconds: given.windowSeconds,
    parallelizationFactor: given.lanes,
    maximumRetryAttempts: given.retries,
    maximumRecordAgeInSeconds: given.ageSeconds,
    bisectBatchOnFunctionError: given.bisect,
    emulation: {
      maxBufferedRecords: 10,
      pollIntervalMs: 700,
      backoff: { initialMs: 100, factor: 2, maxMs: 5_000 },
      retriedBatch: given.retriedBatch,
    },
  })
  const deliveries: Delivered[] = []
  let run = 0
  world.invoker.answer = async ({ sequenceNumbers, info }, index) => {
    const outcome = fateOf(given.fates[index] ?? 0, sequenceNumbers)
    const sequences = sequenceNumbers.map(BigInt)
    const { shardId, lane } = info
    const checkpoint = BigInt(world.checkpoints.at(shardId) ?? -1)
    deliveries.push({ shardId, lane, run, checkpoint, sequences, passed: passedBy(outcome, sequences) })
    await world.clock.sleep((given.fates[index] ?? 0) * 5)
    return outcome
  }
  const put: { shardId: string; sequence: bigint; key: string }[] = []
  let shardId = s0
  await world.run(0)
  for (const [index, { key, waitMs }] of given.records.entries()) {
    if (index === given.splitAfter) {
      world.stream.close(s0)
      world.stream.addShard(s1, [s0])
      shardId = s1
    }
    if (index === given.diskFullAfter) world.checkpoints.failure = 'full'
    if (index === given.diskFullAfter + 3) world.checkpoints.failure = undefined
    world.stream.put(shardId, index, { partitionKey: key })
    put.push({ shardId, sequence: BigInt(index), key })
    await world.clock.advance(waitMs)
    if (index === given.failOverAfter) {
      run += 1
      world.mapping.failOver(shardId, given.replays ? { at: 'trim-horizon' } : undefined)
    }
    if (index === given.restartAfter) {
      await world.stop(1_000)
      run += 1
      world.mapping = world.create()
      await world.run(0)
    }
  }
  world.checkpoints.failure = undefined
  await world.clock.advance(240_000)
  await world.stop(1_000)
  return { world, deliveries, put }
}

function passedBy(outcome: InvocationOutcome, sequences: readonly bigint[]): readonly bigint[] {
  if (outcome.kind !== 'answered') return []
  const failures = (outcome.payload as { batchItemFailures: { itemIdentifier: string }[] } | null)?.batchItemFailures
  const reported = failures?.[0]?.itemIdentifier
  if (reported === undefined) return sequences
  return reported === '' ? [] : sequences.filter((sequence) => sequence < BigInt(reported))
}

test('whatever fails: every record is delivered or reported, in order per lane, parents first, never behind the checkpoint', async () => {
  await fc.assert(
    fc.asyncProperty(plan, async (given) => {
      const { world, deliveries, put } = await simulate(given)
      const passed = new Set(deliveries.flatMap((delivery) => delivery.passed))
      const inRange = (sequence: bigint, shardId: string, key: string) =>
        world.destination.envelopes.some(({ KinesisBatchInfo: info }) => {
          // A lane's range may span records of other lanes: those count only for their own lane.
          const first = put.find((record) => record.sequence === BigInt(info.startSequenceNumber))
          const isSameLane = laneOf(first?.key ?? '', given.lanes) === laneOf(key, given.lanes)
          const isWithin = sequence >= BigInt(info.startSequenceNumber) && sequence <= BigInt(info.endSequenceNumber)
          return isSameLane && isWithin && info.shardId === shardId
        })
      for (const { sequence, shardId, key } of put) {
        expect({ sequence, ended: passed.has(sequence) || inRange(sequence, shardId, key) }).toEqual({
          sequence,
          ended: true,
        })
      }
      const lastOf = (shardId: string) =>
        put
          .filter((record) => record.shardId === shardId)
          .at(-1)
          ?.sequence.toString()
      expect([s0, s1].map((shardId) => world.checkpoints.at(shardId))).toEqual([lastOf(s0), lastOf(s1)])
      for (const delivery of deliveries) {
        const mayRepeat = given.replays && given.failOverAfter < given.records.length
        expect(mayRepeat || delivery.sequences.every((sequence) => sequence > delivery.checkpoint)).toBe(true)
        expect(delivery.sequences).toEqual([...delivery.sequences].sort((one, other) => Number(one - other)))
      }
      expectOrder(deliveries)
      const firstOfChild = deliveries.findIndex((delivery) => delivery.shardId === s1)
      if (firstOfChild >= 0) expect(deliveries.slice(firstOfChild).some((one) => one.shardId === s0)).toBe(false)
    }),
    { numRuns: 150 },
  )
}, 30_000)

/** Within a run of the mapping, a lane never delivers what is older than something that it let pass already, nor skips anything. */
function expectOrder(deliveries: readonly Delivered[]): void {
  const floor = new Map<string, bigint>()
  for (const { shardId, lane, run, sequences, passed } of deliveries) {
    const unit = `${shardId}/${lane}/${run}`
    const [first] = sequences
    expect(first !== undefined && first > (floor.get(unit) ?? -1n)).toBe(true)
    const last = passed.at(-1)
    if (last !== undefined) floor.set(unit, last)
  }
}

test('the same plan gives the same run, to the request id', async () => {
  await fc.assert(
    fc.asyncProperty(plan, async (given) => {
      const [one, other] = [await simulate(given), await simulate(given)]
      expect(one.world.invoker.deliveries).toEqual(other.world.invoker.deliveries)
      expect(one.world.destination.messages).toEqual(other.world.destination.messages)
      expect(one.world.checkpoints.history).toEqual(other.world.checkpoints.history)
    }),
    { numRuns: 10 },
  )
}, 60_000)

test('after an attempt done, discarded and retried together are the batch, each part in order', () => {
  const result = fc.oneof(
    fc.constantFrom<AttemptResult['kind']>('success', 'not-run', 'failure').map((kind) => ({ kind, reason: 'r' })),
    fc.uniqueArray(fc.nat(9), { minLength: 1 }).map((left) => ({ kind: 'partial', left, reason: 'r' })),
  ) as fc.Arbitrary<AttemptResult>
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 }),
      result,
      fc.boolean(),
      fc.nat(3),
      fc.nat(3),
      (size, given, bisect, max, spent) => {
        const records = Array.from({ length: size }, (_, index) => index)
        const inBatch = (left: readonly number[]) => records.filter((index) => left.some((one) => one % size === index))
        const outcome = given.kind === 'partial' ? { ...given, left: inBatch(given.left) } : given
        const backoff = { initialMs: 1, factor: 2, maxMs: 100 }
        const rules = { bisect, maxRetryAttempts: max, backoff }
        const attempt = { ...firstAttempt(records), invokeCount: Math.min(spent, max) }
        const { done, discarded, retry } = afterAttempt(attempt, outcome, rules, 0)
        const parts = [done, discarded?.records ?? [], ...retry.map((part) => part.records)]
        for (const part of parts) expect(part).toEqual(part.toSorted((a, b) => a - b))
        expect(parts.flat().toSorted((a, b) => a - b)).toEqual(records)
        for (const part of retry) {
          const isSmaller = part.records.length < size
          const hasSpent = part.invokeCount === attempt.invokeCount + 1
          expect(isSmaller || hasSpent || outcome.kind === 'not-run').toBe(true)
          expect(part.invokeCount).toBeLessThanOrEqual(max)
        }
      },
    ),
  )
})
