/** Keyed stages come and go: what the stage that feeds them has read, and how it numbered it, stays. */
import type { KinesisStreamEvent } from 'aws-lambda'
import { z } from 'zod'
import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { type SinkHandle, Topology } from '../../lib/index.ts'
import { kinesisEvent, lambdaContext } from '../../lib/testing/events.ts'
import { type MemoryPorts, memoryPorts } from '../../lib/testing/memory-ports.ts'

const schema = z.object({ k: z.string() })

/** A release whose source feeds these keyed stages, in this order; each counts the records of a key. */
function release(stages: readonly string[]) {
  const app = new Topology('app')
  const source = app.source('values', schema)
  const sinks = new Map<string, SinkHandle<number>>()
  for (const stage of stages) {
    const out = app.sink<number>(`${stage}-out`)
    sinks.set(stage, out)
    source
      .keyBy(stage, ({ k }) => k)
      .aggregate(
        `${stage}-count`,
        { init: () => 0, add: (count) => count + 1, result: (count) => count },
        { emit: 'on-update' },
      )
      .to(out)
  }
  return { app, sinks }
}

/** One release after the other, on one set of streams and tables. */
class Releases {
  readonly #ports: MemoryPorts = memoryPorts()
  readonly #sinks = new Map<string, SinkHandle<number>>()
  #sent = 0

  /** Sends three records of one key, one by one, and runs every stage on what reaches it. */
  async sendThree(stages: readonly string[]): Promise<void> {
    const { app, sinks } = release(stages)
    for (const [stage, sink] of sinks) this.#sinks.set(stage, sink)
    const handler = streamHandler(app, { ports: this.#ports })
    for (let sent = 0; sent < 3; sent++) {
      const run = async (event: KinesisStreamEvent) =>
        expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [] })
      await run(kinesisEvent([{ k: 'a' }], { firstIndex: this.#sent++ }))
      for (const stage of stages) for (const frames of this.#ports.takeFrames(stage)) await run(frames)
    }
  }

  counts(stage: string): readonly number[] {
    const sink = this.#sinks.get(stage)
    return sink ? this.#ports.received(sink) : []
  }
}

test('a keyBy that is added in front of another loses nothing; it takes the records from then on', async () => {
  const releases = new Releases()
  await releases.sendThree(['by-key'])
  await releases.sendThree(['by-new', 'by-key'])
  expect(releases.counts('by-key')).toEqual([1, 2, 3, 4, 5, 6])
  expect(releases.counts('by-new')).toEqual([1, 2, 3])
})

test('a first keyBy that is removed loses nothing of the other', async () => {
  const releases = new Releases()
  await releases.sendThree(['by-old', 'by-key'])
  await releases.sendThree(['by-key'])
  expect(releases.counts('by-key')).toEqual([1, 2, 3, 4, 5, 6])
  expect(releases.counts('by-old')).toEqual([1, 2, 3])
})

test('the order in which keyBys are declared says nothing about what was read', async () => {
  const releases = new Releases()
  await releases.sendThree(['by-key', 'by-other'])
  await releases.sendThree(['by-other', 'by-key'])
  for (const stage of ['by-key', 'by-other']) expect(releases.counts(stage)).toEqual([1, 2, 3, 4, 5, 6])
})

test('a keyBy that is taken away and comes back goes on, with the records from then on', async () => {
  const releases = new Releases()
  await releases.sendThree(['by-gone', 'by-key'])
  await releases.sendThree(['by-key'])
  await releases.sendThree(['by-gone', 'by-key'])
  expect(releases.counts('by-key')).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(releases.counts('by-gone')).toEqual([1, 2, 3, 4, 5, 6])
})
