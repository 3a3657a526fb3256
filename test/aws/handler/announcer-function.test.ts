/** The announcer in the handler: what its environment says, and a round in an invocation. */
import { openAnnouncerPorts } from '../../../lib/aws/handler/announcer-function.ts'
import { openPorts } from '../../../lib/aws/handler/open-ports.ts'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { milliseconds, minutes } from '../../../lib/core/duration.ts'
import { text } from '../../../lib/core/format.ts'
import { count } from '../../../lib/operators/aggregators/count.ts'
import { plan } from '../../../lib/plan/plan.ts'
import { type AnnouncerBindings, announceEvent, bindingsVariable } from '../../../lib/plan/stage-bindings.ts'
import { kinesisEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { VirtualClock } from '../../../lib/testing/virtual-clock.ts'
import { epochMs } from '../../../lib/time/event-time.ts'
import { tumbling } from '../../../lib/time/windows/hopping.ts'
import { Topology } from '../../../lib/topology/topology.ts'

const startMs = Date.UTC(2026, 0, 1)

/** Lines that are event times, counted in five minutes. */
function lines() {
  const app = new Topology('lines-app')
  const source = app.source('lines', text(), { eventTime: epochMs<string>(Number), outOfOrderness: milliseconds(0) })
  const out = app.sink<number>('out')
  const { results, late } = source
    .keyBy('all', () => 'all', { slots: 1 })
    .window(tumbling(minutes(5), { grace: minutes(0) }))
    .aggregate('lines-in-five-minutes', { n: count() }, { emit: 'final' })
  results.map(({ value }) => value.n).to(out)
  late.map(() => -1).to(out)
  return { app, out }
}

const streamArn = (name: string) => `arn:aws:kinesis:us-east-1:000000000000:stream/${name}`
const state = { tableName: 'all' }
const bindings: AnnouncerBindings = {
  formatVersion: 1,
  topology: 'lines-app',
  announces: [
    { stage: 'lines', streamArn: streamArn('lines'), state },
    { stage: 'all', streamArn: streamArn('all'), state },
  ],
}
const inEnvironment = (value: object) => ({ [bindingsVariable]: JSON.stringify(value) })

describe('the ports of the announcer', () => {
  test('are the tables and the shards of every stage with progress, and writers for those that are keyed', async () => {
    const ports = await openAnnouncerPorts(plan(lines().app), inEnvironment(bindings))
    for (const stage of ['lines', 'all']) {
      expect(ports.state?.(stage)).toBeDefined()
      expect(ports.lineage?.(stage)).toBeDefined()
    }
    expect(ports.frames?.('all')).toBeDefined()
    expect(ports.frames?.('lines')).toBeUndefined()
  })

  test.each<[string, object, string]>([
    ['of a stage', { ...bindings, announces: undefined, sources: [] }, 'runs a stage of topology "lines-app"'],
    ['of another topology', { ...bindings, topology: 'other' }, 'bound for topology "other"'],
    ['of a later release', { ...bindings, formatVersion: 2 }, 'format version 2'],
    ['that leave out a stage', { ...bindings, announces: bindings.announces.slice(0, 1) }, 'not told of stage "all"'],
  ])('are refused bindings %s', async (_, value, message) => {
    const given = Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined))
    await expect(openAnnouncerPorts(plan(lines().app), inEnvironment(given))).rejects.toThrow(message)
  })

  test('a function that announces runs no stage', async () => {
    await expect(openPorts(plan(lines().app), inEnvironment(bindings))).rejects.toThrow(
      'the function announces for topology "lines-app" and runs no stage',
    )
  })
})

describe('the event of the rule', () => {
  function world() {
    const { app, out } = lines()
    const clock = new VirtualClock(startMs)
    const ports = memoryPorts({ clock })
    const handler = streamHandler(app, { ports })
    const invoke = async (event: unknown) => {
      expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [] })
      for (const frames of ports.takeFrames('all')) {
        expect(await handler(frames, lambdaContext())).toEqual({ batchItemFailures: [] })
      }
    }
    return { clock, ports, out, invoke }
  }

  test('closes the windows of a source that is silent', async () => {
    const { clock, ports, out, invoke } = world()
    await invoke(kinesisEvent([String(startMs), String(startMs + 60_000)], { arrivalTimeMs: () => startMs }))
    await invoke(announceEvent)
    clock.advance(minutes(4).ms - 1)
    await invoke(announceEvent)
    expect(ports.received(out)).toEqual([])
    clock.advance(1)
    await invoke(announceEvent)
    expect(ports.received(out)).toEqual([2])
  })

  test('runs no stage by itself, and a round that fails rejects', async () => {
    const { app } = lines()
    const ports = memoryPorts()
    const failing = { ...ports, lineage: () => undefined }
    await expect(streamHandler(app, { ports: failing })(announceEvent, lambdaContext())).rejects.toThrow(
      'the announcer has no lineage or no state table of stage "all"',
    )
    expect(await streamHandler(app, { ports })(announceEvent, lambdaContext())).toEqual({ batchItemFailures: [] })
  })

  test('a round ends before the deadline of its invocation', async () => {
    const { app } = lines()
    const clock = new VirtualClock(startMs)
    const ports = memoryPorts({ clock })
    ports.serve?.(plan(app))
    const lineage = ports.lineage?.('all')
    const waiting = Promise.withResolvers<void>()
    const slow = {
      ...ports,
      lineage: () => ({
        ...(lineage as NonNullable<typeof lineage>),
        list: (signal: AbortSignal) => {
          waiting.resolve()
          return new Promise<never>((_, reject) => {
            signal.addEventListener('abort', () => reject(new Error('no time left')))
          })
        },
      }),
    }
    const answer = streamHandler(app, { ports: slow })(announceEvent, { getRemainingTimeInMillis: () => 60_000 })
    await waiting.promise
    clock.advance(59_000)
    await expect(answer).rejects.toThrow('no time left')
  })
})
