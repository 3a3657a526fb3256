import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { RetryableError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import { kafkaEvent, lambdaContext } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { Topology } from '../../lib/topology/topology.ts'

test.each(['step', 'sink'])(
  't-1@5 fails in its %s: it and the later ones of t-1 are reported, t-0 is done',
  async (where) => {
    const app = new Topology('app')
    const out = app.sink<string>('out')
    let failing = true
    app
      .source('t', text())
      .map((line) => {
        if (failing && where === 'step' && line === 't-1@5') throw new RetryableError('later')
        return line
      })
      .to(out)
    const ports = memoryPorts()
    const handler = streamHandler(app, { ports })
    if (where === 'sink') {
      ports.refuse(out, (line) =>
        failing && line === 't-1@5' ? { status: 'retry', error: new Error('full') } : undefined,
      )
    }
    const partition = (name: string) => [5, 6].map((offset) => ({ offset, value: `${name}@${offset}` }))
    const answer = await handler(kafkaEvent({ 't-0': partition('t-0'), 't-1': partition('t-1') }), lambdaContext())
    expect(answer).toEqual({
      batchItemFailures: [
        { itemIdentifier: { partition: 't-1', offset: 5 } },
        { itemIdentifier: { partition: 't-1', offset: 6 } },
      ],
    })
    // t-1@6 was not applied first, and offset 5 of one partition is not taken for that of the other.
    expect(ports.received(out)).toEqual(['t-0@5', 't-0@6'])

    failing = false
    expect(await handler(kafkaEvent({ 't-1': partition('t-1') }), lambdaContext())).toEqual({ batchItemFailures: [] })
    expect(ports.received(out)).toEqual(['t-0@5', 't-0@6', 't-1@5', 't-1@6'])
  },
)
