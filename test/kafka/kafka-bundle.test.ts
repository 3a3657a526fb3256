/** A function that is bound to Kafka, as it is deployed: one file, run where no package is near. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundlingFor } from '../../lib/cdk/bundle.ts'
import { bundleHandler } from '../../lib/local/run/handler-bundle.ts'
import { bindingsVariable, type StageBindings } from '../../lib/plan/stage-bindings.ts'
import { kafkaEvent } from '../../lib/testing/index.ts'
import { invokeBundle } from '../cdk/bundled-handler.ts'
import { newTopic, plain, recordsIn, text, withBroker } from './broker.ts'

jest.setTimeout(120_000)

const directory = mkdtempSync(join(tmpdir(), 'millrace-kafka-'))
afterAll(() => rmSync(directory, { recursive: true }))

const cluster = { brokers: plain.bootstrapBrokers as string[], auth: { kind: 'none' }, tls: false } as const
const bindings = (topic: string): StageBindings => ({
  formatVersion: 1,
  topology: 'pass-on',
  sources: [{ name: 'in', kind: 'kafka', topic: 'in', mode: 'provisioned' }],
  sinks: [{ name: 'out', kind: 'kafka', topic, cluster }],
  deadLetters: { kind: 'kafka', topic: 'dead', cluster },
})
const entry = join(__dirname, 'fixtures/pass-on.ts')

withBroker('the bundle of a function', () => {
  test('writes to its topic by itself', async () => {
    const topic = await newTopic()
    const file = await bundleHandler({ entry, directory: join(directory, 'kafka'), bindings: bindings(topic) })
    const event = kafkaEvent({ 'in-0': [{ offset: 5, value: 'hello' }] }, { selfManaged: true })
    const environment = {
      [bindingsVariable]: JSON.stringify(bindings(topic)),
      AWS_REGION: 'eu-central-1',
      AWS_LAMBDA_FUNCTION_NAME: 'pass-on',
    }
    expect(await invokeBundle(file, event, environment, 30_000)).toEqual({ batchItemFailures: [] })
    expect((await recordsIn(topic)).map(({ value }) => text(value))).toEqual(['"hello"'])
  })
})

test('without anything bound to Kafka a bundle has nothing of its client', async () => {
  const unbound: StageBindings = {
    ...bindings('any'),
    sinks: [{ name: 'out', kind: 'kinesis', streamName: 'out', ordering: 'none' }],
    deadLetters: { kind: 'sqs', queueUrl: 'https://queue' },
  }
  const file = await bundleHandler({ entry, directory: join(directory, 'kinesis'), bindings: unbound })
  expect(readFileSync(file, 'utf8').split('PLT_KFK_').length - 1).toBe(0)
  expect(bundlingFor(unbound, entry).esbuildArgs).toBeUndefined()
  expect(bundlingFor(bindings('any'), entry, { esbuildArgs: { '--keep-names': true } }).esbuildArgs).toEqual({
    '--alias:@platformatic/wasm-utils': require.resolve('@platformatic/wasm-utils/bundled'),
    '--keep-names': true,
  })
})
