import type { DynamoDBStreamEvent, KinesisStreamEvent, KinesisStreamRecord } from 'aws-lambda'
import fc from 'fast-check'
import {
  type OrderedBatchOptions,
  type OrderedStep,
  processInOrder,
  RetryableError,
  TerminalError,
} from '../../../lib/index.ts'
import { kinesisEvent, lambdaContext, VirtualClock } from '../../../lib/testing/index.ts'

type Options = Partial<OrderedBatchOptions<KinesisStreamRecord>>
type Step = (name: string, at: OrderedStep) => Promise<void> | void

/** A batch of records, each named by its key and a number: `a1`, `b1`, `a2`. */
const eventOf = (names: readonly string[]): KinesisStreamEvent =>
  kinesisEvent(names, { partitionKey: (index) => names[index]?.charAt(0) ?? '' })

const nameOf = ({ kinesis }: KinesisStreamRecord): string => Buffer.from(kinesis.data, 'base64').toString()

/** Runs a batch, and answers with the name of the first record that is not done. */
async function run(names: readonly string[], step: Step, options: Options & { remainingMs?: number } = {}) {
  const event = eventOf(names)
  const deadLetters: string[] = []
  const lines: unknown[] = []
  const { remainingMs, ...others } = options
  const answer = await processInOrder(event, (record, at) => step(nameOf(record), at), {
    context: lambdaContext(remainingMs === undefined ? {} : { remainingMs }),
    deadLetter: (record) => void deadLetters.push(nameOf(record)),
    logger: { warn: (message, fields) => void lines.push([message, fields]) },
    ...others,
  })
  const failed = answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier)
  const first = event.Records.find(({ kinesis }) => kinesis.sequenceNumber === failed[0])
  return { answer, failed: first && nameOf(first), deadLetters, lines }
}

/** A step that lasts until the test ends it. */
class HeldSteps {
  readonly begun: string[] = []
  readonly ended: string[] = []
  readonly #ends = new Map<string, (error?: Error) => void>()

  readonly step: Step = (name) => {
    this.begun.push(name)
    return new Promise<void>((resolve, reject) => {
      this.#ends.set(name, (error) => {
        this.ended.push(name)
        if (error) reject(error)
        else resolve()
      })
    })
  }

  /** Ends a step, and waits until what may follow has begun. */
  async end(name: string, error?: Error): Promise<void> {
    this.#ends.get(name)?.(error)
    await settled()
  }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
const failing =
  (name: string, error: unknown, done: string[] = []): Step =>
  (own) => {
    if (own === name) throw error
    done.push(own)
  }

describe('a batch', () => {
  test('runs in order, and the answer is the bare empty list', async () => {
    const done: string[] = []
    const { answer } = await run(['a1', 'b1', 'a2'], (name) => void done.push(name))
    expect(done).toEqual(['a1', 'b1', 'a2'])
    expect(answer).toEqual({ batchItemFailures: [] })
  })

  test('tells the step its key and its position', async () => {
    const seen: unknown[] = []
    await run(['a1'], (_, { key, position }) => void seen.push({ key, position }))
    expect(seen).toEqual([{ key: 'a', position: eventOf(['a1']).Records[0]?.kinesis.sequenceNumber }])
  })

  test('of a DynamoDB stream keeps the order of each item', async () => {
    const change = (SequenceNumber: string, Keys: object) => ({
      eventID: SequenceNumber,
      dynamodb: { SequenceNumber, Keys },
    })
    const event = {
      Records: [
        change('1', { hotel: { S: 'h1' }, day: { S: 'd' } }),
        change('2', { day: { S: 'd' }, hotel: { S: 'h1' } }),
        change('3', { hotel: { S: 'h2' }, day: { S: 'd' } }),
      ],
    } as DynamoDBStreamEvent
    const keys: string[] = []
    const step = (_: unknown, { key, position }: OrderedStep) => {
      keys.push(key)
      if (position === '3') throw new Error('no')
    }
    const deadLetter = () => undefined
    const answer = await processInOrder(event, step, {
      context: lambdaContext(),
      deadLetter,
      logger: { warn: () => undefined },
    })
    expect(keys[0]).toBe(keys[1])
    expect(keys[0]).not.toBe(keys[2])
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: '3' }] })
  })

  test('that did not come from a stream fails as a whole', async () => {
    const options = { context: lambdaContext(), deadLetter: () => undefined, logger: { warn: () => undefined } }
    const call = (event: object) => processInOrder(event as KinesisStreamEvent, () => undefined, options)
    await expect(call({})).rejects.toMatchObject({ name: 'EventError', code: 'malformed-event' })
    await expect(call({ Records: [{ body: 'sqs' }] })).rejects.toThrow('record 0 of the event has no sequence number')
  })

  test('cannot run with no concurrency', async () => {
    await expect(run(['a1'], () => undefined, { concurrency: 0 })).rejects.toThrow('concurrency is 0')
  })
})

