/** A key that fires twice in one part of a batch, while another attempt at the batch commits it. */
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import {
  epochMs,
  eventTimer,
  type Format,
  json,
  mapState,
  milliseconds,
  Topology,
  valueState,
} from '../../../lib/index.ts'
import { announceEvent } from '../../../lib/plan/stage-bindings.ts'
import { kinesisEvent, lambdaContext, memoryPorts } from '../../../lib/testing/index.ts'

interface Event {
  readonly key: string
  readonly atMs: number
}

const startMs = Date.UTC(2026, 0, 1)

test('what the other attempt has committed is taken over, and the batch is done', async () => {
  const app = new Topology('events-app')
  const source = app.source('events', json() as Format<Event>, {
    eventTime: epochMs(({ atMs }: Event) => atMs),
    outOfOrderness: milliseconds(0),
  })
  const out = app.sink<string>('out')
  source
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .process('twice', {
      state: { fired: valueState<number>(), entries: mapState<number>() },
      timers: { first: eventTimer(), second: eventTimer() },
      step({ key }, { timers }): string[] {
        if (key === 'fires') {
          timers.first.set(startMs + 10)
          timers.second.set(startMs + 20)
        }
        return []
      },
      onTimer: {
        first: () => ['first'],
        // The entry is not loaded with the key.
        second: (_timeMs, { state }) => {
          state.entries.set('entry', (state.entries.get('entry') ?? 0) + 1)
          return ['second']
        },
      },
    })
    .to(out)
  const ports = memoryPorts()
  const [feeder, rival, attempt] = [0, 1, 2].map(() => streamHandler(app, { ports }))
  const handle = (handler: typeof feeder, event: unknown) => handler?.(event as never, lambdaContext())
  let sent = 0
  const send = (event: Event) =>
    handle(feeder, kinesisEvent([event], { source, firstIndex: sent++, arrivalTimeMs: startMs + 1_000 }))

  await send({ key: 'fires', atMs: startMs })
  await handle(feeder, announceEvent)
  for (const frames of ports.takeFrames('by-key')) await handle(feeder, frames)
  for (const atMs of [10, 11, 20, 21, 30]) await send({ key: `at-${atMs}`, atMs: startMs + atMs })
  await handle(feeder, announceEvent)
  const frames = ports.takeFrames('by-key')

  const store = ports.state('by-key')
  if (store === undefined) throw new Error('the stage has no table')
  const readEntries = store.readEntries.bind(store)
  let isFirst = true
  jest.spyOn(store, 'readEntries').mockImplementation(async (...args) => {
    if (isFirst) {
      isFirst = false
      for (const event of frames) await handle(rival, event)
    }
    return readEntries(...args)
  })
  for (const event of frames) expect(await handle(attempt, event)).toEqual({ batchItemFailures: [] })
  expect(isFirst).toBe(false)
  expect(new Set(ports.received(out))).toEqual(new Set(['first', 'second']))
  expect(ports.lines.filter(({ level }) => level === 'error')).toEqual([])
})
