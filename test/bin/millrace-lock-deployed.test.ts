/** `millrace lock --check --stack`: what is to be deployed, beside what is deployed: a stand-in for AWS with the embedded tables. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { stateStore } from './embedded-tables.ts'
import { MillraceProject } from './millrace-project.ts'
import { StackStandIn } from './stack-stand-in.ts'
import { onStream, streamArnOf } from './visits-app.ts'

const timeoutMs = 240_000
const { signal } = new AbortController()

let project: MillraceProject
let stack: StackStandIn
let dynamodb: DynamoDBClient

beforeEach(async () => {
  project = await MillraceProject.create()
  stack = await StackStandIn.start()
  dynamodb = localDynamoDBClient(stack.url)
}, timeoutMs)
afterEach(async () => {
  dynamodb.destroy()
  await project.clear()
  await stack.close()
})

interface Version {
  readonly slots?: number
  readonly stage?: string
  readonly state?: string
  readonly sinks?: readonly string[]
}

/** Writes the topology, and a lock file that was made anew: it knows nothing of what was before. */
async function lock({ slots = 4, stage = 'by-guest', state = 'valueState<number>()', sinks = ['out'] }: Version = {}) {
  await project.write(
    'topology.ts',
    `import { mapState, text, Topology, valueState } from 'millrace'
     export const app = new Topology('visits-app')
     const source = app.source('visits', text())
     for (const sink of ${JSON.stringify(sinks)}) source.to(app.sink<string>(sink))
     source.keyBy('${stage}', (line) => line, { slots: ${slots} }).process('guest', {
       state: { seen: ${state} },
       step: () => undefined,
     })`,
  )
  await project.write('millrace.lock.json', '{"formatVersion":1,"topologies":{}}')
  expect(await project.result('lock', 'topology.ts')).toMatchObject({ code: 0, stderr: '' })
}

const check = (...args: readonly string[]) =>
  project.result('lock', '--check', '--stack', 'Visits', '--endpoint', stack.url, ...args)

/** What a deployment of the first version has left, and the first batch of its keyed stage. */
async function deploy(manifest: { readonly [name: string]: unknown } = {}): Promise<void> {
  const sinks = [{ name: 'out', kind: 'custom' as const }]
  const feeds = [{ stage: 'by-guest', slots: 4, streamArn: streamArnOf('by-guest') }]
  stack.deploy('fn-visits', { ...onStream('visits'), sinks, feeds }, streamArnOf('visits'))
  stack.deploy('fn-by-guest', onStream('by-guest'), streamArnOf('by-guest'))
  const store = await stateStore(dynamodb, 'by-guest')
  const states = { 'guest.seen': { kind: 'value', version: 1 }, 'guest.gone': { kind: 'list', version: 1 } }
  const whole = { format: 1, topology: 'visits-app', stage: 'by-guest', slots: 4, states, ...manifest }
  expect(await store.writeManifest(whole as never, signal)).toBe(true)
}

test(
  'what only adds passes, and so does a first deployment',
  async () => {
    await lock()
    const first = await project.result('lock', '--check', '--stack', 'Other', '--endpoint', stack.url)
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(first.stdout).toContain('There is no stack Other: nothing is deployed that could be lost.')
    await deploy()
    await lock({ sinks: ['out', 'more'], state: 'valueState<number>({ version: 2, upcast: { 1: (n) => n } })' })
    expect(await check()).toMatchObject({ code: 0, stderr: '' })
    expect((await check()).stdout).toContain('visits-app (stack Visits): 2 deployed stages compared, nothing is lost\n')
  },
  timeoutMs,
)

test(
  'a state of another kind than its table has, other slots, a stage and a sink that go: each is named, with what to do',
  async () => {
    await deploy()
    await lock({ slots: 8, state: 'mapState<number>()', sinks: [] })
    const refused = await check()
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('a deployment would lose or misread what stack Visits keeps:')
    expect(refused.stderr).toContain('- stage "by-guest" has 8 slots instead of 4')
    expect(refused.stderr).toContain('- sink "out" is gone')
    expect(refused.stderr).toContain(
      '- state "guest.seen" of stage "by-guest" is of the kind "map", but its table has values of it that are of the kind "value": go back to that kind, or give the new state another name.',
    )
    expect(refused.stderr).not.toContain('guest.gone')

    await lock({ stage: 'by-visitor' })
    const gone = await check()
    expect(gone.stderr).toContain('- stage "by-guest" is gone: its state (guest.gone, guest.seen)')
    expect(await check('--accept', 'by-guest')).toMatchObject({ code: 0, stderr: '' })
    expect(await check('--accept', 'by-guest', '--accept', 'other')).toMatchObject({ code: 2 })
  },
  timeoutMs,
)