describe('after a failure', () => {
  // C12 of the cases from the field: whatever was thrown, the record is reported.
  test.each([
    ['an error', new Error('no')],
    ['a RetryableError', new RetryableError('later')],
    ['undefined', undefined],
    ['null', null],
  ])('of a step that threw %s nothing behind is run, and the answer names it', async (_, error) => {
    const done: string[] = []
    const { failed, deadLetters } = await run(['a1', 'b1', 'a2', 'c1'], failing('b1', error, done))
    expect({ failed, done, deadLetters }).toEqual({ failed: 'b1', done: ['a1'], deadLetters: [] })
  })

  test('the log says which record it was, and nothing of what was in it', async () => {
    const { lines } = await run(['a1'], failing('a1', new Error('secret')))
    const fields = { eventID: eventOf(['a1']).Records[0]?.eventID, error: 'Error', code: undefined }
    expect(lines).toEqual([['the batch goes back to its stream from here', fields]])
  })

  test('records before it are still run, and those in flight awaited', async () => {
    const steps = new HeldSteps()
    const answered = run(['a1', 'b1', 'a2', 'c1'], steps.step, { concurrency: 2 })
    await settled()
    expect(steps.begun).toEqual(['a1', 'b1'])
    await steps.end('b1', new Error('no'))
    expect(steps.begun).toEqual(['a1', 'b1'])
    await steps.end('a1')
    expect((await answered).failed).toBe('b1')
  })

  test('one that comes earlier in the log takes its place', async () => {
    const steps = new HeldSteps()
    const answered = run(['a1', 'b1'], steps.step, { concurrency: 2 })
    await settled()
    await steps.end('b1', new Error('no'))
    await steps.end('a1', new Error('no'))
    expect((await answered).failed).toBe('a1')
  })
})

describe('with concurrency', () => {
  test('records of one key wait for each other, and the earliest that may run is run', async () => {
    const steps = new HeldSteps()
    const answered = run(['a1', 'a2', 'b1', 'c1'], steps.step, { concurrency: 2 })
    await settled()
    expect(steps.begun).toEqual(['a1', 'b1'])
    await steps.end('a1')
    expect(steps.begun).toEqual(['a1', 'b1', 'a2'])
    await steps.end('b1')
    await steps.end('a2')
    await steps.end('c1')
    expect((await answered).failed).toBeUndefined()
  })

  test('the key may be what the user says', async () => {
    const steps = new HeldSteps()
    const answered = run(['a1', 'b1'], steps.step, { concurrency: 2, keyOf: () => 'all' })
    await settled()
    expect(steps.begun).toEqual(['a1'])
    await steps.end('a1')
    await steps.end('b1')
    expect((await answered).failed).toBeUndefined()
  })
})

