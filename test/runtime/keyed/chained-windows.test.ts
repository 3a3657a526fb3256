/** Windows behind timers and behind other windows: nothing is late for having waited, however far the watermark has jumped. */
import fc from 'fast-check'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import {
  count,
  type Duration,
  epochMs,
  eventTimer,
  type Format,
  hours,
  json,
  minutes,
  processingTimer,
  type SinkHandle,
  type SourceHandle,
  sum,
  Topology,
  tumbling,
  valueState,
} from '../../../lib/index.ts'
import { announceEvent } from '../../../lib/plan/stage-bindings.ts'
import { kinesisEvent, lambdaContext, memoryPorts, TestDriver, VirtualClock } from '../../../lib/testing/index.ts'

interface Call {
  readonly line: string
  readonly minute: number
}

const startMs = Date.UTC(2026, 0, 1)
const atMs = ({ minute }: Call) => startMs + minute * 60_000
const nowMs = startMs + hours(1).ms
const endOf = (endMs: number) => (endMs - startMs) / 60_000

function calls() {
  const app = new Topology('calls-app')
  const source = app.source('calls', json() as Format<Call>, { eventTime: epochMs(atMs), outOfOrderness: minutes(0) })
  return { app, source, out: app.sink<string>('out'), late: app.sink<unknown>('late') }
}

test('what a timer puts out counts in the window of its own time, in the stage where it fires', async () => {
  const { app, source, out, late } = calls()
  const windows = source
    .keyBy('by-line', ({ line }) => line)
    .process('silence', {
      state: { calls: valueState<number>() },
      timers: { silent: eventTimer() },
      step: (call, { timers }): string[] => {
        timers.silent.set(atMs(call) + 60_000)
        return []
      },
      onTimer: { silent: () => ['silent'] },
    })
    .window(tumbling(minutes(1), { grace: minutes(0) }))
    .aggregate('silences', { n: count() }, { emit: 'on-close' })
  windows.results.map(({ key, window, value }) => `${key} ${endOf(window.endMs)}: ${value.n}`).to(out)
  windows.late.to(late)
  const driver = new TestDriver(app, { nowMs })
  await driver.send(source, [{ line: 'a', minute: 0 }])
  // Half an hour goes by at once: it ends the window of the firing together with the timer.
  await driver.advanceEventTime(minutes(30))
  expect(driver.received(late)).toEqual([])
  expect(driver.received(out)).toEqual(['a 2: 1'])
})

