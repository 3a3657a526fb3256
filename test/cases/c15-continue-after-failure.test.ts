/** The stateless half of the case: A3 never comes out before A2. The reducer's half needs state. */
import { streamHandler } from '../../lib/aws/stream-handler.ts'
import { RetryableError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { kinesisEvent, lambdaContext, sequenceNumber } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { Topology } from '../../lib/topology/topology.ts'

test.each<[string, () => Error, number]>([
  ['an Error, which is tried again in the invocation', () => new Error('once'), 1],
  ['a RetryableError, which goes back to Lambda', () => new RetryableError('once'), 2],
])('A2 throws %s: the order stays A1, A2, A3', async (_what, error, invocations) => {
  const app = new Topology('app')
  const out = app.sink<string>('out')
  let thrown = false
  app
    .source('lines', text())
    .map((line) => {
      if (line !== 'A2' || thrown) return line
      thrown = true
      throw error()
    })
    .to(out)
  const ports = memoryPorts()
  const handler = streamHandler(app, { ports })
  const lines = ['A1', 'A2', 'A3']
  let pending = 0
  for (let invocation = 1; ; invocation++) {
    const { batchItemFailures } = await handler(
      kinesisEvent(lines.slice(pending), { firstIndex: pending, partitionKey: () => 'A' }),
      lambdaContext(),
    )
    if (batchItemFailures.length === 0) {
      expect(invocation).toBe(invocations)
      break
    }
    pending = lines.findIndex((_, i) => sequenceNumber(i) === batchItemFailures[0]?.itemIdentifier)
    expect(pending).toBe(1)
    expect(ports.received(out)).toEqual(['A1'])
  }
  expect(ports.received(out)).toEqual(lines)
  expect(ports.deadLettered).toEqual([])
})
