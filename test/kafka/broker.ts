/**
 * The broker that these tests run against: `npm run test:kafka` starts one and says where it is. Without one everything here is
 * skipped, with a loud line; with one that cannot do all that a suite needs that suite is, and fails in CI.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Producer } from '@platformatic/kafka'
import { openAdmin } from '../../lib/aws/kafka/kafka-admin.ts'
import { type KafkaConnection, openProducer, openReader } from '../../lib/aws/kafka/kafka-client.ts'
import { kafkaPasses } from '../../lib/aws/kafka/kafka-failure.ts'
import type { KafkaAdmin, KafkaProducer, KafkaReader, KafkaRecord } from '../../lib/aws/kafka/kafka-port.ts'

const environment = process.env
const address = environment.MILLRACE_TEST_KAFKA

/** A suite that needs a broker. */
export const withBroker: jest.Describe = address === undefined ? describe.skip : describe
/** Declares a suite, or skips it aloud: of what was asked for nothing may be left out unseen, and in CI nothing at all. */
const suiteWith =
  (variable: string, need: string) =>
  (name: string, tests: () => void): void => {
    const isThere = environment[variable] !== undefined
    if (!isThere && address !== undefined) {
      const line = `KAFKA BROKER WITHOUT ${need} (${variable}): "${name}" is SKIPPED. Run it with: npm run test:kafka, where MILLRACE_TEST_KAFKA is not set`
      if (environment.CI) throw new Error(line)
      process.stderr.write(`\n${line}\n`)
    }
    const suite = isThere ? describe : describe.skip
    suite(name, tests)
  }

/** A suite that stops and starts the broker, and so needs one of our own. */
export const withOwnBroker = suiteWith('KAFKA_NAME', 'A NAME, so that it cannot be stopped and started')
/** A suite that needs the listener with SASL/SCRAM over TLS. */
export const withSecureBroker = suiteWith('MILLRACE_TEST_KAFKA_SASL_SSL', 'A LISTENER FOR SASL/SCRAM OVER TLS')

if (address === undefined) {
  process.stderr.write('\nNO KAFKA BROKER: tests of Kafka are SKIPPED. Run them with: npm run test:kafka\n')
}

export const plain: KafkaConnection = { bootstrapBrokers: [address ?? '127.0.0.1:1'] }

/** The listener with SASL/SCRAM over TLS, its user and the authority that signed its certificate. */
export const secure = {
  address: environment.MILLRACE_TEST_KAFKA_SASL_SSL ?? '127.0.0.1:1',
  username: environment.MILLRACE_TEST_KAFKA_USER ?? '',
  password: environment.MILLRACE_TEST_KAFKA_PASSWORD ?? '',
  caPem: () => readFileSync(environment.MILLRACE_TEST_KAFKA_CA ?? '', 'utf8'),
}

export const never = (): AbortSignal => new AbortController().signal

/** `.ci/kafka VERB` for the broker at hand. */
export async function broker(verb: 'term' | 'kill' | 'restart' | 'pause' | 'resume'): Promise<void> {
  await promisify(execFile)(join(__dirname, '../../.ci/kafka'), [verb])
}

let made = 0
/** What is closed when the tests of a file are done. */
export const closing: (() => Promise<unknown>)[] = []

afterAll(async () => {
  for (const close of closing.splice(0)) await close()
})

export function producer(...options: Parameters<typeof openProducer> | []): KafkaProducer {
  const opened = openProducer(options[0] ?? plain, options[1])
  closing.push(() => opened.close())
  return opened
}

export function reader(connection: KafkaConnection = plain): KafkaReader {
  const opened = openReader(connection)
  closing.push(() => opened.close())
  return opened
}

let opened: KafkaAdmin | undefined

export function admin(): KafkaAdmin {
  if (opened === undefined) {
    const fresh = openAdmin(plain)
    closing.push(() => fresh.close())
    opened = fresh
  }
  return opened
}

/** Keeps everything unless it is told otherwise: records of long ago would be gone with the broker's next look, in the middle of a test. */
const keeps = { 'retention.ms': '-1' }

export async function newTopic(partitions = 1, configs: Readonly<Record<string, string>> = {}): Promise<string> {
  const topic = `t-${process.pid}-${Date.now()}-${++made}`
  await admin().createTopic(topic, { partitions, configs: { ...keeps, ...configs } }, never())
  return topic
}

/** Deletes a topic and makes one of its name, which is another. */
export async function recreate(
  topic: string,
  partitions = 1,
  configs: Readonly<Record<string, string>> = {},
): Promise<void> {
  const sees = reader()
  const before = await sees.topic(topic, never())
  await admin().deleteTopic(topic, never())
  // Its deletion takes a moment, in which it is still there.
  while ((await admin().createTopic(topic, { partitions, configs }, never())).id === before?.id) await Promise.resolve()
}

/** Does what is given while a transaction is open that has written a record to partition 0, and commits it then. */
export async function inOpenTransaction(topic: string, work: () => Promise<void>): Promise<void> {
  const writer = new Producer({ clientId: 'millrace-test', ...plain, idempotent: true, transactionalId: `tx-${topic}` })
  try {
    const transaction = await writer.beginTransaction()
    await transaction.send({ messages: [{ topic, partition: 0, value: Buffer.from('open') }] })
    try {
      await work()
    } finally {
      await transaction.commit()
    }
  } finally {
    await writer.close()
  }
}

/** Asks again while what it fails with passes by itself, as it does right after a restart. */
export async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask()
    } catch (failure) {
      if (!kafkaPasses(failure)) throw failure
    }
  }
}

/** Everything that a partition holds, by one reader. */
export async function recordsIn(topic: string, partition = 0, from = reader()): Promise<readonly KafkaRecord[]> {
  const records: KafkaRecord[] = []
  const end = (await patiently(() => from.offsetOf(topic, partition, 'latest', never()))) ?? 0n
  let next = (await patiently(() => from.offsetOf(topic, partition, 'earliest', never()))) ?? 0n
  while (next < end) {
    const page = await patiently(() => from.fetch(topic, partition, next, never()))
    records.push(...page.records)
    next = page.nextOffset
  }
  return records
}

export async function allRecords(topic: string, partitions: number): Promise<readonly KafkaRecord[]> {
  const from = reader()
  const all: KafkaRecord[] = []
  for (let partition = 0; partition < partitions; partition++) all.push(...(await recordsIn(topic, partition, from)))
  return all
}

export const text = (bytes: Uint8Array | null | undefined): string => String(Buffer.from(bytes ?? []))