describe('windows behind timers, in the stage where those fire', () => {
  /** A call may set a timer of its line, relative to its own time in minutes; that one, when it fires, another. */
  interface Setting extends Call {
    readonly sets?: number
    readonly thenSets?: number
    /** A minute for which a timer by processing time sets one by event time. */
    readonly pollSets?: number
    readonly isSilent?: boolean
    /** How much longer than its newest call event time goes on behind it, as of a partition that is idle. */
    readonly idleMinutes?: number
  }

  /** Says "timer" for each timer and "call" for each call, counted per line and minute. */
  async function run(
    emit: 'on-close' | 'final',
    sent: readonly Setting[],
    { skewLimit, received = withoutTicks }: { skewLimit?: Duration; received?: typeof withTicks } = {},
  ): Promise<Received> {
    const app = new Topology('calls-app')
    const eventTime = { eventTime: epochMs(atMs), outOfOrderness: minutes(0), ...(skewLimit && { skewLimit }) }
    const source = app.source('calls', json() as Format<Setting>, eventTime)
    const [out, late] = [app.sink<string>('out'), app.sink<string>('late')]
    const windows = source
      .keyBy('by-line', ({ line }) => line, { slots: 1 })
      .process('watch', {
        state: { next: valueState<number>(), polled: valueState<number>() },
        timers: { first: eventTimer(), second: eventTimer(), poll: processingTimer() },
        step: ({ line, minute, sets, thenSets, pollSets, isSilent }: Setting, { timers, state }): string[] => {
          if (sets !== undefined) timers.first.set(startMs + (minute + sets) * 60_000)
          if (thenSets !== undefined) state.next.set(thenSets)
          if (pollSets !== undefined) {
            state.polled.set(pollSets)
            timers.poll.set(nowMs + hours(1).ms)
          }
          return isSilent ? [] : [`${line} call`]
        },
        onTimer: {
          first: (timeMs, { key, timers, state }) => {
            const next = state.next.get()
            if (next !== undefined) timers.second.set(timeMs + next * 60_000)
            return [`${key} timer`]
          },
          second: (_timeMs, { key }) => [`${key} second timer`],
          poll: (_timeMs, { timers, state }) => {
            timers.second.set(startMs + (state.polled.get() ?? 0) * 60_000)
            return []
          },
        },
      })
      .window(tumbling(minutes(1), { grace: minutes(0) }))
      .aggregate('per-minute', { n: count() }, { emit })
    windows.results
      .map(({ key, window, value, revision }) => `${key} ${endOf(window.endMs)}: ${value.n}, revision ${revision}`)
      .to(out)
    windows.late.to(late)
    return received(app, source, sent, { out, late })
  }

  interface Received {
    readonly results: readonly string[]
    readonly late: readonly string[]
  }

  interface Sinks {
    readonly out: SinkHandle<string>
    readonly late: SinkHandle<string>
  }

  /** With a tick of the announcer behind each call. */
  async function withTicks(app: Topology, source: SourceHandle<Setting>, sent: readonly Setting[], sinks: Sinks) {
    const driver = new TestDriver(app, { nowMs })
    for (const { idleMinutes, ...call } of sent) {
      await driver.send(source, [call])
      if (idleMinutes !== undefined) await driver.advanceEventTime(minutes(idleMinutes))
    }
    await driver.advanceProcessingTime(hours(2))
    await driver.advanceEventTime(hours(3))
    return { results: driver.received(sinks.out), late: driver.received(sinks.late) }
  }

  /** With ticks before the first call and behind the last one alone, so that calls bring the marks at which timers fire. */
  async function withoutTicks(app: Topology, source: SourceHandle<Setting>, sent: readonly Setting[], sinks: Sinks) {
    const clock = new VirtualClock(nowMs)
    const ports = memoryPorts({ clock })
    const handler = streamHandler(app, { ports, marksEvery: hours(1_000) })
    const invoke = async (event: unknown) => {
      await handler(event, lambdaContext())
      for (const frames of ports.takeFrames('by-line')) await handler(frames, lambdaContext())
    }
    await invoke(announceEvent)
    for (const [firstIndex, call] of sent.entries()) {
      await invoke(kinesisEvent([call], { source, firstIndex, arrivalTimeMs: nowMs }))
      if (firstIndex === 0) await invoke(announceEvent)
    }
    for (let i = 0; i < 3; i++) {
      clock.advance(hours(3).ms)
      await invoke(announceEvent)
    }
    return { results: ports.received(sinks.out), late: ports.received(sinks.late) }
  }

  const ofLine = (line: string, { results, late }: Awaited<ReturnType<typeof run>>) => ({
    results: results.filter((text) => text.startsWith(line)).toSorted(),
    late: late.filter((text) => text.startsWith(line)).toSorted(),
  })

  test.each(['a', 'c'])('a timer is in time for them, whichever line rings next: %s', async (line) => {
    const sent = [
      { line: 'a', minute: 0, sets: 1 },
      { line: 'b', minute: 5 },
      { line, minute: 6 },
    ]
    const { results, late } = await run('on-close', sent)
    expect(late).toEqual([])
    expect(results).toContain('a 2: 1, revision 0')
  })

  test.each(['a', 'c'])('nor does a call beyond the skew limit make it late: %s', async (line) => {
    const sent = [
      { line: 'a', minute: 0, sets: 1 },
      { line: 'b', minute: 5 },
      { line, minute: 1_000_000 },
    ]
    const { results, late } = await run('on-close', sent, { skewLimit: hours(1) })
    expect(late).toEqual([`${line} call`])
    expect(results).toContain('a 2: 1, revision 0')
  })

  test.each(['on-close', 'final'] as const)(
    'a timer that a timer has set in the past is late for a window that closed: %s',
    async (emit) => {
      const sent = [
        { line: 'a', minute: 10, sets: 20, thenSets: -20 },
        { line: 'b', minute: 40 },
        { line: 'a', minute: 45 },
      ]
      const { results, late } = ofLine('a', await run(emit, sent))
      expect(results.filter((text) => text.startsWith('a 11:'))).toEqual(['a 11: 1, revision 0'])
      expect(late).toEqual(['a second timer'])
    },
  )

  test('as is one that a call has set in the past of other partitions', async () => {
    const sent = [
      { line: 'a', minute: 20, sets: 10, idleMinutes: 40 },
      { line: 'a', minute: 45, sets: -15, isSilent: true },
    ]
    const { results, late } = await run('final', sent, { received: withTicks })
    expect(results.filter((text) => text.startsWith('a 31:'))).toEqual(['a 31: 1, revision 0'])
    expect(late).toEqual(['a timer'])
  })

  test('and one that a timer by processing time has set in the past', async () => {
    const sent = [
      { line: 'a', minute: 10, pollSets: 10 },
      { line: 'b', minute: 40 },
    ]
    const { results, late } = await run('final', sent, { received: withTicks })
    expect(results.filter((text) => text.startsWith('a 11:'))).toEqual(['a 11: 1, revision 0'])
    expect(late).toEqual(['a second timer'])
  })

  test('results and late lines do not depend on whose record comes when timers fire', async () => {
    const between = (line: string, minute: number): Setting => ({ line, minute, isSilent: true })
    const call = fc.record(
      {
        minute: fc.integer({ min: 0, max: 30 }),
        sets: fc.integer({ min: -9, max: 15 }),
        thenSets: fc.integer({ min: -9, max: 9 }),
        nextMinute: fc.integer({ min: 0, max: 30 }),
      },
      { requiredKeys: ['minute', 'nextMinute'] },
    )
    const emits = fc.constantFrom('on-close' as const, 'final' as const)
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 8 }), emits, async (calls, emit) => {
        const betweenCallsOf = (line: string) =>
          run(
            emit,
            calls.flatMap(({ nextMinute, ...one }) => [{ line: 'a', ...one }, between(line, nextMinute)]),
          )
        expect(ofLine('a', await betweenCallsOf('a'))).toEqual(ofLine('a', await betweenCallsOf('b')))
      }),
      { numRuns: 100 },
    )
  })
})

