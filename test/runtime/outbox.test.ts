/** The rules of outbox.ts. */
import { RetryableError } from '../../lib/core/errors.ts'
import type { RecordInfo } from '../../lib/core/record.ts'
import { SourceRecord } from '../../lib/core/record.ts'
import { decodeValue } from '../../lib/core/tagged-json.ts'
import { type DeadLetter, deadLetterOf, type RefusedOutput } from '../../lib/runtime/dead-letter.ts'
import type { Lane, Stop } from '../../lib/runtime/lane.ts'
import { errorFields, Outbox } from '../../lib/runtime/outbox.ts'
import type { Outcome, Sink } from '../../lib/runtime/sink.ts'
import type { BatchTables } from '../../lib/runtime/tables.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'

const recordAt = (ordinal: number): SourceRecord =>
  new SourceRecord({
    ...{ source: 's', partition: 'p', position: String(ordinal), arrivalTimeMs: 0, key: 'k' },
    payload: Buffer.from(`record ${ordinal}`),
    headers: [{ name: 'h', value: Buffer.from('v') }],
  })

const where = { topology: 'app', stage: 's', failedAtMs: 0 }

const textOf = (output: RefusedOutput | undefined): string => {
  if (output === undefined) return 'letter'
  return output.value === null ? 'no value' : Buffer.from(output.value, 'base64').toString().replaceAll('"', '')
}

/** Sinks of texts; `answer` says what becomes of each, by sink and text. */
function outboxOf(answer: (sink: string, text: string) => Outcome['status'] = () => 'delivered') {
  const taken: string[] = []
  const indices: number[] = []
  const letters: DeadLetter[] = []
  /** How many dead letters went together. */
  const parts: number[] = []
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
      const letter = value as DeadLetter
      if (letter.output && textOf(letter.output) === 'unwritable') throw new Error('it cannot be written')
      letters.push(letter)
      indices.push(index)
      return `${textOf(letter.output)} of ${letter.id}`
    },
    deliver(items, call) {
      parts.push(items.length)
      return sinkOf('dead').deliver(items, call)
    },
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
  const put = (ordinal: number, sink: 0 | 1, value: unknown) => {
    const lane = outbox.target.lanes[sink] as Lane
    const index = lane.items.length - lane.mark
    lane.put({ value, key: undefined, record: recordAt(ordinal), index }, ordinal, outbox.target.place)
    outbox.target.pending++
  }
  const begin = (ordinal: number, keyHash?: string) => {
    const place = { number: ordinal, keyHash, ownMarkMs: 0, origin: recordAt(ordinal), redrive: undefined, outputs: 0 }
    outbox.begin(ordinal, place)
  }
  const step = (ordinal: number, outputs: readonly (readonly [0 | 1, string])[], keyHash?: string) => {
    begin(ordinal, keyHash)
    for (const [sink, text] of outputs) put(ordinal, sink, text)
  }
  const { signal } = new AbortController()
  const isOver = () => signal.aborted
  const stop: Stop = { signal, atMs: 1e15, closing: signal, late: new Promise(() => undefined), isOver }
  const deliver = () => outbox.deliver(stop, { markMs: 0, completeThrough: 9, firstOrdinal: 0 })
  return { outbox, taken, indices, letters, parts, begin, put, step, deliver }
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

const rejecting = (sink: string) => (sink === 'dead' ? 'delivered' : 'rejected')

test('each output that is refused for good has a dead letter under a name of its own, and the first of its step holds the record (3)', async () => {
  const { letters, indices, step, deliver } = outboxOf(rejecting)
  step(5, [
    [0, 'a'],
    [0, 'b'],
    [1, 'c'],
  ])
  step(5, [[1, 'd']])
  expect(await deliver()).toBeUndefined()
  const payload = 'cmVjb3JkIDU='
  expect(letters.map(({ formatVersion, id, payload, recordIn }) => [formatVersion, id, payload, recordIn])).toEqual([
    [1, '5/one/0', payload, undefined],
    [2, '5/one/1', null, '5/one/0'],
    [2, '5/two/0', null, '5/one/0'],
    [1, '5/two/0', payload, undefined],
  ])
  expect(letters.map(({ key, headers }) => [key, headers.length])).toEqual([
    ['aw==', 1],
    [null, 0],
    [null, 0],
    ['aw==', 1],
  ])
  expect(letters.map(({ output }) => textOf(output))).toEqual(['a', 'b', 'c', 'd'])
  expect(indices).toEqual([1, 3, 2, 2])
})

test('however many outputs of a record are refused, its bytes are in one dead letter, and those are sent in parts (3)', async () => {
  const { letters, parts, step, deliver } = outboxOf(rejecting)
  step(
    0,
    Array.from({ length: 2_500 }, (_, i) => [0, String(i)] as const),
  )
  expect(await deliver()).toBeUndefined()
  expect(parts).toEqual([1_000, 1_000, 500])
  expect(letters.filter(({ payload }) => payload !== null)).toHaveLength(1)
})

