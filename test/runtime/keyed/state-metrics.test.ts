/** S6: how much a keyed stage holds is measured with every batch: the largest item, and the open windows of a key. */
import { z } from 'zod'
import {
  count,
  type Duration,
  days,
  epochMs,
  minutes,
  session,
  streamHandler,
  Topology,
  tumbling,
  valueState,
  type WindowResult,
} from '../../../lib/index.ts'
import { kinesisEvent, lambdaContext, memoryPorts } from '../../../lib/testing/index.ts'

const startMs = Date.UTC(2026, 2, 1)
const schema = z.object({ key: z.string(), minute: z.number(), text: z.string().optional() })
type Value = z.infer<typeof schema>
const eventTime = epochMs((value: Value) => startMs + value.minute * 60_000)

/** What the keyed stage of a topology measures with each batch of values. */
async function gaugesOf(app: Topology, batches: readonly (readonly Value[])[]) {
  const ports = memoryPorts()
  const handler = streamHandler(app, { ports })
  const measured: { readonly openWindows: number | undefined; readonly largestItem: number | undefined }[] = []
  let firstIndex = 0
  for (const values of batches) {
    await handler(kinesisEvent([...values], { firstIndex }), lambdaContext())
    firstIndex += values.length
    for (const event of ports.takeFrames('by-key')) {
      expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [] })
      measured.push({ openWindows: ports.measured('open-windows'), largestItem: ports.measured('largest-item') })
    }
  }
  return measured
}

function windowsOf(windows: ReturnType<typeof tumbling> | ReturnType<typeof session>) {
  const app = new Topology('windows-app')
  const { results, late } = app
    .source('values', schema, { eventTime })
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .window(windows)
    .aggregate('counted', { n: count() }, { emit: 'final' })
  results.to(app.sink<WindowResult<string, { n: number }>>('results'))
  late.to(app.sink<Value>('late'))
  return app
}
const grace: { readonly grace: Duration } = { grace: days(1) }
const at = (key: string, ...times: readonly number[]): Value[] => times.map((minute) => ({ key, minute }))

test.each([
  ['tumbling', tumbling(minutes(5), grace)],
  ['session', session(minutes(5), grace)],
])('open-windows is the most windows that one key of the batch holds: %s', async (_, windows) => {
  const measured = await gaugesOf(windowsOf(windows), [at('a', 0, 1), [...at('b', 0), ...at('a', 10, 21)], at('b', 11)])
  expect(measured.map(({ openWindows }) => openWindows)).toEqual([1, 3, 2])
})

test('largest-item is the largest item that the batch wrote, in bytes; a stage without windows has no open ones', async () => {
  const app = new Topology('texts-app')
  app
    .source('values', schema, { eventTime })
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .process('texts', {
      state: { text: valueState<string>() },
      step({ text = '' }, { state }) {
        state.text.set((state.text.get() ?? '') + text)
      },
    })
  const text = (key: string, length: number): Value => ({ key, minute: 0, text: 'x'.repeat(length) })
  const measured = await gaugesOf(app, [[text('a', 5_000), text('b', 10)], [text('a', 300_000)], [text('b', 10)]])
  const [first = 0, second = 0, third = 0] = measured.map(({ largestItem }) => largestItem)
  // What the runner keeps beside the value is a few dozen bytes.
  expect([first - (first % 1_000), second - (second % 1_000), third - (third % 1_000)]).toEqual([5_000, 305_000, 0])
  expect(measured.map(({ openWindows }) => openWindows)).toEqual([undefined, undefined, undefined])
})
