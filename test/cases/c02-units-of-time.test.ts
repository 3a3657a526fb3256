import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { z } from 'zod'
import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { milliseconds, minutes } from '../../lib/core/duration.ts'
import { text } from '../../lib/core/format.ts'
import { count } from '../../lib/operators/aggregators/count.ts'
import { kafkaEvent, kinesisEvent, lambdaContext } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { TestDriver } from '../../lib/testing/test-driver.ts'
import { type EventTime, epochMs, epochSeconds, isoTime } from '../../lib/time/event-time.ts'
import { tumbling } from '../../lib/time/windows/hopping.ts'
import { Topology } from '../../lib/topology/topology.ts'

const instantMs = 1671562498449
const window = [1671562440000, 1671562500000] as const

/** Sends payloads that carry `at`, and gives event times of what came through and codes of what did not. */
async function timesOf(payloads: readonly string[], eventTime: EventTime<{ at?: unknown }>) {
  const app = new Topology('times')
  const source = app.source('in', z.object({ at: z.unknown().optional() }), { eventTime })
  const out = app.sink<number>('out')
  source.map((_, record) => record.eventTimeMs).to(out)
  const driver = new TestDriver(app)
  await driver.sendRaw(source, payloads)
  return { times: driver.received(out), codes: driver.deadLetters.map(({ reason }) => reason.code) }
}

const at = (value: { at?: unknown }) => value.at as never

test('arrival in seconds (Kinesis) and in ms (Kafka) is the same instant, in the same window', async () => {
  const app = new Topology('arrival')
  const out = app.sink<number>('out')
  app
    .source('lines', text())
    .map((_, record) => record.eventTimeMs)
    .to(out)
  const ports = memoryPorts()
  const handler = streamHandler(app, { ports })
  const fromKinesis = kinesisEvent(['a'], { arrivalTimeMs: instantMs })
  expect(fromKinesis.Records[0]?.kinesis.approximateArrivalTimestamp).toBe(1671562498.449)
  await handler(fromKinesis, lambdaContext())
  await handler(kafkaEvent({ 'lines-0': [{ offset: 1, value: 'a', timestampMs: 1671562498449 }] }), lambdaContext())
  expect(ports.received(out)).toEqual([instantMs, instantMs])
  for (const time of ports.received(out)) expect(time >= window[0] && time < window[1]).toBe(true)
})

test('a window of arrival times takes both of them', async () => {
  const app = new Topology('arrival-windows')
  const out = app.sink<readonly [number, number, number]>('out')
  const windows = app
    .source('lines', text())
    .keyBy('by-line', (line) => line)
    .window(tumbling(minutes(1), { grace: milliseconds(0) }))
    .aggregate('lines-per-minute', { n: count() }, { emit: 'on-update' })
  windows.results.map(({ window, value }) => [window.startMs, window.endMs, value.n] as const).to(out)
  windows.late.map((line) => [Number.NaN, Number.NaN, line.length] as const).to(out)
  const ports = memoryPorts()
  const handler = streamHandler(app, { ports })
  await handler(kinesisEvent(['a'], { arrivalTimeMs: instantMs }), lambdaContext())
  await handler(kafkaEvent({ 'lines-0': [{ offset: 1, value: 'a', timestampMs: 1671562498449 }] }), lambdaContext())
  for (const frames of ports.takeFrames('by-line')) await handler(frames, lambdaContext())
  expect(ports.received(out)).toEqual([
    [...window, 1],
    [...window, 2],
  ])
})

test('seconds read as ms never land in 1970 in silence, nor ms read as seconds in the far future', async () => {
  expect(await timesOf(['{"at":1671562498}', '{"at":1671562498449}'], epochMs(at))).toEqual({
    times: [instantMs],
    codes: ['event-time-implausible'],
  })
  expect(await timesOf(['{"at":1671562498.449}', '{"at":1671562498449}'], epochSeconds(at))).toEqual({
    times: [instantMs],
    codes: ['event-time-implausible'],
  })
})

test('ticks are a dead letter, not a RangeError, whichever extractor meets them; so is no time at all', async () => {
  const ticks = [
    '{"at":637000000000000000}',
    '{"at":6370000000000000}',
    '{"at":"637000000000000000"}',
    '{"at":null}',
    '{}',
  ]
  for (const [eventTime, number] of [
    [epochMs(at), 'event-time-implausible'],
    [epochSeconds(at), 'event-time-implausible'],
    [isoTime(at), 'event-time-unreadable'],
  ] as const) {
    const { times, codes } = await timesOf(ticks, eventTime)
    expect(times).toEqual([])
    expect(codes).toEqual([
      'unsafe-integer',
      number,
      'event-time-unreadable',
      'event-time-missing',
      'event-time-missing',
    ])
  }
})

describe.each(['UTC', 'Asia/Kolkata', 'America/St_Johns'])('under TZ=%s', (TZ) => {
  // In a process of its own: jest's own has read its zone already.
  const script = `
    import { isoTime } from './lib/index.ts'
    const same = (text) => text
    const code = (extract) => { try { return extract() } catch (error) { return error.code } }
    console.log(JSON.stringify({
      offset: new Date(${instantMs}).getTimezoneOffset(),
      bare: code(() => isoTime(same).extract('2022-12-20T18:54:58.449')),
      asUtc: code(() => isoTime(same, { withoutZone: 'utc' }).extract('2022-12-20T18:54:58.449')),
      zoned: code(() => isoTime(same).extract('2022-12-21T00:24:58.449+05:30')),
    }))`

  test('a time without a zone is refused or one instant, and a zoned one is the same instant everywhere', () => {
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: join(__dirname, '../..'),
      env: { ...process.env, TZ },
      encoding: 'utf8',
    })
    expect(JSON.parse(output)).toEqual({
      offset: { UTC: 0, 'Asia/Kolkata': -330, 'America/St_Johns': 210 }[TZ],
      bare: 'event-time-without-zone',
      asUtc: instantMs,
      zoned: instantMs,
    })
  })
})
