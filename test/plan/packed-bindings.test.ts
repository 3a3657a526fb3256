import { packedBindings, unpackedBindings } from '../../lib/plan/packed-bindings.ts'
import type { AnnouncerBindings, KafkaCluster, StageBindings } from '../../lib/plan/stage-bindings.ts'

const cluster = (host: string): KafkaCluster => ({
  brokers: [`${host}:9096`],
  auth: { kind: 'none' },
  tls: { caPem: 'CERTIFICATE OF SOME KILOBYTES' },
})
const stage: StageBindings = {
  formatVersion: 1,
  topology: 'shop',
  sources: [{ name: 'orders', kind: 'kafka', topic: 'orders', cluster: cluster('a') }],
  sinks: [
    { name: 'paid', kind: 'kafka', topic: 'paid', cluster: cluster('a') },
    { name: 'ledger', kind: 'kafka', topic: 'ledger', cluster: cluster('b') },
  ],
  deadLetters: { kind: 'kafka', topic: 'failed', cluster: cluster('a') },
  feeds: [{ stage: 'by-customer', slots: 64, topic: 'by-customer-1', partitions: 16, cluster: cluster('a') }],
}
const announcer: AnnouncerBindings = {
  formatVersion: 1,
  topology: 'shop',
  announces: [
    { stage: 'orders', topic: 'orders', cluster: cluster('a'), state: { tableName: 'orders' } },
    { stage: 'by-customer', topic: 'by-customer-1', cluster: cluster('a'), state: { tableName: 'by-customer' } },
  ],
}

test.each([
  ['a stage', stage, 2],
  ['an announcer', announcer, 1],
])('%s is told each cluster once, and reads what it was told', (_, bindings, clusters) => {
  const text = JSON.stringify(packedBindings(bindings))
  expect(text.split('CERTIFICATE')).toHaveLength(clusters + 1)
  expect(unpackedBindings(JSON.parse(text))).toEqual(bindings)
})

test('bindings without Kafka are written as they are', () => {
  const { sources: _, sinks: __, deadLetters: ___, feeds: ____, ...rest } = stage
  const plain: StageBindings = { ...rest, sources: [], sinks: [], deadLetters: { kind: 's3', bucket: 'failed' } }
  expect(packedBindings(plain)).toBe(plain)
})

test('what was written whole is read as it is, and so is what are no bindings', () => {
  expect(unpackedBindings(stage)).toBe(stage)
  for (const nothing of [undefined, null, 1, 'text', [], {}]) expect(unpackedBindings(nothing)).toEqual(nothing)
})

test('what only the deployment knows is left to it', () => {
  class Token {}
  const retentionMs = new Token() as never
  expect(packedBindings({ ...stage, retentionMs })).toMatchObject({ retentionMs: expect.any(Token) })
})
