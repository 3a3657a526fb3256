/** `millrace status | pause | resume | drain | skip | reset` on a local run that is up. */
import { PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { localKinesisClient } from '../../lib/local/run/streams.ts'
import { MillraceProject } from './millrace-project.ts'
import type { WatchedRun } from './watched-run.ts'

const timeoutMs = 240_000
const topology = `
import { epochMs, Topology, valueState } from 'millrace'
import * as z from 'zod'
export const visits = new Topology('visits-app')
const schema = z.object({ guest: z.string(), at: z.number(), cents: z.number() })
visits
  .source('visits', schema, { eventTime: epochMs(({ at }) => at) })
  .keyBy('by-guest', ({ guest }) => guest, { slots: 4 })
  .process('guest', {
    state: { cents: valueState<number>() },
    step: ({ cents }, { state }) => {
      if (cents < 0) throw new Error('no negative cents')
      state.cents.set((state.cents.get() ?? 0) + cents)
    },
  })
`
const handler = `
import { streamHandler } from 'millrace'
import { visits } from './topology'
export const handler = streamHandler(visits, { attempts: 100_000 })
`
const startMs = Date.UTC(2026, 0, 1, 12)
const file = 'functions/visits/topology.ts'

let project: MillraceProject
let run: WatchedRun
let endpoint: string

beforeAll(async () => {
  project = await MillraceProject.create()
  await project.write(file, topology)
  await project.write('functions/visits/handler.ts', handler)
  await start()
}, timeoutMs)
afterAll(() => project.clear())

async function start(): Promise<void> {
  run = project.run('dev', file)
  await run.shows(/Kinesis at http\S+\./)
  endpoint = /Kinesis at (http:\/\/[\d.:]+)\./.exec(run.stdout)?.[1] ?? ''
}

async function visit(guest: string, cents: number): Promise<void> {
  const client = localKinesisClient(endpoint)
  const Data = Buffer.from(JSON.stringify({ guest, cents, at: startMs + cents }))
  await client.send(new PutRecordsCommand({ StreamName: 'visits', Records: [{ Data, PartitionKey: guest }] }))
  client.destroy()
}

const millrace = (...args: readonly string[]) => project.result(...args)

interface StageJson {
  readonly stage: string
  readonly kind: string
  readonly mapping: string
  readonly partitions: readonly {
    readonly partition: string
    readonly number: number
    readonly isCaughtUp: boolean
    readonly failing?: { readonly number: number; readonly attempts: number }
    readonly waitingSince: string | null
    readonly eventTime: string | null
  }[]
}
async function status(): Promise<Record<string, StageJson>> {
  const { code, stdout, stderr } = await millrace('status', '--json')
  expect([code, stderr]).toEqual([0, ''])
  const { stages } = JSON.parse(stdout) as { stages: readonly StageJson[] }
  return Object.fromEntries(stages.map((stage) => [stage.stage, stage]))
}

async function centsOf(guest: string): Promise<unknown> {
  const { stdout } = await millrace('state', 'get', 'by-guest', guest, '--json')
  return stdout === '' ? undefined : JSON.parse(stdout).states['guest.cents']
}

/** Looks again until it is so; the bound of the test ends it. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo()));
}

test(
  'a paused application processes nothing, and goes on where it was when it is resumed',
  async () => {
    await visit('ann', 100)
    await until(async () => (await centsOf('ann')) === 100)

    const paused = await millrace('pause')
    expect([paused.code, paused.stderr]).toEqual([0, ''])
    expect(paused.stdout).toContain('Pausing visits, by-guest of visits-app (.millrace/visits-app).')
    expect(paused.stdout).toContain('Now paused: visits, by-guest.')
    expect(paused.stdout).toContain('`millrace resume --app visits-app` goes on.')
    const before = await status()
    await visit('ann', 20)
    const after = await status()
    expect(Object.values(after).map(({ mapping }) => mapping)).toEqual(['Disabled', 'Disabled'])
    expect(after.visits?.partitions).toMatchObject([
      { number: before.visits?.partitions[0]?.number, isCaughtUp: false, waitingSince: expect.stringMatching(/Z$/) },
    ])
    expect(await centsOf('ann')).toBe(100)
    const text = await millrace('status')
    expect(text.stdout).toMatch(/^stage +kind +mapping +partitions +number +event time +behind +next due +caught up\n/m)
    expect(text.stdout).toMatch(/^visits +feeding +paused +1 +1 +2026-01-01T12:00:00.100Z +\d+ s +- +no$/m)

    // What is paused stays so when the run is started again.
    run.signal('SIGINT')
    expect(await run.ends()).toBe(0)
    const down = await millrace('status')
    expect(down.stdout).toContain('The run is not up: nothing moves until it is started again.')
    await start()
    expect((await status()).visits?.mapping).toBe('Disabled')

    const resumed = await millrace('resume')
    expect([resumed.code, resumed.stderr]).toEqual([0, ''])
    expect(resumed.stdout).toContain('Now enabled: visits, by-guest.')
    await until(async () => (await centsOf('ann')) === 120)
    expect((await millrace('resume', '--stage', 'visits')).stdout).toContain('Were enabled: visits.')
  },
  timeoutMs,
)

test(
  'skip makes the record that fails a dead letter, and refuses where nothing fails',
  async () => {
    const nothing = await millrace('skip', 'by-guest')
    expect([nothing.code, nothing.stderr]).toEqual([
      1,
      'millrace: Nothing fails in stage by-guest, so there is nothing to skip.\n',
    ])
    await visit('bob', 7)
    await until(async () => (await centsOf('bob')) === 7)
    await visit('bob', -1)
    await visit('bob', 5)
    await until(async () => ((await status())['by-guest']?.partitions[0]?.failing?.attempts ?? 0) > 1)
    const shown = await millrace('status')
    expect(shown.stdout).toMatch(/^by-guest shardId-000000000000: record \d+ fails, \d+ attempts so far\./m)
    expect(await centsOf('bob')).toBe(7)

    const unknown = await millrace('skip', 'by-guest', '--partition', 'shardId-9')
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      'millrace: Stage by-guest has no partition shardId-9: it has shardId-000000000000.\n',
    ])
    const skipped = await millrace('skip', 'by-guest')
    expect([skipped.code, skipped.stderr]).toEqual([0, ''])
    expect(skipped.stdout).toMatch(/^Record \d+ of by-guest shardId-000000000000 has failed in \d+ attempts\.$/m)
    await until(async () => (await centsOf('bob')) === 12)
    const letters = await millrace('dead-letters', 'list')
    expect(letters.stdout).toContain('1 dead letter of visits-app')
    expect((await status())['by-guest']?.partitions[0]?.failing).toBeUndefined()
  },
  timeoutMs,
)

test(
  'drain pauses the sources and ends when the keyed stages have done all that was sent to them',
  async () => {
    await visit('cy', 3)
    const drained = await millrace('drain')
    expect([drained.code, drained.stderr]).toEqual([0, ''])
    expect(drained.stdout).toContain('Pausing the sources of visits-app (.millrace/visits-app): visits.')
    expect(drained.stdout).toContain('is drained: no record is on its way between its stages.')
    const { visits, 'by-guest': keyed } = await status()
    expect([visits?.mapping, keyed?.mapping, keyed?.partitions[0]?.isCaughtUp]).toEqual(['Disabled', 'Enabled', true])

    await millrace('pause', '--stage', 'by-guest')
    const refused = await millrace('drain')
    expect([refused.code, refused.stderr]).toEqual([
      1,
      'millrace: by-guest cannot process anything, as it is not enabled: `millrace resume --app visits-app --stage by-guest` first.\n',
    ])
    await millrace('resume')
    await until(async () => (await centsOf('cy')) === 3)
  },
  timeoutMs,
)

test(
  'reset computes state again of the records from a time on, and drops what older frames say',
  async () => {
    const asked = await millrace('reset', '--from', '2026-01-01T00:00:00Z')
    expect(asked.code).toBe(2)
    expect(asked.stderr).toContain('nobody is there to answer: say --yes.')
    const cents = { ann: await centsOf('ann'), bob: await centsOf('bob'), cy: await centsOf('cy') }
    expect(cents).toEqual({ ann: 120, bob: 12, cy: 3 })

    // Frames of the old generation wait in the stream of the keyed stage.
    await millrace('pause', '--stage', 'by-guest')
    await visit('ann', 1_000)
    await until(async () => (await status()).visits?.partitions[0]?.isCaughtUp === true)
    const beforeMs = Date.now()
    await visit('ann', 5)
    await until(async () => (await status()).visits?.partitions[0]?.isCaughtUp === true)
    const all = await millrace('reset', '--from', new Date(beforeMs).toISOString(), '--yes')
    expect([all.code, all.stderr]).toEqual([0, ''])
    expect(all.stdout).toContain('- reads source visits again, the records that arrived then or later')
    expect(all.stdout).toContain('- empties the state of by-guest: 3 keys, 0 map entries, 0 due entries')
    expect(all.stdout).toContain('is of generation 2 now')
    expect(all.stdout).toContain('Enabled again: visits.')
    expect(all.stdout).toContain('Were paused, and are: by-guest.')
    expect(await centsOf('bob')).toBeUndefined()
    await millrace('resume')
    await until(async () => (await centsOf('ann')) === 5)

    const again = await millrace('reset', '--from', '2026-01-01T00:00:00Z', '--yes')
    expect([again.code, again.stderr]).toEqual([0, ''])
    await until(async () => (await centsOf('ann')) === 1_125)
    await until(async () => ((await status())['by-guest']?.partitions[0]?.failing?.attempts ?? 0) > 0)
    expect((await millrace('skip', 'by-guest')).code).toBe(0)
    await until(async () => (await centsOf('bob')) === 12)
    await until(async () => (await centsOf('cy')) === 3)
  },
  timeoutMs,
)

test(
  'what is typed wrong is said with the remedy',
  async () => {
    const stage = await millrace('pause', '--stage', 'by-gust')
    expect([stage.code, stage.stderr]).toEqual([
      1,
      'millrace: There is no stage "by-gust" in visits-app (.millrace/visits-app): there are visits, by-guest.\n',
    ])
    const both = await millrace('status', '--app', 'visits-app', '--stack', 'Visits')
    expect(both.code).toBe(2)
    expect(both.stderr).toContain('--app and --stack name different places: give one.')
    const zoneless = await millrace('reset', '--from', '2026-01-01T00:00')
    expect([zoneless.code, zoneless.stderr]).toEqual([2, expect.stringContaining('is no time with a zone')])
    const future = await millrace('reset', '--from', '9026-01-01T00:00:00Z')
    expect([future.code, future.stderr]).toEqual([2, expect.stringContaining('is still to come')])
    // Nothing is announced that is then not done.
    const wait = await millrace('pause', '--wait', '0')
    expect([wait.code, wait.stdout]).toEqual([2, ''])
    expect(wait.stderr).toContain('--wait 0 is not a whole number from 1 to 86,400.')
    const twice = await millrace('resume', '--stage', 'by-guest', '--stage', 'visits', '--stage', 'by-guest')
    expect([twice.code, twice.stdout]).toEqual([0, expect.stringMatching(/^Resuming visits, by-guest of visits-app /)])
    const help = await millrace('drain', '--help')
    expect([help.code, help.stdout]).toEqual([0, expect.stringContaining('(default: 3,600)')])
  },
  timeoutMs,
)