test('large dead letters are sent in smaller parts (3)', async () => {
  const { parts, step, deliver } = outboxOf(rejecting)
  step(
    0,
    Array.from({ length: 5 }, () => [0, 'x'.repeat(2_000_000)] as const),
  )
  expect(await deliver()).toBeUndefined()
  expect(parts).toEqual([2, 2, 1])
})

test('dead letters come in the order of records, steps, sinks and places, whichever sink answers first', async () => {
  const orders = await Promise.all(
    [0, 1].map(async (slow) => {
      const { outbox, letters, step, deliver } = outboxOf(rejecting)
      step(1, [[1, 'last']], undefined)
      step(0, [[1, 'own of 0']])
      step(1, [[1, 'of b']], 'b')
      step(1, [[0, 'of a']], 'a')
      step(
        0,
        [
          [1, 'three'],
          [0, 'one'],
          [0, 'two'],
        ],
        'c',
      )
      const { sink } = outbox.target.lanes[slow] as Lane
      const { deliver: quick } = sink
      ;(sink as { deliver: Sink['deliver'] }).deliver = async (items, call) => {
        for (let turn = 0; turn < 10; turn++) await Promise.resolve()
        return quick(items, call)
      }
      await deliver()
      return letters.map(({ output }) => textOf(output))
    }),
  )
  const order = ['one', 'two', 'three', 'own of 0', 'of a', 'of b', 'last']
  expect(orders).toEqual([order, order])
})

test('a step of which something is to come again has its dead letters when it comes: which is the first is known then (3)', async () => {
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

test('a dead letter that cannot even be made brings its record again, and the others are sent (3)', async () => {
  const { taken, step, deliver, outbox } = outboxOf((sink, text) => (text === 'b' ? 'delivered' : rejecting(sink)))
  for (const [ordinal, text] of [...'abc'].entries()) step(ordinal, [[0, text === 'a' ? 'unwritable' : text]])
  expect(await deliver()).toMatchObject({ ordinal: 0, error: { message: 'it cannot be written' } })
  expect(taken).toEqual(['one: b', 'dead: c of 2/one/0'])
  expect(outbox.target.pending).toBe(0)
})

test('a dead letter has the value as it was put out, and none where JSON cannot hold it', async () => {
  const { letters, put, begin, deliver } = outboxOf(rejecting)
  const row = { n: 1, tags: ['a'], at: new Uint8Array([1]) }
  const timed = { at: new Date(0) }
  begin(0)
  for (const value of [row, timed, new Map(), undefined, Number.NaN]) put(0, 0, value)
  Object.assign(row, { n: 2 })
  row.tags.push('b')
  row.at[0] = 2
  timed.at.setTime(1)
  await deliver()
  const values = letters.map(
    ({ output }) => output?.value && decodeValue(Buffer.from(output.value, 'base64').toString()),
  )
  expect(values).toEqual([
    { n: 1, tags: ['a'], at: new Uint8Array([1]) },
    { at: '1970-01-01T00:00:00.000Z' },
    ...[null, null, null],
  ])
})

test('a refused output of an operator that emits per batch is the last one, with its own value', async () => {
  const { letters, outbox, step, put, deliver } = outboxOf(rejecting)
  const emit = (ordinal: number, text: string) => {
    step(ordinal, [])
    const { target } = outbox
    target.emissions = new Map([['sum', 1]])
    target.lanes[0]?.latest.note(target.lanes[0].items.length, 'sum', 1)
    put(ordinal, 0, text)
    outbox.settle('k')
  }
  emit(0, 'replaced')
  emit(1, 'last')
  await deliver()
  expect(letters.map(({ id, output }) => [id, textOf(output)])).toEqual([['1/one/0', 'last']])
})

test('that dead letter is sent although something behind it is to come again (3)', async () => {
  const { taken, step, deliver } = outboxOf((sink, text) => {
    if (sink === 'dead') return 'delivered'
    return text === 'a' ? 'rejected' : 'retry'
  })
  step(0, [[0, 'a']])
  step(1, [[0, 'b']])
  expect(await deliver()).toMatchObject({ ordinal: 1 })
  expect(taken).toEqual(['dead: a of 0/one/0'])
})

test('a dead letter that is not taken brings its record again, whatever the answer (3)', async () => {
  for (const status of ['retry', 'rejected'] as const) {
    const { step, deliver, outbox } = outboxOf((sink) => (sink === 'dead' ? status : 'delivered'))
    step(0, [[0, 'a']])
    outbox.giveUp(1, { error: new Error('boom'), phase: 'step', attempts: 3 })
    expect(await deliver()).toMatchObject({ ordinal: 1 })
  }
})

test('a log line tells the message of an error that somebody must act on, and not that of others', () => {
  const told = new RetryableError('stage "by-key" reads a topic now', { code: 'log-changed' })
  expect(errorFields(told)).toMatchObject({ error: 'RetryableError', code: 'log-changed', message: told.message })
  const quoting = errorFields(new RetryableError('order 4711 is odd', { code: 'odd' }))
  expect(quoting).toMatchObject({ error: 'RetryableError', code: 'odd' })
  expect(JSON.stringify(quoting)).not.toContain('4711')
})
