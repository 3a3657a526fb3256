/** Headers of source records behind keyBy, through the real handler: in steps, sinks, further stages, dead letters and redrives. */
import type { KinesisStreamEvent } from 'aws-lambda'
import { z } from 'zod'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import type { KafkaMessage } from '../../../lib/aws/kafka/kafka-port.ts'
import { kafkaSink } from '../../../lib/aws/kafka/kafka-sink.ts'
import { hours, seconds } from '../../../lib/core/duration.ts'
import { TerminalError } from '../../../lib/core/errors.ts'
import type { RecordInfo } from '../../../lib/core/record.ts'
import {
  count,
  countWindow,
  epochMs,
  eventTimer,
  mapState,
  type Stream,
  Topology,
  tumbling,
  valueState,
} from '../../../lib/index.ts'
import { type KeyedEntry, redriveFrame } from '../../../lib/local/dead-letters/frame.ts'
import { originalRecord, redriveEvent } from '../../../lib/local/dead-letters/record.ts'
import { plan } from '../../../lib/plan/plan.ts'
import { announceEvent } from '../../../lib/plan/stage-bindings.ts'
import { decodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import type { Sink } from '../../../lib/runtime/sink.ts'
import { kafkaEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { VirtualClock } from '../../../lib/testing/virtual-clock.ts'
import { testPorts } from '../../aws/sink-worlds.ts'

const { signal } = new AbortController()
const startMs = Date.UTC(2026, 0, 1)
const schema = z.object({ key: z.string(), at: z.number(), bad: z.boolean().optional(), pad: z.string().optional() })
type Order = z.infer<typeof schema>
type Headers = readonly (readonly [name: string, value: string | Uint8Array])[]

const order = (key: string, at = 0, bad = false): Order => ({ key, at, ...(bad && { bad }) })
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')
/** `name=value` of each, in order. */
const listed = (headers: RecordInfo['headers']) => headers.map(({ name, value }) => `${name}=${text(value)}`)

/** An application whose source is the topic `orders`, and whose sinks write to topics. */
class HeadersWorld {
  readonly clock = new VirtualClock(startMs)
  readonly memory = memoryPorts({ clock: this.clock })
  /** The versions of all frames with records between stages. */
  readonly versions: (number | undefined)[] = []
  readonly app: Topology
  readonly #written: KafkaMessage[] = []
  readonly #handler: ReturnType<typeof streamHandler>
  #sent = 0

  constructor(app: Topology) {
    this.app = app
    const producer = {
      topic: async () => ({ id: 'id', partitions: 1 }),
      send: async (_topic: string, messages: readonly KafkaMessage[]) => void this.#written.push(...messages),
      close: async () => undefined,
    }
    const sink = (name: string) => kafkaSink({ producer, topic: name, origin: name, ...testPorts() }) as unknown as Sink
    // Marks come with frames alone, so that it is records that bring them.
    this.#handler = streamHandler(app, { ports: { ...this.memory, sink }, marksEvery: hours(100) })
  }

  async send(value: Order, headers: Headers | undefined): Promise<void> {
    const named = headers?.map(([name, bytes]) => ({ name, value: bytes }))
    const at = { offset: this.#sent++, key: 'k', timestampMs: startMs + value.at }
    await this.invoke(kafkaEvent({ 'orders-0': [{ ...at, value, ...(named && { headers: named }) }] }))
  }

  announce(): Promise<void> {
    return this.invoke(announceEvent)
  }

  /** Invokes a source's stage, then the keyed ones. */
  async invoke(event: unknown): Promise<void> {
    expect(await this.#handler(event, lambdaContext())).toMatchObject(event === announceEvent ? {} : allDone)
    await this.runKeyed()
  }

  async runKeyed(): Promise<void> {
    for (const { kind, name } of plan(this.app).stages) {
      for (const frames of kind === 'keyed' ? this.memory.takeFrames(name) : []) await this.#invokeKeyed(frames)
    }
  }

  async #invokeKeyed(frames: KinesisStreamEvent): Promise<void> {
    const all = frames.Records.map(({ kinesis }) => Buffer.from(kinesis.data, 'base64'))
    this.versions.push(...all.filter((bytes) => decodeFrame(bytes).kind !== 'control').map((bytes) => bytes[6]))
    expect(await this.#handler(frames, lambdaContext())).toEqual(allDone)
  }

  /** What was written to topics since it was last asked: the value, then each header but the identity. */
  written(): readonly unknown[] {
    return this.#written.splice(0).map(({ value, headers = [] }) => {
      expect(headers.at(-1)?.name).toBe('millrace-output')
      return [JSON.parse(Buffer.from(value as Uint8Array).toString()), ...listed(headers.slice(0, -1))]
    })
  }
}

/** A process keeps something of each key. */
const unused = { unused: valueState<true>() }

const allDone = { batchItemFailures: [] }

function application(make: (orders: Stream<Order>, app: Topology) => void): HeadersWorld {
  const app = new Topology('orders-app')
  make(app.source('orders', schema, { eventTime: epochMs(({ at }) => startMs + at) }), app)
  return new HeadersWorld(app)
}

/** Orders > `by-key` > step > sink `seen` and > `by-day` > aggregate > sink `days`. */
const audited = (step: (value: Order, record: RecordInfo) => unknown = (_, record) => listed(record.headers)) =>
  application((orders, app) => {
    const seen = orders
      .keyBy('by-key', ({ key }) => key, { slots: 1 })
      .process('audit', { state: unused, step: (value, { record }) => [{ key: value.key, saw: step(value, record) }] })
    seen.to(app.sink('seen'))
    seen
      .keyBy('by-day', () => 'day', { slots: 1 })
      .aggregate(
        'orders-per-day',
        { init: () => 0, add: (n) => n + 1, result: (orders) => ({ orders }) },
        { emit: 'on-update' },
      )
      .to(app.sink('days'))
  })

describe('headers of a source record', () => {
  test('reach the steps, the sinks and the next keyBy, in order and each as often as it came', async () => {
    const world = audited()
    await world.send(order('ann'), [
      ['trace', 't-1'],
      ['tenant', Uint8Array.of(0xff, 0x00)],
      ['trace', ''],
      ['', 'nameless'],
    ])
    const all = ['trace=t-1', 'tenant=\u00ff\u0000', 'trace=', '=nameless']
    expect(world.written()).toEqual([
      [{ key: 'ann', saw: all }, ...all],
      [{ orders: 1 }, ...all],
    ])
    expect(world.versions).toEqual([3, 3])
  })

  test.each([[[]], [undefined]])('where there are none, %p, frames are what every release reads', async (none) => {
    const world = audited()
    await world.send(order('ann'), none)
    expect(world.written()).toEqual([[{ key: 'ann', saw: [] }], [{ orders: 1 }]])
    expect(world.versions).toEqual([1, 1])
  })

  test('are not those of others where a step turns their bytes around in place', async () => {
    const turned = ({ headers }: RecordInfo) => text(headers[0]?.value.reverse() ?? Uint8Array.of())
    const world = application((orders, app) => {
      const seen = orders
        .map((value, record) => ({ ...value, first: turned(record) }))
        .keyBy('by-key', ({ key }) => key, { slots: 1 })
        .process('audit', {
          // Its entry is loaded when the step asks for it: the step runs twice where its key is read anew.
          state: { times: mapState<number>() },
          step: ({ first }, { state, record }) => {
            const second = turned(record)
            state.times.set('n', (state.times.get('n') ?? 0) + 1)
            return [{ first, second, third: turned(record) }]
          },
        })
      seen.to(app.sink('seen'))
    })
    const all = { first: 'cba', second: 'cba', third: 'cba' }
    for (const _ of [1, 2]) {
      await world.send(order('ann'), [['trace', 'abc']])
      expect(world.written()).toEqual([[all, 'trace=abc']])
    }
    expect(world.memory.deadLettered).toEqual([])
  })

  test('are told by name as those of a source: the last one of it, undefined where there is none', async () => {
    const world = audited((_, record) => [record.header('trace'), record.header('other') ?? 'none'])
    await world.send(order('ann'), [
      ['trace', 'first'],
      ['trace', 'lást'],
    ])
    expect(world.written()[0]).toEqual([
      { key: 'ann', saw: ['lást', 'none'] },
      'trace=first',
      `trace=${Buffer.from('lást').toString('latin1')}`,
    ])
  })

  test('fail the step that asks for text where they are none, and the dead letter has their bytes', async () => {
    const world = audited((_, record) => record.header('trace'))
    await world.send(order('ann'), [['trace', Uint8Array.of(0xc3, 0x28)]])
    expect(world.memory.deadLettered).toMatchObject([
      { stage: 'by-key', reason: { code: 'header-not-utf8' }, headers: [{ name: 'trace', value: 'wyg=' }] },
    ])
  })

  test('that fit in no frame, or have no name in UTF-8, make a dead letter of their record alone', async () => {
    const world = audited()
    const nearlyTooLarge = { ...order('ann'), pad: 'x'.repeat(1_047_000) }
    await world.send(nearlyTooLarge, [])
    await world.send(nearlyTooLarge, [['large', 'x'.repeat(2_000)]])
    await world.send(order('bob'), [['half \ud800', 'x']])
    await world.send(order('cid'), [['trace', 't-3']])
    const codes = world.memory.deadLettered.map(({ stage, reason }) => [stage, reason.code])
    expect(codes).toEqual([
      ['orders', 'oversize'],
      ['orders', 'not-utf8'],
    ])
    const seen = world.written().filter((_, i) => i % 2 === 0)
    expect(seen).toEqual([[{ key: 'ann', saw: [] }], [{ key: 'cid', saw: ['trace=t-3'] }, 'trace=t-3']])
  })
})

describe('results', () => {
  const ringing = () =>
    application((orders, app) => {
      const rung = orders
        .keyBy('by-key', ({ key }) => key, { slots: 1 })
        .process('ring', {
          state: { at: valueState<number>() },
          timers: { bell: eventTimer() },
          step({ key, at }, { timers, state }) {
            state.at.set(at)
            timers.bell.set(startMs + at + 1_000)
            return [`order of ${key} at ${at}`]
          },
          onTimer: { bell: (timeMs, { key }) => [`bell of ${key} at ${timeMs - startMs}`] },
        })
      rung.to(app.sink('bells'))
      rung
        .keyBy('all', () => 'all', { slots: 1 })
        .process('second', { state: unused, step: (value, { record }) => [{ value, saw: listed(record.headers) }] })
        .to(app.sink('seconds'))
    })

  test('of a timer have no headers, whichever record or announcement moved the watermark', async () => {
    const world = ringing()
    await world.send(order('first', -100_000), [['trace', 'f-1']])
    await world.announce()
    await world.send(order('ann', 0), [['trace', 'a-1']])
    await world.send(order('bob', 5_000), [['trace', 'b-1']])
    world.written()

    // The timer of its own key fires in the step of the record: one step, and results of both kinds.
    await world.send(order('ann', 7_000), [['trace', 'a-2']])
    expect(world.written()).toEqual([
      ['bell of ann at 1000'],
      ['order of ann at 7000', 'trace=a-2'],
      [{ value: 'bell of ann at 1000', saw: [] }],
      [{ value: 'order of ann at 7000', saw: ['trace=a-2'] }, 'trace=a-2'],
    ])
    // That of another key.
    await world.send(order('cid', 20_000), [['trace', 'c-1']])
    expect(world.written()).toEqual([
      ['bell of bob at 6000'],
      ['order of cid at 20000', 'trace=c-1'],
      [{ value: 'bell of bob at 6000', saw: [] }],
      [{ value: 'order of cid at 20000', saw: ['trace=c-1'] }, 'trace=c-1'],
    ])
    world.clock.advance(hours(1).ms)
    await world.announce()
    await world.announce()
    expect(world.written().filter((one) => String(one).startsWith('bell'))).toEqual([
      ['bell of ann at 8000'],
      ['bell of cid at 21000'],
    ])
  })

  const windowed = (emit: 'on-close' | 'on-update') =>
    application((orders, app) => {
      const windows = orders
        .keyBy('by-key', ({ key }) => key, { slots: 1 })
        .window(tumbling(seconds(10), { grace: seconds(10) }))
        .aggregate('w', { n: count() }, { emit })
      windows.results
        .map(({ key, window, value }) => `${key} ${window.startMs - startMs}: ${value.n}`)
        .to(app.sink('sums'))
      windows.late.map(({ at }) => `late: ${at}`).to(app.sink('too-late'))
    })

  test('of a window that ends have none; of one that a late record revises, those of that record', async () => {
    const world = windowed('on-close')
    await world.send(order('ann', 0), [['trace', 'a-1']])
    await world.announce()
    await world.send(order('ann', 12_000), [['trace', 'a-2']])
    expect(world.written()).toEqual([])
    await world.send(order('ann', 13_000), [['trace', 'a-3']])
    expect(world.written()).toEqual([['ann 0: 1']])
    await world.send(order('ann', 5_000), [['trace', 'a-4']])
    expect(world.written()).toEqual([['ann 0: 2', 'trace=a-4']])
    await world.send(order('ann', 30_000), [['trace', 'a-5']])
    await world.send(order('ann', 6_000), [['trace', 'a-6']])
    expect(world.written()).toEqual([['ann 10000: 2'], ['late: 6000', 'trace=a-6']])
  })

  test('of a window that each record updates, or that one fills, have those of that record', async () => {
    const world = windowed('on-update')
    await world.send(order('ann', 0), [['trace', 'a-1']])
    await world.send(order('ann', 1), [['trace', 'a-2']])
    expect(world.written()).toEqual([
      ['ann 0: 1', 'trace=a-1'],
      ['ann 0: 2', 'trace=a-2'],
    ])
    const counting = application((orders, app) => {
      orders
        .keyBy('by-key', ({ key }) => key, { slots: 1 })
        .window(countWindow(2))
        .aggregate('c', { n: count() }, { emit: 'on-close' })
        .results.map(({ value }) => value.n)
        .to(app.sink('counts'))
    })
    await counting.send(order('ann', 0), [['trace', 'a-1']])
    await counting.send(order('ann', 1), [['trace', 'a-2']])
    expect(counting.written()).toEqual([[2, 'trace=a-2']])
  })
})

describe('dead letters', () => {
  const both: Headers = [
    ['trace', 'first'],
    ['trace', Uint8Array.of(0xff)],
  ]
  const asLetter = [
    { name: 'trace', value: Buffer.from('first').toString('base64') },
    { name: 'trace', value: '/w==' },
  ]
  const reading = {
    ...{ topology: 'orders-app', sources: ['orders'], readSource: async () => undefined },
    readObject: async () => Promise.reject(new Error('there is none')),
  }

  test('of a keyed stage have the headers of their record, and a redrive brings them back', async () => {
    const broken = { is: true }
    const world = audited(({ bad }, record) => {
      if (bad && broken.is) throw new TerminalError('no')
      return listed(record.headers)
    })
    await world.send(order('ann', 0, true), both)
    const [letter] = world.memory.deadLettered
    expect(letter).toMatchObject({ stage: 'by-key', headers: asLetter })
    expect(world.written()).toEqual([])
    broken.is = false
    const frame = await redriveFrame(letter as KeyedEntry, { slotsOf: () => 1 }, reading)
    if ('reason' in frame) throw new Error(frame.reason)
    await world.memory.frames?.('by-key')?.publish([frame], signal)
    await world.runKeyed()
    const all = ['trace=first', 'trace=\u00ff']
    expect(world.written()).toEqual([
      [{ key: 'ann', saw: all }, ...all],
      [{ orders: 1 }, ...all],
    ])
    expect(world.versions).toEqual([3, 3, 3])
  })

  test('without headers are redriven in a frame that every release reads', async () => {
    const broken = { is: true }
    const world = audited(() => {
      if (broken.is) throw new TerminalError('no')
    })
    await world.send(order('ann'), [])
    broken.is = false
    const [letter] = world.memory.deadLettered
    const frame = await redriveFrame(letter as KeyedEntry, { slotsOf: () => 1 }, reading)
    expect(frame).toMatchObject({ slot: 0 })
    expect('bytes' in frame && frame.bytes[6]).toBe(1)
  })

  test('of the stage before it, redriven, bring them to the keyed stage too', async () => {
    const broken = { is: true }
    const world = application((orders, app) => {
      orders
        .map((value) => {
          if (broken.is) throw new TerminalError('no')
          return value
        })
        .keyBy('by-key', ({ key }) => key, { slots: 1 })
        .process('audit', { state: unused, step: (_, { record }) => [listed(record.headers)] })
        .to(app.sink('seen'))
    })
    await world.send(order('ann'), both)
    const [letter] = world.memory.deadLettered
    expect(letter).toMatchObject({ stage: 'orders', headers: asLetter })
    broken.is = false
    const record = await originalRecord(letter as KeyedEntry, reading)
    if ('reason' in record) throw new Error(record.reason)
    await world.invoke(redriveEvent(record, { name: 'orders', kind: 'kafka', topic: 'orders' } as never))
    const all = ['trace=first', 'trace=\u00ff']
    expect(world.written()).toEqual([[all, ...all]])
  })
})
