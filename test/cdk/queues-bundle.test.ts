/** What a function that is bound to queues and Firehose is made of: its bundle, as it is deployed. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { App, Duration, Stack } from 'aws-cdk-lib'
import { DeliveryStream } from 'aws-cdk-lib/aws-kinesisfirehose'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { bind, FirehoseSink, SqsSink, SqsSource } from '../../lib/cdk/index.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'
import { messageId, sqsEvent } from '../../lib/testing/index.ts'
import { invokeBundle } from './bundled-handler.ts'
import { shopIn } from './world.ts'

const outdir = mkdtempSync(join(tmpdir(), 'millrace-queues-'))
let file: string
let code: string

beforeAll(() => {
  const app = new App({ outdir })
  const stack = new Stack(app, 'Bundled')
  const queue = (id: string) => new Queue(stack, id, { visibilityTimeout: Duration.minutes(7) })
  shopIn(stack, ({ orders, refunds, ledger, audit }) => ({
    bind: [
      bind(orders, new SqsSource(queue('Orders'))),
      bind(refunds, new SqsSource(queue('Refunds'))),
      bind(ledger, new SqsSink(queue('Ledger'))),
      bind(audit, new FirehoseSink(DeliveryStream.fromDeliveryStreamName(stack, 'Audit', 'audit'))),
    ],
  }))
  const { directory } = app.synth()
  // The stages differ in their sinks, so each has a bundle of its own: the larger one has both sinks.
  const bundles = readdirSync(directory)
    .filter((name) => name.startsWith('asset.'))
    .map((name) => join(directory, name, 'index.mjs'))
    .map((path) => ({ path, text: readFileSync(path, 'utf8') }))
    .sort((one, other) => other.text.length - one.text.length)
  file = bundles[0]?.path ?? ''
  code = bundles[0]?.text ?? ''
}, 120_000)

afterAll(() => rmSync(outdir, { recursive: true }))

// Counted, because a failing match would print the whole bundle.
const occurrences = (text: string) => code.split(text).length - 1

test('it holds the adapters of the sinks that are bound, and none of the others', () => {
  expect(occurrences('PutRecordBatch')).toBeGreaterThan(0)
  expect(occurrences('millrace-output')).toBeGreaterThan(0)
  expect(occurrences('PutEvents')).toBe(0)
  expect(occurrences('PutRecords')).toBe(0)
  expect(occurrences('UpdateItem')).toBe(0)
})

test('it runs by itself: messages whose outputs no sink takes go back, by their ids', async () => {
  const bindings: StageBindings = {
    formatVersion: 1,
    topology: 'shop',
    sources: [{ name: 'orders', kind: 'sqs', queueArn: 'arn:aws:sqs:us-east-1:000000000000:orders' }],
    sinks: [
      { name: 'ledger', kind: 'sqs', queueUrl: 'http://127.0.0.1:1/ledger', fifo: false },
      { name: 'audit-trail', kind: 'firehose', deliveryStreamName: 'audit', delimiter: '' },
    ],
    deadLetters: { kind: 'sqs', queueUrl: 'http://127.0.0.1:1/queue', offloadBucket: 'payloads' },
  }
  const event = sqsEvent(['one', 'two'], { source: { name: 'orders' } })
  const environment = { MILLRACE_BINDINGS: JSON.stringify(bindings), AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }
  const answer = await invokeBundle(file, event, environment, 1_500)
  expect(answer).toEqual({ batchItemFailures: [0, 1].map((index) => ({ itemIdentifier: messageId(index) })) })
}, 30_000)
