import { z } from 'zod'
import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { json } from '../../lib/core/format.ts'
import { kinesisEvent, lambdaContext } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { Topology } from '../../lib/topology/topology.ts'

const gzip = 'H4sIAAAAAAAAA6tWykxRslJKVNJRKlOyMqwFAPsGbd8QAAAA'
const marked = '77u/eyJpZCI6ImEiLCJ2IjoxfQ=='
const invalid = ['eyJpZCI6Iv8iLCJ2IjoxfQ==', 'eyJpZCI6Iv4iLCJ2IjoxfQ==']

/** Sends payloads, given in base64, through the real handler. */
async function run(compression: 'gzip' | 'none', payloads: readonly string[]) {
  const app = new Topology('raw-bytes')
  const out = app.sink<string>('out')
  const schema = z.object({ id: z.string(), v: z.number() })
  app
    .source('in', schema, { format: json({ compression }) })
    .map(({ id }) => id)
    .to(out)
  const ports = memoryPorts()
  const event = kinesisEvent(payloads.map((payload) => Buffer.from(payload, 'base64')))
  expect(await streamHandler(app, { ports })(event, lambdaContext())).toEqual({ batchItemFailures: [] })
  return { received: ports.received(out), dead: ports.deadLettered }
}

describe('C03 Bytes', () => {
  test('gzip is decoded where the source says gzip', async () => {
    expect(await run('gzip', [gzip])).toEqual({ received: ['a'], dead: [] })
  })

  test('gzip is a dead letter, with its bytes, where the source does not say so', async () => {
    const { received, dead } = await run('none', [gzip, marked])
    expect(received).toEqual(['a'])
    expect(dead).toMatchObject([{ payload: gzip, reason: { code: 'not-utf8' } }])
  })

  test('what is not gzip is a dead letter where the source says gzip', async () => {
    const { received, dead } = await run('gzip', [marked, gzip])
    expect(received).toEqual(['a'])
    expect(dead).toMatchObject([{ payload: marked, reason: { code: 'not-gzip' } }])
  })

  test('a byte-order mark is stripped', async () => {
    expect(await run('none', [marked])).toEqual({ received: ['a'], dead: [] })
  })

  test('invalid UTF-8 is never one key with other invalid UTF-8: each is a dead letter with its own bytes', async () => {
    const { received, dead } = await run('none', [...invalid, marked])
    expect(received).toEqual(['a'])
    expect(dead.map(({ payload, reason }) => [payload, reason.code])).toEqual(
      invalid.map((bytes) => [bytes, 'not-utf8']),
    )
  })
})
