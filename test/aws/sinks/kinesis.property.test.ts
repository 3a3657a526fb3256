import type { PutRecordsCommand, PutRecordsCommandOutput } from '@aws-sdk/client-kinesis'
import fc, { type Scheduler } from 'fast-check'
import type { KinesisItem } from '../../../lib/aws/kinesis/destination.ts'
import { kinesisSink } from '../../../lib/aws/sinks/kinesis.ts'
import { awsError, outputs, StubStream, testPorts } from '../sink-worlds.ts'

interface Sent {
  readonly key: string
  readonly n: number
}

/** What happens to one request: it is taken but for some records, or lost on its way there or on its way back. */
type Fault = { readonly refused: readonly number[] } | 'lost before' | 'lost after'

/** A stream whose requests and answers arrive in any order that the scheduler chooses. */
class ShuffledStream extends StubStream {
  readonly #scheduler: Scheduler
  readonly #faults: Fault[]

  constructor(scheduler: Scheduler, faults: readonly Fault[]) {
    super()
    this.#scheduler = scheduler
    this.#faults = [...faults]
  }

  override async send(command: PutRecordsCommand): Promise<PutRecordsCommandOutput> {
    const records = command.input.Records as KinesisItem[]
    const fault = this.#faults.shift()
    this.requests.push(records)
    this.inFlight++
    await this.#scheduler.schedule(Promise.resolve(), 'request arrives')
    const lost = awsError('TimeoutError')
    const refused =
      typeof fault === 'object' ? new Set(fault.refused.map((i) => records[i % records.length])) : undefined
    this.refuse = (record) => (refused?.has(record) ? 'ProvisionedThroughputExceededException' : undefined)
    const output = fault === 'lost before' ? undefined : this.take(records)
    await this.#scheduler.schedule(Promise.resolve(), 'answer arrives')
    this.inFlight--
    if (output === undefined || fault === 'lost after') throw lost
    return output
  }
}

const sentOf = (item: KinesisItem): Sent => JSON.parse(Buffer.from(item.Data).toString()) as Sent
const numbersOf = (sent: readonly Sent[], key: string) => [
  ...new Set(sent.filter((one) => one.key === key).map(({ n }) => n)),
]

const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ refused: fc.array(fc.nat(9), { maxLength: 4 }) }) },
  fc.constantFrom('lost before' as const, 'lost after' as const),
)
const keys = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { maxLength: 25 })
const abortAt = fc.option(fc.nat(40), { nil: undefined })

test('whatever is refused, lost, reordered or aborted: order per key holds and every "delivered" is stored', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      keys,
      fc.array(fault, { maxLength: 12 }),
      abortAt,
      async (s, sentKeys, faults, at) => {
        const sent: Sent[] = sentKeys.map((key, n) => ({ key, n }))
        const stream = new ShuffledStream(s, faults)
        const controller = new AbortController()
        const sleep = async (): Promise<void> => {
          await s.schedule(Promise.resolve(), 'sleeper wakes')
        }
        const ports = testPorts({ nowMs: () => 0, sleep })
        const sink = kinesisSink<Sent>({ client: stream, streamName: 'out', ...ports })
        const items = outputs(sent, ({ key }) => key).map((output) => sink.prepare(output))

        const delivery = sink.deliver(items, { signal: controller.signal })
        let requestsAtAbort = Number.POSITIVE_INFINITY
        let finished = false
        delivery.finally(() => {
          finished = true
        })
        for (let step = 0; !finished; step++) {
          if (step === at) {
            controller.abort()
            requestsAtAbort = stream.requests.length
          }
          if (s.count() > 0) await s.waitOne()
          else await new Promise((resolve) => setImmediate(resolve))
        }
        const outcomes = await delivery

        expect(stream.inFlight).toBe(0)
        expect(stream.requests.length).toBeLessThanOrEqual(requestsAtAbort)
        expect(outcomes).toHaveLength(sent.length)
        for (const request of stream.requests) {
          expect(new Set(request.map(({ PartitionKey }) => PartitionKey)).size).toBe(request.length)
        }
        const stored = stream.stored.map(sentOf)
        for (const key of new Set(sentKeys)) {
          const expected = numbersOf(sent, key)
          const inStream = numbersOf(stored, key)
          const called = sent.filter((one, i) => one.key === key && outcomes[i]?.status === 'delivered')
          expect(inStream).toEqual(expected.slice(0, inStream.length))
          expect(called.map(({ n }) => n)).toEqual(inStream.slice(0, called.length))
          if (requestsAtAbort === Number.POSITIVE_INFINITY) expect(called).toHaveLength(expected.length)
        }
      },
    ),
    { numRuns: 500 },
  )
})
