import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { RetryableError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { delivered, type Outcome, type Sink } from '../../lib/runtime/sink.ts'
import { kinesisEvent, lambdaContext, sequenceNumber } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { Topology } from '../../lib/topology/topology.ts'

const failures: Readonly<Record<string, () => unknown>> = {
  error: () => {
    throw new Error('no')
  },
  undefined: () => {
    throw undefined
  },
  rejection: () => Promise.reject(null),
  retryable: () => {
    throw new RetryableError('later')
  },
}

function pipeline(options: { readonly out?: Sink; readonly deadLetters?: Sink } = {}) {
  const app = new Topology('app')
  const out = app.sink<string>('out')
  app
    .source('lines', text())
    .map((line) => (failures[line]?.() ?? line) as string)
    .to(out)
  const memory = memoryPorts()
  const ports = {
    ...memory,
    sink: (name: string) => options.out ?? memory.sink(name),
    deadLetters: (options.deadLetters ?? memory.deadLetters) as never,
  }
  return {
    handler: streamHandler(app, { ports }),
    received: () => memory.received(out),
    deadLetters: () => memory.deadLettered,
  }
}

const lines = ['good', 'error', 'undefined', 'rejection', 'good']
const from = (index: number) => ({ batchItemFailures: [{ itemIdentifier: sequenceNumber(index) }] })

test('an Error, a thrown undefined and a rejected null each become a dead letter; their neighbours go on', async () => {
  const { handler, received, deadLetters } = pipeline()
  const answer = await handler(kinesisEvent(lines), lambdaContext())
  expect(JSON.stringify(answer)).toBe('{"batchItemFailures":[]}')
  expect(received()).toEqual(['good', 'good'])
  expect(deadLetters().map(({ position }) => position)).toEqual([1, 2, 3].map(sequenceNumber))
  expect(deadLetters().map(({ reason }) => reason.code)).toEqual(['step-failed', 'step-failed', 'asynchronous-step'])
})

test('where the dead letters cannot be written the first of them is reported, never an empty list', async () => {
  const failing: ((items: readonly unknown[]) => Promise<readonly Outcome[]>)[] = [
    () => Promise.reject(null),
    async () => [],
    async (items) => items.map((_, i) => (i === 0 ? delivered : { status: 'retry', error: new Error('throttled') })),
  ]
  const first = [1, 1, 2]
  for (const [i, deliver] of failing.entries()) {
    const { handler } = pipeline({ deadLetters: { prepare: ({ value }) => value, deliver } })
    expect(await handler(kinesisEvent(lines), lambdaContext())).toEqual(from(first[i] ?? 0))
  }
})

test('a sink that throws, whatever it throws, is reported from its first record', async () => {
  for (const thrown of [new Error('down'), undefined, null, Object.freeze({})]) {
    const out: Sink = { prepare: ({ value }) => value, deliver: () => Promise.reject(thrown) }
    expect(await pipeline({ out }).handler(kinesisEvent(lines), lambdaContext())).toEqual(from(0))
  }
})

test('a RetryableError is reported, and what lies before it stays done', async () => {
  const { handler, received } = pipeline()
  expect(await handler(kinesisEvent(['good', 'error', 'retryable', 'good']), lambdaContext())).toEqual(from(2))
  expect(received()).toEqual(['good'])
})
