/** How long the handler guards against repetitions: as long as its stream keeps records, and a day. */
import { z } from 'zod'
import { streamHandler } from '../../lib/aws/stream-handler.ts'
import { type Duration, days } from '../../lib/core/duration.ts'
import { valueState } from '../../lib/state/states.ts'
import { kinesisEvent, lambdaContext } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { VirtualClock } from '../../lib/testing/virtual-clock.ts'
import { Topology } from '../../lib/topology/topology.ts'

/** Whether the item of a key whose state was emptied is still there after so many days. */
async function isGuardedAfter(waited: number, told: { readonly stack?: Duration; readonly handler?: Duration }) {
  const app = new Topology('visits-app')
  app
    .source('visits', z.object({ who: z.string(), leaves: z.boolean() }))
    .keyBy('by-visitor', ({ who }) => who)
    .process('counter', {
      state: { count: valueState<number>() },
      step: ({ leaves }, { state }) => {
        if (leaves) state.count.clear()
        else state.count.set(1)
        return []
      },
    })
    .to(app.sink('out'))
  const clock = new VirtualClock(Date.UTC(2026, 0, 1))
  const ports = Object.assign(memoryPorts({ clock }), { retentionMs: () => told.stack?.ms })
  const handler = streamHandler(app, { ports, ...(told.handler ? { retention: told.handler } : {}) })
  for (const [firstIndex, leaves] of [false, true].entries()) {
    await handler(kinesisEvent([{ who: 'ann', leaves }], { firstIndex }), lambdaContext())
    for (const frames of ports.takeFrames('by-visitor')) await handler(frames, lambdaContext())
  }
  clock.advance(days(waited).ms)
  const kept = await ports.state('by-visitor')?.readKeys(['ann'], new AbortController().signal)
  return kept?.has('ann')
}

it.each<[string, Parameters<typeof isGuardedAfter>[1], number]>([
  ['nobody says how long', {}, 7],
  ['the stack knows how long', { stack: days(30) }, 30],
  ['the handler is told how long', { handler: days(10) }, 10],
  ['both say it, the longer counts', { stack: days(30), handler: days(10) }, 30],
  ['both say it, whichever it is', { stack: days(1), handler: days(10) }, 10],
])('where %s', async (_, told, retained) => {
  expect(await isGuardedAfter(retained + 0.9, told)).toBe(true)
  expect(await isGuardedAfter(retained + 1.1, told)).toBe(false)
})
