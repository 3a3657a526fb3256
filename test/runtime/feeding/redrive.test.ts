/** The invariants of redrive.ts. */
import { z } from 'zod'
import { SourceRecord } from '../../../lib/core/record.ts'
import { epochMs, lookup, milliseconds, minutes, RetryableError, TerminalError, Topology } from '../../../lib/index.ts'
import { plan, stageNamed } from '../../../lib/plan/plan.ts'
import type { Redrive } from '../../../lib/runtime/dead-letter.ts'
import type { RedriveFrame } from '../../../lib/runtime/frames/frame.ts'
import { decodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import type { FramePublisher, Ports } from '../../../lib/runtime/ports.ts'
import { generationName, writeGeneration } from '../../../lib/runtime/progress/generation.ts'
import { createRunner } from '../../../lib/runtime/runner.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import type { VirtualClock } from '../../../lib/testing/virtual-clock.ts'

const startMs = Date.UTC(2026, 0, 1)
const schema = z.object({ key: z.string(), n: z.number(), text: z.string().optional() })
type Value = z.infer<typeof schema>
type Step = (value: Value) => readonly Value[]

const notApplied: Redrive = { ownMarkMs: startMs - 5, applied: false }
const applied: Redrive = { ownMarkMs: startMs - 5, applied: true }
const partition = 'shard-0'

/** `values` > flatMap > sink `out` and keyBy `by-key` of one slot. Says what happens at the ports, in order. */
function feeding(step: Step = (value) => [value], publish: FramePublisher['publish'] = async () => undefined) {
  const app = new Topology('feeding-app')
  const out = app.sink<Value>('out')
  const mapped = app
    .source('values', schema, { eventTime: epochMs(({ n }) => startMs + n), outOfOrderness: milliseconds(5) })
    .flatMap((value) => step(value))
  mapped.to(out)
  mapped
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .reduce('last', (_, value) => value, { emit: 'on-update' })
    .to(app.sink<Value>('lasts'))
  return { out, ...worldOf(app, publish) }
}

function worldOf(app: Topology, publish: FramePublisher['publish']) {
  const memory = memoryPorts()
  const planned = plan(app)
  memory.serve?.(planned)
  /** But for what it asks of its manifest and its generation before the batch. */
  const calls: string[] = []
  const frames: RedriveFrame[] = []
  const ports: Ports = {
    ...memory,
    sink(name) {
      const sink = memory.sink(name)
      if (sink === undefined) return undefined
      return {
        prepare: (output) => sink.prepare(output),
        deliver(items, call) {
          calls.push(`sink ${name}`)
          return sink.deliver(items, call)
        },
      }
    },
    state(stage) {
      const store = memory.state(stage)
      return (
        store &&
        new Proxy(store, {
          get(target, name) {
            const member: unknown = Reflect.get(target, name)
            if (typeof member !== 'function') return member
            return (...args: readonly unknown[]) => {
              const isBefore = args[0] === generationName('values') || String(name).endsWith('Manifest')
              if (!isBefore) calls.push(String(name))
              return member.apply(target, args)
            }
          },
        })
      )
    },
    frames: () => ({
      async publish(encoded, signal) {
        await publish(encoded, signal)
        calls.push(`frames ${encoded.length}`)
        for (const { bytes } of encoded) frames.push(decodeFrame(bytes) as RedriveFrame)
      },
    }),
  }
  const runner = createRunner('feeding-app', stageNamed(planned, 'values'), ports)
  return {
    ...{ memory, calls, frames, runner },
    /** Answers the index of the first record that is not done, and why; undefined where all are. */
    async redrive(values: readonly (Value | string)[], redrive = notApplied, remainingMs = 60_000) {
      const batch = [{ partition, records: values.map(recordOf) }]
      const answer = await runner.redrive?.(batch, redrive, { deadlineMs: memory.clock.nowMs() + remainingMs })
      const [failure] = answer?.failures ?? []
      return failure && [failure.index, failure.error]
    },
  }
}

function recordOf(value: Value | string, subPosition: number): SourceRecord {
  const payload = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
  const where = { source: 'values', partition, position: '77', subPosition }
  return new SourceRecord({ ...where, arrivalTimeMs: startMs + 1_000, key: 'k', payload })
}

const v = (key: string, n: number): Value => ({ key, n })

test('a record is stepped beside the log: no progress is read or written (1)', async () => {
  const { redrive, calls } = feeding()
  expect(await redrive([v('a', 1)])).toBeUndefined()
  expect(calls).toEqual(['frames 1', 'sink out'])
})

test('outputs to keyed stages keep own mark, event time and origin, and have the same identities each time (2)', async () => {
  const { redrive, frames } = feeding(({ n }) => [v('a', n), v('b', n + 1)])
  await redrive([v('x', 7)])
  await redrive([v('x', 7)])
  const origin = { source: 'values', partition, position: '77', subPosition: 0, arrivalTimeMs: startMs + 1_000 }
  const times = { side: 'by-key', ownMarkMs: startMs - 5, eventTimeMs: startMs + 7, origin }
  const [first, second] = frames
  expect(first).toMatchObject({
    ...{ kind: 'redrive', slot: 0, schemaVersion: 1 },
    records: [
      { ...times, key: 'a', value: Buffer.from('{"key":"a","n":7}'), redrive: 'values/shard-0/77/0/0' },
      { ...times, key: 'b', value: Buffer.from('{"key":"b","n":8}'), redrive: 'values/shard-0/77/0/1' },
    ],
  })
  expect(second).toEqual(first)
})

test('a record before which nothing came has no own mark (2)', async () => {
  const { redrive, frames } = feeding()
  await redrive([v('a', 7)], { ownMarkMs: null, applied: false })
  expect(frames).toMatchObject([{ records: [{ ownMarkMs: Number.NEGATIVE_INFINITY }] }])
})

test('records of one aggregate have identities of their own (2)', async () => {
  const { redrive, frames } = feeding()
  await redrive([v('a', 1), v('a', 2)])
  expect(frames.flatMap(({ records }) => records.map(({ redrive }) => redrive))).toEqual([
    'values/shard-0/77/0/0',
    'values/shard-0/77/1/0',
  ])
})

test('many and large outputs are cut into frames that fit, in order (2)', async () => {
  const { redrive, frames } = feeding(() =>
    Array.from({ length: 7 }, (_, n) => ({ ...v('a', n), text: 'x'.repeat(n === 3 ? 900_000 : 100_000) })),
  )
  expect(await redrive([v('a', 1)])).toBeUndefined()
  expect(frames.map(({ records }) => records.map(({ redrive }) => redrive?.at(-1)).join(''))).toEqual([
    ...['01', '2', '3', '45', '6'],
  ])
})

test('where a frame is not taken, no sink has an output and no dead letter is written: all comes again (3)', async () => {
  const refused = new RetryableError('throttled')
  const { redrive, calls, memory, out } = feeding(
    ({ n }) => {
      if (n === 2) throw new TerminalError('broken')
      return [v('a', n)]
    },
    () => Promise.reject(refused),
  )
  expect(await redrive([v('a', 1), v('a', 2)])).toEqual([0, refused])
  expect([calls, memory.received(out), memory.deadLettered]).toEqual([[], [], []])
})

test('what a sink rejects is a dead letter of the phase sink, when keyed state has all (3)', async () => {
  const { redrive, calls, memory, out } = feeding()
  memory.refuse(out, () => ({ status: 'rejected', error: new Error('no') }))
  expect(await redrive([v('a', 1)])).toBeUndefined()
  expect(calls).toEqual(['frames 1', 'sink out'])
  expect(memory.deadLettered).toMatchObject([{ id: 'values/shard-0/77/0/out/0', reason: { phase: 'sink' } }])
})

test('several outputs of a record that a sink rejects are a dead letter each (3)', async () => {
  const { redrive, memory, out } = feeding(({ n }) => [v('a', n), v('b', n)])
  memory.refuse(out, () => ({ status: 'rejected', error: new Error('no') }))
  expect(await redrive([v('a', 1)], applied)).toBeUndefined()
  expect(memory.deadLettered).toMatchObject([
    { id: 'values/shard-0/77/0/out/0', reason: { phase: 'sink' }, output: { index: 0 }, applied: true },
    { id: 'values/shard-0/77/0/out/1', reason: { phase: 'sink' }, output: { index: 1 }, applied: true },
  ])
})

test('a record whose keyed state has all goes to the sinks alone, also if it fails on the way (4)', async () => {
  const faults = { on: false }
  const { redrive, calls, memory, out } = feeding((value) => {
    if (faults.on) throw new TerminalError('broken', { code: 'broken' })
    return [value]
  })
  expect(await redrive([v('a', 1)], applied)).toBeUndefined()
  expect([calls, memory.received(out)]).toEqual([['sink out'], [v('a', 1)]])
  faults.on = true
  expect(await redrive([v('a', 2)], applied)).toBeUndefined()
  expect(memory.deadLettered).toMatchObject([{ reason: { code: 'broken', phase: 'step' }, applied: true }])
})

test('a record that was given up before a reset is dropped, and one that was given up since travels with its generation (5)', async () => {
  const { redrive, calls, frames, memory, out } = feeding(({ n }) => {
    if (n === 3) throw new TerminalError('broken')
    return [v('a', n)]
  })
  const { signal } = new AbortController()
  const store = memory.state('values') as StateStore
  await writeGeneration(store, 'values', { generation: 2, isHeld: true }, signal)
  const second = { ...notApplied, generation: 2 }
  expect(await redrive([v('a', 1)], second)).toEqual([0, expect.objectContaining({ code: 'reset-underway' })])
  expect(await redrive([v('a', 1), v('a', 2)])).toBeUndefined()
  expect([calls, memory.received(out), memory.counted('redrives-dropped')]).toEqual([[], [], 2])
  await writeGeneration(store, 'values', { generation: 2 }, signal)
  expect(await redrive([v('a', 1)])).toBeUndefined()
  expect(await redrive([v('a', 2), v('a', 3)], second)).toBeUndefined()
  expect([memory.received(out), memory.counted('redrives-dropped')]).toEqual([[v('a', 2)], 3])
  expect(frames).toMatchObject([{ generation: 2, records: [{ redrive: 'values/shard-0/77/0/0' }] }])
  expect(memory.deadLettered).toMatchObject([{ id: 'values/shard-0/77/1', generation: 2 }])
  // What it was to do to keyed state is done and gone: an output to a sink does no harm.
  expect(await redrive([v('a', 7)], applied)).toBeUndefined()
  expect([calls.filter((call) => call === 'sink out').length, frames.length]).toEqual([2, 1])
})

test('a step that throws is tried as often as is allowed, then the record is a dead letter again, with its own mark', async () => {
  let tries = 0
  const { redrive, memory, frames } = feeding(() => {
    tries++
    throw new Error('boom')
  })
  expect(await redrive([v('a', 1), 'no json'])).toBeUndefined()
  // Each of the three tries runs twice, to see whether the step is pure.
  expect([tries, frames]).toEqual([2 * 3, []])
  expect(memory.deadLettered).toMatchObject([
    { id: 'values/shard-0/77/0', reason: { code: 'step-failed', attempts: 3 }, ownMarkMs: startMs - 5 },
    { id: 'values/shard-0/77/1', reason: { code: 'not-json', phase: 'decode', attempts: 1 }, ownMarkMs: startMs - 5 },
  ])
  for (const letter of memory.deadLettered) expect(letter).not.toHaveProperty('applied')
})

test('a RetryableError returns its record and those behind it; those before are done', async () => {
  const later = new RetryableError('later')
  const { redrive, memory, frames, out } = feeding((value) => {
    if (value.n === 2) throw later
    return [value]
  })
  expect(await redrive([v('a', 1), v('a', 2), v('a', 3)])).toEqual([1, later])
  expect([memory.received(out), frames.length, memory.deadLettered]).toEqual([[v('a', 1)], 1, []])
})

test('a publish that does not come back before the deadline is a failure, and nothing is sent behind it', async () => {
  const begun = Promise.withResolvers<void>()
  const { redrive, calls, memory } = feeding(undefined, () => {
    begun.resolve()
    return new Promise(() => undefined)
  })
  const answer = redrive([v('a', 1)], notApplied, 2_000)
  await begun.promise
  // The timer of the deadline is set by then; each half of the margin has one.
  const clock = memory.clock as VirtualClock
  clock.advance(1_500)
  clock.advance(500)
  expect(await answer).toEqual([0, expect.objectContaining({ code: 'deadline' })])
  expect(calls).toEqual([])
})

test('lookups before the keyed stage are loaded for a redriven record', async () => {
  const app = new Topology('feeding-app')
  const asked: string[][] = []
  const rates = lookup('rates', {
    ...{ ttl: minutes(1), answers: 'may-change' },
    load: async (keys: readonly string[]) => {
      asked.push([...keys])
      return new Map(keys.map((key) => [key, 10]))
    },
  })
  app
    .source('values', schema)
    .enrich({ from: rates, key: ({ key }) => key, join: (value, rate) => ({ ...value, n: value.n * (rate ?? 0) }) })
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .reduce('last', (_, value) => value, { emit: 'on-update' })
    .to(app.sink<Value>('lasts'))
  const { redrive, frames } = worldOf(app, async () => undefined)
  expect(await redrive([v('a', 1), v('b', 2), v('a', 3)])).toBeUndefined()
  expect(asked).toEqual([['a', 'b']])
  const values = frames.flatMap(({ records }) =>
    records.map(({ value }) => JSON.parse(Buffer.from(value).toString()).n),
  )
  expect(values).toEqual([10, 20, 30])
})

test('a dead letter says what its record had for an own mark, wherever it failed', async () => {
  const { runner, memory, out } = feeding((value) => {
    if (value.key === 'step') throw new TerminalError('broken')
    return [value]
  })
  memory.refuse(out, ({ key }) => (key === 'sink' ? { status: 'rejected', error: new Error('no') } : undefined))
  const values = ['no json', v('a', 20), v('step', 50), v('sink', 30), v('b', 90), 'no json']
  const batch = [{ partition, records: values.map(recordOf) }]
  const answer = await runner.run(batch, { deadlineMs: memory.clock.nowMs() + 60_000 })
  expect(answer.failures).toEqual([])
  const marks = memory.deadLettered.map(({ subPosition, reason, ownMarkMs }) => [subPosition, reason.phase, ownMarkMs])
  expect(marks.toSorted(([a], [b]) => Number(a) - Number(b))).toEqual([
    [0, 'decode', null],
    [2, 'step', startMs + 20 - 5],
    [3, 'sink', startMs + 50 - 5],
    [5, 'decode', startMs + 90 - 5],
  ])
})
