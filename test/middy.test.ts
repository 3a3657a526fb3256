import { streamHandler, Topology, text } from '../lib/index.ts'
import { type MiddlewareObj, middy } from '../lib/middy.ts'
import { kinesisEvent, lambdaContext, memoryPorts } from '../lib/testing/index.ts'

describe('middy', () => {
  it('wraps the handler of a topology, and its middleware sees the event and the answer', async () => {
    const app = new Topology('lines-app')
    const lines = app.source('lines', text())
    const out = app.sink<string>('out')
    lines.to(out)
    const ports = memoryPorts()
    const seen: unknown[] = []
    const watch: MiddlewareObj = {
      before: ({ event }) => void seen.push(event),
      after: ({ response }) => void seen.push(response),
    }
    const event = kinesisEvent(['one'])

    const answer = await middy().use(watch).handler(streamHandler(app, { ports }))(event, lambdaContext())

    expect(answer).toEqual({ batchItemFailures: [] })
    expect(ports.received(out)).toEqual(['one'])
    expect(seen).toEqual([event, answer])
  })
})
