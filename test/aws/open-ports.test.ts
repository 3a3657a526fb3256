import { openPorts } from '../../lib/aws/open-ports.ts'
import { plan } from '../../lib/plan/plan.ts'
import { bindingsVariable, type StageBindings } from '../../lib/plan/stage-bindings.ts'
import { rides } from '../testing/rides.ts'

const streamArn = (name: string) => `arn:aws:kinesis:us-east-1:000000000000:stream/${name}`
const never = new AbortController().signal

function open(change: Partial<StageBindings>) {
  const bindings: StageBindings = {
    formatVersion: 1,
    topology: 'rides-app',
    sources: [{ name: 'by-driver', kind: 'kinesis', streamArn: streamArn('by-driver') }],
    sinks: [],
    deadLetters: { kind: 'kinesis', streamName: 'dead' },
    ...change,
  }
  return openPorts(plan(rides().app), { [bindingsVariable]: JSON.stringify(bindings) })
}

const feeds = [{ stage: 'by-city', slots: 64, streamArn: streamArn('by-city') }]

test('a keyed stage has its table, the lineage of its stream, and a publisher and the lineage for what it feeds', async () => {
  const ports = await open({ state: { tableName: 'rides' }, feeds })
  expect(ports.state?.('by-driver')).toBeDefined()
  expect(ports.lineage?.('by-driver')).toBeDefined()
  expect(ports.frames?.('by-city')).toBeDefined()
  expect(ports.lineage?.('by-city')).toBeDefined()
  for (const port of [ports.state?.('by-city'), ports.frames?.('by-driver')]) expect(port).toBeUndefined()
  expect(ports.sourceOf({ kind: 'kinesis', arn: streamArn('by-driver') }, [])).toBe('by-driver')
  expect(ports.checksPurity).toBeUndefined()
})

test('a function that was bound before there were keyed stages has none of that', async () => {
  const ports = await open({})
  expect(ports.state?.('by-driver')).toBeUndefined()
  expect(ports.lineage?.('by-driver')).toBeUndefined()
  expect(ports.frames?.('by-city')).toBeUndefined()
})

test('the partitions of a Kafka topic that feeds a keyed stage have no parents and are never drained', async () => {
  const ports = await open({
    state: { tableName: 'rides' },
    sources: [{ name: 'rides', kind: 'kafka', topic: 'rides' }],
  })
  const lineage = ports.lineage?.('rides')
  expect(await lineage?.describe('rides-0', never)).toMatchObject({ parents: [] })
  expect(await lineage?.isDrained('rides-0', undefined, never)).toBe(false)
  // An empty list would say that every partition is gone.
  await expect(lineage?.list(never)).rejects.toThrow('the partitions of a Kafka topic cannot be listed')
})