test(
  'a version that was lowered, a table of another stage, and an application that the lock does not know are refused',
  async () => {
    await deploy({ states: { 'guest.seen': { kind: 'value', version: 3 } } })
    stack.deploy('fn-other', {
      ...{ formatVersion: 1, topology: 'old-app', sinks: [], deadLetters: { kind: 'kinesis', streamName: 'dead' } },
      sources: [{ name: 'visits', kind: 'kinesis', streamArn: streamArnOf('visits') }],
    })
    await lock()
    const { code, stderr } = await check()
    expect(code).toBe(1)
    expect(stderr).toContain('- state "guest.seen" of stage "by-guest" has the version 1 instead of 3')
    expect(stderr).toContain('- stack Visits runs topology "old-app", which the lock file does not know')
    expect((await check('--accept', 'old-app')).stderr).not.toContain('- stack Visits runs')

    await project.write('millrace.lock.json', '{"formatVersion":1,"topologies":{}}')
    expect(await check('topology.ts')).toMatchObject({ code: 1, stderr: expect.stringContaining('commit it') })
    expect(await project.result('lock', '--stack', 'Visits')).toMatchObject({ code: 2 })
  },
  timeoutMs,
)

test(
  'an aggregator of another kind than its table has is named, with what to do; one more passes, and so does a table that records none',
  async () => {
    const windows = (aggregators: string) =>
      project.write(
        'topology.ts',
        `import { count, minutes, sum, text, Topology, tumbling } from 'millrace'
         export const app = new Topology('visits-app')
         const out = app.sink<unknown>('out')
         const perGuest = app.source('visits', text()).keyBy('by-guest', (line) => line, { slots: 4 })
           .window(tumbling(minutes(5), { grace: minutes(1) }))
           .aggregate('guest', ${aggregators}, { emit: 'final' })
         perGuest.results.to(out)
         perGuest.late.to(out)`,
      )
    const locked = async (aggregators: string) => {
      await windows(aggregators)
      await project.write('millrace.lock.json', '{"formatVersion":1,"topologies":{}}')
      expect(await project.result('lock', 'topology.ts')).toMatchObject({ code: 0, stderr: '' })
    }
    const state = { kind: 'packed', version: 1, windows: 'slices' }
    await deploy({ states: { guest: { ...state, aggregators: { x: 'count', gone: 'mean' } } } })
    await locked('{ y: sum((line) => line.length), x: count() }')
    expect(await check()).toMatchObject({ code: 0, stderr: '' })

    await locked('{ x: sum((line) => line.length) }')
    const refused = await check()
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain(
      '- aggregator "x" of state "guest" of stage "by-guest" is sum, but its table has values of it that are count: go back to that, or give the new aggregator another name.',
    )
    expect(await check('--accept', 'guest')).toMatchObject({ code: 0, stderr: '' })

    const store = await stateStore(dynamodb, 'by-guest')
    const found = await store.readManifest(signal)
    const beside = { ...(found as object), states: { guest: state }, aggregators: { guest: { x: 'count' } } }
    expect(await store.replaceManifest(found as never, beside as never, signal)).toBe(true)
    expect(await check()).toEqual(refused)
    const { aggregators: _, ...before } = beside
    expect(await store.replaceManifest(beside as never, before as never, signal)).toBe(true)
    expect(await check()).toMatchObject({ code: 0, stderr: '' })
  },
  timeoutMs,
)

test(
  'a table that is bound to another stage is refused',
  async () => {
    await deploy({ stage: 'by-room' })
    await lock()
    expect((await check()).stderr).toContain(
      '- the table of stage "by-guest" holds the state of stage "by-room" of "visits-app": bind it to that stage',
    )
  },
  timeoutMs,
)