describe('a record that can never succeed', () => {
  test('is a dead letter, and the batch goes on', async () => {
    const done: string[] = []
    const { failed, deadLetters, lines } = await run(
      ['a1', 'a2', 'a3'],
      failing('a2', new TerminalError('no', { code: 'bad' }), done),
    )
    expect({ failed, deadLetters, done }).toEqual({ failed: undefined, deadLetters: ['a2'], done: ['a1', 'a3'] })
    expect(lines).toMatchObject([['a record became a dead letter', { error: 'TerminalError', code: 'bad' }]])
  })

  test('stays in the stream where its dead letter cannot be written', async () => {
    const deadLetter = async () => {
      throw new Error('the queue is gone')
    }
    const { failed } = await run(['a1', 'a2'], failing('a1', new TerminalError('no')), { deadLetter })
    expect(failed).toBe('a1')
  })
})

describe('near the deadline', () => {
  test('no record is begun any more, and what was not tried comes again', async () => {
    const clock = new VirtualClock()
    const done: string[] = []
    const step = async (name: string) => {
      done.push(name)
      clock.advance(4_000)
    }
    const { failed } = await run(['a1', 'a2', 'a3', 'a4'], step, { clock, remainingMs: 9_000 })
    expect({ failed, done }).toEqual({ failed: 'a3', done: ['a1', 'a2'] })
  })

  test('the signal aborts, and a step that ends then is done', async () => {
    const clock = new VirtualClock()
    const answered = run(
      ['a1', 'a2'],
      (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
      { clock, remainingMs: 10_000 },
    )
    clock.advance(9_000)
    expect((await answered).failed).toBe('a2')
  })

  test('a step that does not end is not waited for beyond half of the margin', async () => {
    const clock = new VirtualClock()
    const steps = new HeldSteps()
    const answered = run(['a1', 'b1'], steps.step, { clock, remainingMs: 10_000, concurrency: 2 })
    await settled()
    await steps.end('a1')
    clock.advance(9_000)
    clock.advance(500)
    expect((await answered).failed).toBe('b1')
    await steps.end('b1')
  })
})

test('whatever fails, whatever is slow: all before the answer is done once and in order by key', async () => {
  const fates = fc.array(
    fc.record({
      key: fc.constantFrom('a', 'b', 'c'),
      fate: fc.constantFrom('done', 'done', 'done', 'terminal', 'fails'),
      turns: fc.nat(5),
    }),
    { maxLength: 12 },
  )
  await fc.assert(
    fc.asyncProperty(fates, fc.integer({ min: 1, max: 4 }), async (records, concurrency) => {
      const names = records.map(({ key }, index) => `${key}${index}`)
      const ended: string[] = []
      const running = new Set<string>()
      const { answer, failed, deadLetters } = await run(
        names,
        async (name, { key }) => {
          expect(running).not.toContain(key)
          running.add(key)
          const { fate, turns } = records[Number(name.slice(1))] as (typeof records)[number]
          for (let turn = 0; turn < turns; turn++) await Promise.resolve()
          running.delete(key)
          ended.push(name)
          if (fate === 'terminal') throw new TerminalError('no')
          if (fate === 'fails') throw new Error('no')
        },
        { concurrency },
      )
      const firstFailing = names.find((_, index) => records[index]?.fate === 'fails')
      expect(failed).toBe(firstFailing)
      expect(answer.batchItemFailures).toHaveLength(firstFailing === undefined ? 0 : 1)
      const before = names.slice(0, firstFailing === undefined ? names.length : names.indexOf(firstFailing))
      expect(ended).toEqual(expect.arrayContaining(before))
      expect(new Set(ended).size).toBe(ended.length)
      for (const key of ['a', 'b', 'c']) {
        const own = ended.filter((name) => name.startsWith(key))
        expect(own).toEqual(names.filter((name) => name.startsWith(key)).slice(0, own.length))
      }
      const terminal = names.filter((name, index) => records[index]?.fate === 'terminal' && ended.includes(name))
      expect([...deadLetters].sort()).toEqual([...terminal].sort())
      // One at a time nothing behind the failure is run at all.
      if (concurrency === 1) expect(ended).toHaveLength(before.length + (firstFailing === undefined ? 0 : 1))
    }),
  )
})
