import { z } from 'zod'
import { kafkaRecords } from '../../lib/aws/events/kafka-records.ts'
import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { json } from '../../lib/core/format.ts'
import { lambdaContext } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'
import { Topology } from '../../lib/topology/topology.ts'

const timestamp = 1671562498449

/** The case as it came, with a good record on either side. `JSON.parse` because Lambda's event is JSON, too. */
const event = (eventSource: string) =>
  JSON.parse(`{"eventSource":"${eventSource}","records":{"t-0":[
    {"offset":0,"timestamp":${timestamp},"key":"azA=","value":"eyJ2IjowfQ=="},
    {"offset":1,"timestamp":${timestamp},"key":"azE=","value":null},
    {"offset":2,"timestamp":${timestamp},"key":"azE="},
    {"offset":3,"timestamp":${timestamp},"key":"azE=","value":""},
    {"offset":4,"timestamp":${timestamp},"key":"azQ=","value":"eyJ2Ijo0fQ==","headers":[{"h":[104,-61,-85]}]}]}}`)

function topology() {
  const app = new Topology('kafka-shapes')
  const source = app.source('t', z.object({ v: z.union([z.number(), z.string()]) }), {
    format: json(),
    onDelete: (key) => ({ v: `delete of ${key}` }),
  })
  const out = app.sink<string>('out')
  source.map(({ v }, record) => `${record.position}: ${v} ${record.header('h') ?? ''}`.trim()).to(out)
  return { app, out }
}

describe('C01 Kafka record shapes', () => {
  test.each(['aws:kafka', 'SelfManagedKafka'])(
    '%s: nulls are deletes, an empty value is a dead letter, the batch goes on',
    async (eventSource) => {
      const { app, out } = topology()
      const ports = memoryPorts()
      expect(await streamHandler(app, { ports })(event(eventSource), lambdaContext())).toEqual({
        batchItemFailures: [],
      })
      expect(ports.received(out)).toEqual(['0: 0', '1: delete of k1', '2: delete of k1', '4: 4 hë'])
      expect(ports.deadLettered).toMatchObject([
        { partition: 't-0', position: '3', payload: '', key: 'azE=', reason: { code: 'empty', phase: 'decode' } },
      ])
    },
  )

  test('header bytes are the same signed and unsigned', () => {
    const withHeader = (bytes: number[]) =>
      kafkaRecords(
        {
          eventSource: 'aws:kafka',
          records: { 't-0': [{ offset: 0, timestamp, value: '', headers: [{ h: bytes }] }] },
        },
        () => 't',
      )[0]?.records[0]?.header('h')
    expect(withHeader([104, -61, -85])).toBe('hë')
    expect(withHeader([104, 195, 171])).toBe('hë')
  })
})
