/** The rules of outbox.ts. */
import type { RecordInfo } from '../../lib/core/record.ts'
import { SourceRecord } from '../../lib/core/record.ts'
import { type DeadLetter, deadLetterOf, type RefusedOutput } from '../../lib/runtime/dead-letter.ts'
import type { Lane, Stop } from '../../lib/runtime/lane.ts'
import { Outbox } from '../../lib/runtime/outbox.ts'
import type { Outcome, Sink } from '../../lib/runtime/sink.ts'
import type { BatchTables } from '../../lib/runtime/tables.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'

const recordAt = (ordinal: number): SourceRecord =>
  new SourceRecord({ source: 's', partition: 'p', position: String(ordinal), arrivalTimeMs: 0, key: 'k', payload: '' })

const where = { topology: 'app', stage: 's', failedAtMs: 0 }

const textOf = (output: RefusedOutput | undefined): string =>
  output === undefined ? 'letter' : JSON.parse(Buffer.from(output.value ?? '', 'base64').toString())

/** Sinks of texts; `answer` says what becomes of each, by sink and text. */
function outboxOf(answer: (sink: string, text: string) => Outcome['status'] = () => 'delivered') {
  const taken: string[] = []
  const indices: number[] = []
  const sinkOf = (name: string): Sink => ({
    prepare: ({ value }) => value,
    deliver: async (items) =>
      items.map((item) => {
        const status = answer(name, String(item))
        if (status !== 'delivered') return { status, error: new Error(`${name} said ${status}`) }
        taken.push(`${name}: ${item}`)
        return { status }
      }),
  })
  const deadLetters: Sink = {
    prepare: ({ value, index }) => {
      const { id, output } = value as DeadLetter
      indices.push(index)
      return `${textOf(output)} of ${id}`
    },
    deliver: sinkOf('dead').deliver,
  }
  const outbox = new Outbox({
    ports: { ...memoryPorts(), deadLetters: deadLetters as Sink<DeadLetter> },
    sinks: ['one', 'two'].map((name) => ({ name, sink: sinkOf(name), key: undefined })),
    feeds: [],
    tables: undefined as unknown as BatchTables,
    maxOutputsPerRecord: 10,
    deadLetterOf: (ordinal, failure) => ({
      entry: deadLetterOf(recordAt(ordinal), failure, where, { id: String(ordinal) }),
      record: recordAt(ordinal) as RecordInfo,
    }),
  })
  const put = (ordinal: number, sink: 0 | 1, text: string) => {
    const lane = outbox.target.lanes[sink] as Lane
    const index = lane.items.length - lane.mark
    lane.put({ value: text, key: undefined, record: recordAt(ordinal), index }, ordinal, outbox.target.place)
    outbox.target.pending++
  }
  const step = (ordinal: number, outputs: readonly (readonly [0 | 1, string])[]) => {
    const place = { number: ordinal, ownMarkMs: 0, origin: recordAt(ordinal), redrive: undefined, outputs: 0 }
    outbox.begin(ordinal, place)
    for (const [sink, text] of outputs) put(ordinal, sink, text)
  }
  const { signal } = new AbortController()
  const stop: Stop = { signal, atMs: 1e15, closing: signal, late: new Promise(() => undefined) }
  const deliver = () => outbox.deliver(stop, { markMs: 0, completeThrough: 9, firstOrdinal: 0 })
  return { outbox, taken, indices, step, deliver }
}

test('a step that is taken back leaves nothing of its own, and all of the others (1)', async () => {
  const { outbox, taken, step, deliver } = outboxOf()
  step(0, [
    [0, 'a'],
    [1, 'b'],
  ])
  outbox.settle('k')
  step(1, [
    [0, 'c'],
    [1, 'd'],
  ])
  outbox.rewind()
  expect(outbox.target.pending).toBe(2)
  expect(await deliver()).toBeUndefined()
  expect(taken).toEqual(['one: a', 'two: b'])
  expect(outbox.target.pending).toBe(0)
})

test('the first record of which something was not taken is told (2)', async () => {
  const { step, deliver } = outboxOf((_, text) => (text === 'c' || text === 'b' ? 'retry' : 'delivered'))
  step(0, [[0, 'a']])
  step(1, [[1, 'b']])
  step(2, [[0, 'c']])
  expect(await deliver()).toMatchObject({ ordinal: 1, error: { message: 'two said retry' } })
})

test('a sink that throws, or leaves out an answer, has taken nothing (2)', async () => {
  const { step, deliver, outbox } = outboxOf()
  step(3, [[0, 'a']])
  ;(outbox.target.lanes[0] as { sink: Sink }).sink.deliver = () => Promise.reject(new Error('no connection'))
  expect(await deliver()).toMatchObject({ ordinal: 3, error: { message: 'no connection' } })
  step(4, [
    [1, 'b'],
    [1, 'c'],
  ])
  ;(outbox.target.lanes[1] as { sink: Sink }).sink.deliver = async () => [{ status: 'delivered' }]
  expect(await deliver()).toMatchObject({ ordinal: 4 })
})

test('each output that is refused for good has a dead letter, alone under the name of its record, else under names of their own (3)', async () => {
  const rejecting = (sink: string) => (sink === 'dead' ? 'delivered' : 'rejected')
  const several = outboxOf(rejecting)
  several.step(5, [
    [0, 'a'],
    [0, 'b'],
    [1, 'c'],
  ])
  several.step(5, [[1, 'd']])
  expect(await several.deliver()).toBeUndefined()
  expect(several.taken).toEqual(['dead: a of 5/one/0', 'dead: b of 5/one/1', 'dead: c of 5/two/0', 'dead: d of 5'])
  expect(new Set(several.indices)).toEqual(new Set([1, 3, 2, 0]))
})

test('a step of which something is to come again has its dead letters when it comes: how many they are is known then (3)', async () => {
  const down = { on: true }
  const { taken, step, deliver } = outboxOf((sink, text) => {
    if (sink === 'dead') return 'delivered'
    if (text === 'a') return down.on ? 'retry' : 'rejected'
    return text === 'b' ? 'rejected' : 'delivered'
  })
  const outputs = [
    [0, 'a'],
    [1, 'b'],
    [1, 'c'],
  ] as const
  step(0, outputs)
  expect(await deliver()).toMatchObject({ ordinal: 0 })
  expect(taken).toEqual(['two: c'])
  down.on = false
  step(0, outputs)
  expect(await deliver()).toBeUndefined()
  expect(taken).toEqual(['two: c', 'two: c', 'dead: a of 0/one/0', 'dead: b of 0/two/0'])
})

test('that dead letter is sent although something behind it is to come again (3)', async () => {
  const { taken, step, deliver } = outboxOf((sink, text) => {
    if (sink === 'dead') return 'delivered'
    return text === 'a' ? 'rejected' : 'retry'
  })
  step(0, [[0, 'a']])
  step(1, [[0, 'b']])
  expect(await deliver()).toMatchObject({ ordinal: 1 })
  expect(taken).toEqual(['dead: a of 0'])
})

test('a dead letter that is not taken brings its record again, whatever the answer (3)', async () => {
  for (const status of ['retry', 'rejected'] as const) {
    const { step, deliver, outbox } = outboxOf((sink) => (sink === 'dead' ? status : 'delivered'))
    step(0, [[0, 'a']])
    outbox.giveUp(1, { error: new Error('boom'), phase: 'step', attempts: 3 })
    expect(await deliver()).toMatchObject({ ordinal: 1 })
  }
})
