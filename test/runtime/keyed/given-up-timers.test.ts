/** A record that is given up at the very number that makes a timer of its key due, with nothing behind it. */
import { z } from 'zod'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { hours, minutes } from '../../../lib/core/duration.ts'
import { TerminalError } from '../../../lib/core/errors.ts'
import { eventTimer } from '../../../lib/operators/keyed/timers.ts'
import { announceEvent } from '../../../lib/plan/stage-bindings.ts'
import { valueState } from '../../../lib/state/states.ts'
import { kinesisEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { VirtualClock } from '../../../lib/testing/virtual-clock.ts'
import { epochMs } from '../../../lib/time/event-time.ts'
import { Topology } from '../../../lib/topology/topology.ts'

const call = z.object({ key: z.string(), at: z.number(), bad: z.boolean().optional() })
const startMs = Date.UTC(2026, 0, 1)

/** Calls set a bell for a second later, and those that are bad are given up. */
function callsOf(ring: (key: string) => void = () => undefined) {
  const app = new Topology('calls-app')
  const source = app.source('calls', call, { eventTime: epochMs(({ at }) => at) })
  const out = app.sink<string>('out')
  source
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .process('ring', {
      state: { rung: valueState<boolean>() },
      timers: { bell: eventTimer() },
      step({ at, bad }, { timers }): string[] {
        if (bad) throw new TerminalError('nobody called')
        timers.bell.set(at + 1_000)
        return []
      },
      onTimer: {
        bell: (timeMs, { key }) => {
          ring(String(key))
          return [`${key} ${timeMs - startMs}`]
        },
      },
    })
    .to(out)
  const clock = new VirtualClock(startMs)
  const ports = memoryPorts({ clock })
  // Marks come with frames alone, so that the record itself brings the one that reaches the timer.
  const handler = streamHandler(app, { ports, marksEvery: hours(100) })
  const invoke = async (event: unknown) => {
    await handler(event, lambdaContext())
    for (const frames of ports.takeFrames('by-key')) await handler(frames, lambdaContext())
  }
  let sent = 0
  const send = (value: z.infer<typeof call>) =>
    invoke(kinesisEvent([value], { firstIndex: sent++, arrivalTimeMs: () => startMs }))
  return { ports, clock, out, invoke, send }
}

test('the timer fires all the same, at whatever comes next', async () => {
  const { ports, clock, out, invoke, send } = callsOf()
  await send({ key: 'first', at: startMs - 100_000 })
  await invoke(announceEvent)
  await send({ key: 'ann', at: startMs })
  await send({ key: 'bob', at: startMs + 5_000 })
  expect(ports.received(out)).toEqual(['first -99000'])
  await send({ key: 'ann', at: startMs + 5_001, bad: true })
  expect(ports.deadLettered).toHaveLength(1)
  clock.advance(minutes(10).ms)
  await invoke(announceEvent)
  expect(ports.received(out)).toEqual(expect.arrayContaining(['first -99000', 'ann 1000', 'bob 6000']))
  expect(ports.received(out)).toHaveLength(3)
})

test('a timer that fails there has a dead letter beside that of the record', async () => {
  const { ports, invoke, send } = callsOf((key) => {
    if (key === 'ann') throw new TerminalError('the bell is broken')
  })
  await send({ key: 'first', at: startMs - 100_000 })
  await invoke(announceEvent)
  await send({ key: 'ann', at: startMs })
  await send({ key: 'bob', at: startMs + 5_000 })
  await send({ key: 'ann', at: startMs + 5_001, bad: true })
  expect(ports.deadLettered.map(({ reason }) => reason.message).toSorted()).toEqual([
    'nobody called',
    'the bell is broken',
  ])
})
