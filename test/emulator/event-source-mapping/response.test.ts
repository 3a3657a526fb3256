import type { SourceRecord } from '../../../lib/emulator/event-source-mapping/index.ts'
import { readResponse } from '../../../lib/emulator/event-source-mapping/response.ts'
import { MappingWorld } from './mapping-world.ts'
import { answered, failed, reports } from './memory-ports.ts'

const record = (sequenceNumber: string): SourceRecord => ({
  sequenceNumber,
  partitionKey: 'k',
  data: new Uint8Array(),
  arrivalMs: 0,
})
const batch = [record('1'), record('2'), record('3')]
const rules = { reportsItemFailures: true, unrecognisedAnswer: 'success' } as const
const kindOf = (payload: unknown) => readResponse(payload, batch, rules).kind
const items = (...batchItemFailures: unknown[]) => ({ batchItemFailures })

describe('the table of answers (1.6)', () => {
  test.each([
    ['[R] ""', ''],
    ['[R] []', []],
    ['[R] null', null],
    ['[R] undefined', undefined],
    ['[R] {}', {}],
    ['[R] batchItemFailures: []', { batchItemFailures: [] }],
    ['[R] batchItemFailures: null', { batchItemFailures: null }],
  ])('%s is full success', (_, payload) => {
    expect(readResponse(payload, batch, rules)).toEqual({ kind: 'success' })
  })

  test.each([
    ['a wrong top-level key', { failures: [{ itemIdentifier: '1' }] }],
    ['a wrong case', { BatchItemFailures: [{ itemIdentifier: '1' }] }],
    ['a string', 'done'],
    ['a number', 5],
    ['a list with something in it', ['1']],
  ])('[2nd] %s is a success that names what was strange, or a failure where the option says so', (_, payload) => {
    expect(readResponse(payload, batch, rules)).toEqual({ kind: 'success', unrecognised: expect.any(String) })
    expect(readResponse(payload, batch, { ...rules, unrecognisedAnswer: 'failure' }).kind).toBe('failure')
  })

  test.each([
    ['[R] itemIdentifier ""', items({ itemIdentifier: '' })],
    ['[R] itemIdentifier null', items({ itemIdentifier: null })],
    ['[R] {foo: 123}', items({ foo: 123 })],
    ['[R] {foo: null}', items({ foo: null })],
    ['[R] an identifier that is not in the batch', items({ itemIdentifier: '9' })],
    ['[R] a number', items({ itemIdentifier: 123 })],
    ['a number that would match as text', items({ itemIdentifier: 2 })],
    ['an item that is no object', items('2')],
    ['a null item', items(null)],
    ['one valid item beside an invalid one', items({ itemIdentifier: '3' }, { itemIdentifier: '' })],
    ['batchItemFailures that is no list', { batchItemFailures: '2' }],
  ])('%s is full failure', (_, payload) => {
    expect(kindOf(payload)).toBe('failure')
  })

  test('[D] of several valid identifiers the lowest is the checkpoint', () => {
    expect(readResponse(items({ itemIdentifier: '3' }, { itemIdentifier: '2' }), batch, rules)).toMatchObject({
      kind: 'partial',
      left: batch.map((_, i) => i).slice(1),
    })
  })

  test('sequence numbers are compared as integers, not as text', () => {
    const long = [record('9900000000002513012315'), record('10000000000002513012315')]
    const answer = items({ itemIdentifier: '10000000000002513012315' }, { itemIdentifier: '9900000000002513012315' })
    expect(readResponse(answer, long, rules)).toMatchObject({ kind: 'partial', left: long.map((_, i) => i) })
  })

  test('[D] without ReportBatchItemFailures every answer is success', () => {
    expect(readResponse(items({ itemIdentifier: '1' }), batch, { ...rules, reportsItemFailures: false })).toEqual({
      kind: 'success',
    })
  })
})

describe('answers through the mapping', () => {
  const answers: readonly [string, unknown][] = [
    ['""', items({ itemIdentifier: '' })],
    ['null', items({ itemIdentifier: null })],
    ['{foo: 123}', items({ foo: 123 })],
    ['{foo: null}', items({ foo: null })],
    ['not in the batch', items({ itemIdentifier: '99' })],
    ['123', items({ itemIdentifier: 123 })],
  ]
  test.each(answers)(
    '[R] identifier %s: the whole batch comes again and ends in the destination',
    async (_, payload) => {
      const world = new MappingWorld({ maximumRetryAttempts: 1 })
      world.stream.put('shardId-000000000000', 1)
      world.stream.put('shardId-000000000000', 2)
      world.invoker.answer = () => answered(payload)
      await world.run(10_000)
      expect(world.invoker.batches).toEqual(['1 2', '1 2'])
      expect(world.destination.envelopes[0]?.KinesisBatchInfo).toMatchObject({ startSequenceNumber: '1', batchSize: 2 })
      await world.stop()
    },
  )

  test('[R] a handler that throws fails the whole batch', async () => {
    const world = new MappingWorld()
    world.stream.put('shardId-000000000000', 1)
    world.stream.put('shardId-000000000000', 2)
    world.invoker.answer = (_, index) => (index === 0 ? failed() : answered(null))
    await world.run(10_000)
    expect(world.invoker.batches).toEqual(['1 2', '1 2'])
    await world.stop()
  })

  test('an answer of unknown shape advances, and the status says that records may be lost', async () => {
    const world = new MappingWorld()
    world.stream.put('shardId-000000000000', 1)
    world.invoker.answer = () => answered({ batchItemFailure: [{ itemIdentifier: '1' }] })
    await world.run(10_000)
    expect(world.checkpoints.at('shardId-000000000000')).toBe('1')
    expect(world.mapping.status().counters).toMatchObject({
      unrecognisedAnswers: 1,
      lastUnrecognisedAnswer: expect.stringContaining('batchItemFailure'),
    })
    await world.stop()
  })

  test('everything from the lowest reported record on is retried, later successes too', async () => {
    const world = new MappingWorld()
    for (const sequence of [1, 2, 3, 4]) world.stream.put('shardId-000000000000', sequence)
    world.invoker.answer = (_, index) => (index === 0 ? reports('3', '2') : answered({ batchItemFailures: [] }))
    await world.run(10_000)
    expect(world.invoker.batches).toEqual(['1 2 3 4', '2 3 4'])
    await world.stop()
  })
})
