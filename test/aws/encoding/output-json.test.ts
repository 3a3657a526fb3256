/** What sinks write as JSON is what the value says, or a dead letter that says why not. */
import { jsonText } from '../../../lib/aws/encoding/output-json.ts'
import { eventBridgeSink } from '../../../lib/aws/sinks/eventbridge.ts'
import { firehoseSink } from '../../../lib/aws/sinks/firehose.ts'
import { kinesisSink } from '../../../lib/aws/sinks/kinesis.ts'
import { sqsSink } from '../../../lib/aws/sinks/sqs.ts'
import type { Output } from '../../../lib/runtime/sink.ts'
import { outputs, testPorts } from '../sink-worlds.ts'

const client = {
  send: async () => {
    throw new Error('nothing is sent')
  },
}
const common = { client, ...testPorts() }
const sinks: readonly (readonly [string, { prepare(output: Output<unknown>): unknown }])[] = [
  ['Kinesis', kinesisSink<unknown>({ ...common, streamName: 's' })],
  ['SQS', sqsSink({ ...common, queueUrl: 'q', origin: 'app/out', fifo: false })],
  [
    'EventBridge',
    eventBridgeSink({ ...common, eventBusName: 'b', origin: 'app/out', source: 'app', detailType: 'out' }),
  ],
  ['Firehose', firehoseSink({ ...common, deliveryStreamName: 'd', delimiter: '\n' })],
]

describe.each(sinks)('the %s sink', (_, sink) => {
  const written = (value: unknown) => sink.prepare(outputs([value], () => 'k')[0] as Output<unknown>)

  test.each([
    ['a bigint', { order: { cents: [1n] } }, '"order.cents.0" is a bigint'],
    ['bytes', { order: { raw: Uint8Array.of(1, 2) } }, '"order.raw" is bytes'],
    ['empty bytes', { raw: new Uint8Array() }, '"raw" is bytes'],
    ['a Buffer, whose toJSON makes numbers of it', { raw: Buffer.from('a') }, '"raw" is bytes'],
    ['numbers in a typed array', { rates: Float64Array.of(1.5) }, '"rates" is a Float64Array'],
  ])('makes %s a dead letter that names the place', (_kind, value, message) => {
    expect(() => written(value)).toThrow(expect.objectContaining({ name: 'TerminalError', code: 'not-serialisable' }))
    expect(() => written(value)).toThrow(message)
  })

  test('writes what says itself how it is written', () => {
    expect(() => written({ price: { cents: 1n, toJSON: () => '1' } })).not.toThrow()
  })
})

test('a bigint or bytes alone are refused, too, and what a toJSON gives is written', () => {
  expect(() => jsonText(1n)).toThrow('it is a bigint: map it to text, or to a number that is exact')
  expect(() => jsonText(Buffer.from('a'))).toThrow('it is bytes: map them to text, in base64 for example')
  expect(jsonText({ a: [{ cents: 2n, toJSON: () => ({ cents: '2' }) }, 1] })).toBe('{"a":[{"cents":"2"},1]}')
})
