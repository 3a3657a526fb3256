/** How long the handler keeps what is empty: as long as records can be on their way to it, from the source on, and a day. */
import { z } from 'zod'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { type Duration, days } from '../../../lib/core/duration.ts'
import { valueState } from '../../../lib/state/states.ts'
import { kinesisEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { VirtualClock } from '../../../lib/testing/virtual-clock.ts'
import { Topology } from '../../../lib/topology/topology.ts'

/** Whether the item of a key whose state was emptied is still there after so many days. */
async function isGuardedAfter(
  waited: number,
  told: { readonly stack?: Duration; readonly upstream?: Duration; readonly handler?: Duration },
) {
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
  const ports = Object.assign(memoryPorts({ clock }), {
    retentionMs: () => told.stack?.ms,
    upstreamRetentionMs: () => told.upstream?.ms,
  })
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
  ['nobody says how long', {}, 7 + 7],
  ['the stack knows how long its stream keeps records', { stack: days(30) }, 30 + 7],
  ['the stack knows how long they may have waited before', { stack: days(2), upstream: days(15) }, 2 + 15],
  ['the handler is told how long', { handler: days(10) }, 10 + 10],
  ['both say it, the longer counts', { stack: days(30), upstream: days(20), handler: days(10) }, 30 + 20],
  ['both say it, whichever it is', { stack: days(1), upstream: days(1), handler: days(10) }, 10 + 10],
])('where %s', async (_, told, retained) => {
  expect(await isGuardedAfter(retained + 0.9, told)).toBe(true)
  expect(await isGuardedAfter(retained + 1.1, told)).toBe(false)
})