describe("windows behind 'final' windows, in the next stage", () => {
  /** Calls per minute and line, put out two minutes later; of those, calls per minute. */
  const chained = () => {
    const { app, source, out, late } = calls()
    const perLine = source
      .keyBy('by-line', ({ line }) => line)
      .window(tumbling(minutes(1), { grace: minutes(2) }))
      .aggregate('per-line', { n: count() }, { emit: 'final' })
    perLine.late.to(late)
    const perMinute = perLine.results
      .keyBy('all', () => 'all')
      .window(tumbling(minutes(1), { grace: minutes(0) }))
      .aggregate('per-minute', { n: sum(({ value }: { value: { n: number } }) => value.n) }, { emit: 'on-close' })
    perMinute.results.map(({ window, value }) => `${endOf(window.endMs)}: ${value.n}`).to(out)
    perMinute.late.to(late)
    const driver = new TestDriver(app, { nowMs })
    return {
      driver,
      send: (...sent: Call[]) => driver.send(source, sent),
      received: () => driver.received(out),
      late: () => driver.received(late),
    }
  }

  const lines = (minute: number): Call[] => ['a', 'b', 'c'].map((line) => ({ line, minute }))

  test('take each result, though it comes when its grace is over', async () => {
    const { driver, send, received, late } = chained()
    for (const minute of [0, 1, 2, 3, 4, 5, 6, 7, 8]) await send(...lines(minute + 0.5))
    await driver.advanceEventTime(minutes(30))
    expect(late()).toEqual([])
    expect(received()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map((endMinute) => `${endMinute}: 3`))
  })

  test('and those of a watermark that jumps', async () => {
    const { driver, send, received, late } = chained()
    await send(...lines(0.5), ...lines(1.5), ...lines(2.5))
    await send({ line: 'd', minute: 3.9 })
    await send({ line: 'd', minute: 20.5 }, { line: 'd', minute: 20.6 })
    await driver.advanceEventTime(minutes(30))
    expect(late()).toEqual([])
    expect(received()).toEqual(['1: 3', '2: 3', '3: 3', '4: 1', '21: 2'])
  })
})
