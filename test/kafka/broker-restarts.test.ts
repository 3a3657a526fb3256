/** What a broker that goes away does to a producer and to a reader. These tests stop and start the broker that all others use. */
import { kafkaSink } from '../../lib/aws/kafka/kafka-sink.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { outputs, testPorts } from '../aws/sink-worlds.ts'
import {
  broker,
  never,
  newTopic,
  patiently,
  plain,
  producer,
  reader,
  recordsIn,
  text,
  withOwnBroker,
} from './broker.ts'

jest.setTimeout(240_000)

const message = (value: string) => ({ partition: 0, key: undefined, value: Buffer.from(value) })
const values = async (topic: string) => (await recordsIn(topic)).map(({ value }) => text(value))
const numbers = (count: number) => Array.from({ length: count }, (_, n) => String(n))

withOwnBroker('a broker that restarts', () => {
  test.each(['term', 'kill'] as const)(
    'by %s loses, doubles and reorders nothing of a producer that goes on',
    async (end) => {
      const topic = await newTopic()
      const writer = producer(plain, { sendDeadlineMs: 180_000 })
      const restarted = Promise.withResolvers<void>()
      const written = (async () => {
        for (const value of numbers(300)) {
          await writer.send(topic, [message(value)], never())
          // Half of them before the broker goes, the rest through its absence and behind it.
          if (value === '150') restarted.resolve(broker(end).then(() => broker('restart')))
        }
      })()
      await Promise.all([written, restarted.promise])
      expect(await values(topic)).toEqual(numbers(300))
    },
  )

  test('is waited out by a sink until it takes the batch, in order', async () => {
    const topic = await newTopic()
    const sink = kafkaSink<string>({
      producer: producer(plain, { sendDeadlineMs: 5_000 }),
      topic,
      origin: 'shop/orders',
      encode: (value) => value,
      ...testPorts(systemClock),
    })
    await broker('term')
    const items = outputs(numbers(50), () => 'k').map((output) => sink.prepare(output))
    const delivering = sink.deliver(items, { signal: never() })
    await broker('restart')
    expect(new Set((await delivering).map(({ status }) => status))).toEqual(new Set(['delivered']))
    expect(await values(topic)).toEqual(numbers(50))
  })

  test('is no reason to write behind the abort: what was not taken is a retry, and does not come', async () => {
    const topic = await newTopic()
    const sink = kafkaSink<string>({ producer: producer(), topic, origin: 'shop/orders', ...testPorts(systemClock) })
    await broker('term')
    const controller = new AbortController()
    const items = outputs(numbers(5), () => 'k').map((output) => sink.prepare(output))
    const delivering = sink.deliver(items, { signal: controller.signal })
    controller.abort()
    const outcomes = await delivering
    expect(outcomes.map(({ status }) => status)).toEqual(Array(5).fill('retry'))
    await broker('restart')
    expect(await values(topic)).toEqual([])
  })

  test('is found again by a reader', async () => {
    const topic = await newTopic()
    await producer().send(topic, [message('a')], never())
    const reads = reader()
    expect((await reads.fetch(topic, 0, 0n, never())).records).toHaveLength(1)
    await broker('restart')
    expect((await patiently(() => reads.fetch(topic, 0, 0n, never()))).records).toHaveLength(1)
  })
})

withOwnBroker('a broker that hangs', () => {
  afterEach(() => broker('resume'))

  test('is given up at the deadline, and the next send is of another producer', async () => {
    const topic = await newTopic()
    // The first send is to be done within it, on a busy machine too.
    const writer = producer(plain, { sendDeadlineMs: 5_000 })
    await writer.send(topic, [message('before')], never())
    await broker('pause')
    await expect(writer.send(topic, [message('lost?')], never())).rejects.toMatchObject({
      name: 'DEADLINE',
      passes: true,
    })
    await broker('resume')
    await patiently(() => writer.send(topic, [message('behind')], never()))
    const stored = await values(topic)
    expect(stored[0]).toBe('before')
    expect(stored.at(-1)).toBe('behind')
  })

  test('is waited for after an abort no longer than the grace', async () => {
    const topic = await newTopic()
    const writer = producer(plain, { graceMs: 50 })
    await writer.send(topic, [message('before')], never())
    await broker('pause')
    const controller = new AbortController()
    const sending = writer.send(topic, [message('a')], controller.signal)
    const queued = writer.send(topic, [message('b')], controller.signal)
    controller.abort()
    await expect(sending).rejects.toMatchObject({ name: 'DEADLINE', passes: true })
    await expect(queued).rejects.toMatchObject({
      name: 'DEADLINE',
      message: expect.stringContaining('before its turn'),
    })
  })
})
