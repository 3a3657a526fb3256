/** C15: A3 never comes out before A2, and no reducer sees it before, whatever A2 does. */
import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { RetryableError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { kinesisEvent, lambdaContext, sequenceNumber } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { StageOnTable, stores } from './stage-on-table.ts'

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
  const handler = streamHandler(app, { ports: { ...ports, checksPurity: false } })
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

describe.each(stores)('in a keyed stage on the %s store', (store) => {
  test.each<[string, 'map' | 'step', () => Error]>([
    ['an Error in the keyed step', 'step', () => new Error('once')],
    ['a RetryableError in the keyed step', 'step', () => new RetryableError('once')],
    ['an Error before the keyBy', 'map', () => new Error('once')],
    ['a RetryableError before the keyBy', 'map', () => new RetryableError('once')],
  ])('A2 throws %s: the reducer appends A1, A2, A3 in this order, each once', async (_what, where, error) => {
    const app = new Topology('app')
    const out = app.sink<string>('out')
    let left = 1
    const failOnce = (line: string, at: 'map' | 'step') => {
      if (at !== where || !line.endsWith('A2') || left === 0) return
      left -= 1
      throw error()
    }
    app
      .source('lines', text())
      .map((line) => {
        failOnce(line, 'map')
        return line
      })
      .keyBy('by-key', () => 'A')
      .reduce(
        'appended',
        (all, line) => {
          failOnce(line, 'step')
          return `${all},${line}`
        },
        { emit: 'on-update' },
      )
      .to(out)
    const stage = new StageOnTable(app, store, { checksPurity: false })
    await stage.send(kinesisEvent(['A1', 'A2', 'A3']))
    await stage.send(kinesisEvent(['A4'], { firstIndex: 3 }))
    expect(stage.ports.received(out)).toEqual(['A1', 'A1,A2', 'A1,A2,A3', 'A1,A2,A3,A4'])
    expect(stage.ports.deadLettered).toEqual([])
    // It did fail, once, and came again.
    expect(stage.answers.flat()).toHaveLength(1)
  })
})
