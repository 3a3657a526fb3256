import type { KinesisStreamEvent } from 'aws-lambda'
import { handWritten } from '../../bench/stateless/hand-written.ts'
import { app, type Converted, converted, paymentsOf } from '../../bench/stateless/pipeline.ts'
import { streamHandler } from '../../lib/index.ts'
import { kinesisEvent, lambdaContext, memoryPorts, sequenceNumber } from '../../lib/testing/index.ts'

/** What the hand-written loop answers and what it would have put. */
async function byHand(event: KinesisStreamEvent) {
  const put: unknown[] = []
  const handler = handWritten(async ({ Records = [] }) => {
    for (const { Data } of Records) put.push(JSON.parse(Buffer.from(Data as Uint8Array).toString()))
    return { FailedRecordCount: 0 }
  })
  return { answer: await handler(event), put }
}

async function byMillrace(event: KinesisStreamEvent) {
  const ports = memoryPorts()
  await streamHandler(app, { ports })(event, lambdaContext())
  return { put: ports.received<Converted>(converted), refused: ports.deadLettered.length }
}

const valid = paymentsOf(3, 200)
const text = JSON.stringify(valid[0])

describe('the hand-written loop of bench:stateless', () => {
  test('puts what Millrace puts', async () => {
    const event = kinesisEvent(paymentsOf(1_200, 300))
    const hand = await byHand(event)
    expect(hand.answer).toEqual({ batchItemFailures: [] })
    expect(hand.put).toEqual((await byMillrace(event)).put)
    expect(hand.put).toHaveLength(1_200)
  })

  test.each([
    ['cut JSON', text.slice(0, -2)],
    ['an empty payload', ''],
    ['invalid UTF-8', Buffer.concat([Buffer.from('{"id":"'), Buffer.from([0xff]), Buffer.from(text.slice(8))])],
    ['an integer beyond 2^53', text.replace(/"at":\d+/, '"at":1524831183200260097')],
    ['a key named __proto__', text.replace('{', '{"__proto__":{"polluted":true},')],
    ['an output that is infinite', text.replace(/"amount":[\d.]+/, '"amount":1e308')],
    ['the wrong shape', text.replace(/"amount":[\d.]+/, '"amount":"much"')],
  ])('refuses %s, as Millrace does', async (_, payload) => {
    const event = kinesisEvent([valid[1], payload])
    const hand = await byHand(event)
    const millrace = await byMillrace(event)
    expect(hand.answer).toEqual({ batchItemFailures: [{ itemIdentifier: sequenceNumber(1) }] })
    expect(millrace.refused).toBe(1)
    expect(hand.put).toEqual(millrace.put)
  })

  test('reads a byte-order mark as Millrace does', async () => {
    const event = kinesisEvent([Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)])])
    expect((await byHand(event)).put).toEqual((await byMillrace(event)).put)
    expect((await byHand(event)).put).toHaveLength(1)
  })
})
