/** `millrace dev --table`, and a redrive that reaches the table. */
import { join } from 'node:path'
import { ScanCommand } from '@aws-sdk/client-dynamodb'
import { localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { startForeignServices } from '../local/fixtures/foreign-services.ts'
import { startTables } from './embedded-tables.ts'
import { MillraceProject } from './millrace-project.ts'

const timeoutMs = 240_000
const file = 'functions/visits/topology.ts'
let project: MillraceProject

/** Refuses what has no page, until `page` is given. */
const topology = (page: string) => `
import { TerminalError, Topology } from 'millrace'
import * as z from 'zod'
export const app = new Topology('visits-app')
const visits = app.source('visits', z.object({ name: z.string(), atMs: z.number(), page: z.string().nullable() }))
visits.map((visit) => ({ ...visit, page: visit.page ?? ${page} })).to(app.sink<{ name: string }>('last-visits'))
`
const refusal = "(() => { throw new TerminalError('no page', { code: 'no-page' }) })()"

beforeEach(async () => {
  project = await MillraceProject.create()
  await project.write(file, topology(refusal))
  await project.write(
    'functions/visits/handler.ts',
    "import { streamHandler } from 'millrace'\nimport { app } from './topology'\nexport const handler = streamHandler(app)\n",
  )
})
afterEach(() => project.clear())

const line = (name: string, atMs: number, page: string | null) => `${JSON.stringify({ name, atMs, page })}\n`
const dev = (...flags: readonly string[]) => project.result('dev', file, '--input', 'visits.ndjson', '--once', ...flags)

test(
  'a sink is a table: its rows are counted and shown, and the next run shows only what has changed',
  async () => {
    await project.write('visits.ndjson', line('Ada', 1, 'home') + line('Bob', 2, 'home') + line('Ada', 3, 'news'))
    const first = await dev('--table', 'last-visits=name')
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(first.stdout).toMatch(/^Tables at http:\/\/127\.0\.0\.1:\d+ \(DynamoDB\): last-visits\.$/m)
    expect(first.stdout).toMatch(/^last-visits: 2 rows( {2}\{.*\}){1,2}$/m)
    expect(first.stdout).toContain('{"name":"Ada","atMs":3,"page":"news"}')
    expect(first.stdout).not.toContain('millrace#')
    const summary = 'In the streams: dead letters 0. In the tables: last-visits 2 rows.\n'
    expect(first.stdout).toContain(`All input is processed: 3 lines sent in this run. ${summary}`)
    await project.write('visits.ndjson', `${await project.read('visits.ndjson')}${line('Bob', 4, 'news')}`)
    const second = await dev('--table', 'last-visits=name')
    expect(second.stdout).toMatch(/^last-visits: 2 rows {2}\{"name":"Bob","atMs":4,"page":"news"\}$/m)
    const fresh = await dev('--table', 'last-visits=name,atMs:N', '--fresh')
    expect(fresh.stdout).toContain('In the tables: last-visits 4 rows.')
  },
  timeoutMs,
)

test(
  'a redrive reaches the table, and not twice',
  async () => {
    await project.write('visits.ndjson', line('Ada', 1, null) + line('Bob', 2, 'home'))
    expect((await dev('--table', 'last-visits=name')).stdout).toContain(
      'dead letters 1. In the tables: last-visits 1 row.',
    )
    await project.write(file, topology("'found'"))
    const redriven = await project.result('dead-letters', 'redrive', '--all')
    expect(redriven).toMatchObject({ code: 0, stderr: '' })
    expect(redriven.stdout).toContain('1 done, 0 given up again')
    expect(await pages()).toEqual({ Ada: 'found', Bob: 'home' })
    await project.write(file, topology("'other'"))
    expect((await project.result('dead-letters', 'redrive', '--all')).stdout).toContain('Nothing to redrive.')
    expect(await pages()).toEqual({ Ada: 'found', Bob: 'home' })
  },
  timeoutMs,
)

/** The pages in the table of the run, which is not up. */
async function pages(): Promise<Record<string, string | undefined>> {
  const tables = await startTables({ directory: join(project.directory, '.millrace/visits-app/dynamodb') })
  const { Items = [] } = await tables.client.send(new ScanCommand({ TableName: 'last-visits' }))
  await tables.close()
  return Object.fromEntries(Items.map(({ name, page }) => [name?.S, page?.S]))
}

test(
  'a client of DynamoDB that the handler made for itself finds the table, too',
  async () => {
    await project.write(
      'functions/visits/handler.ts',
      `
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { delivered, provide, streamHandler, type Sink } from 'millrace'
import { app, lastVisits } from './topology'
const client = new DynamoDBClient({})
const own: Sink<{ name: string }, { name: string }> = {
  prepare: ({ value }) => value,
  async deliver(items) {
    for (const { name } of items) {
      await client.send(new PutItemCommand({ TableName: 'last-visits', Item: { name: { S: name }, page: { S: 'own' } } }))
    }
    return items.map(() => delivered)
  },
}
export const handler = streamHandler(app, { sinks: [provide(lastVisits, own)] })
`,
    )
    const exported = `export const lastVisits = app.sink<{ name: string }>('last-visits')\nconst visits =`
    await project.write(
      file,
      topology(refusal)
        .replace("app.sink<{ name: string }>('last-visits')", 'lastVisits')
        .replace('const visits =', exported),
    )
    await project.write('visits.ndjson', line('Ada', 1, 'home'))
    expect(await dev('--table', 'last-visits=name')).toMatchObject({ code: 0, stderr: '' })
    expect(await pages()).toEqual({ Ada: 'own' })
  },
  timeoutMs,
)

test(
  'an endpoint takes the table; a redrive finds it there',
  async () => {
    const foreign = await startForeignServices()
    try {
      await project.write('visits.ndjson', line('Ada', 1, null) + line('Bob', 2, 'home'))
      const run = await dev('--table', 'last-visits=name', '--endpoint', foreign.url)
      expect(run).toMatchObject({ code: 0, stderr: '' })
      expect(run.stdout).toContain(`Tables at ${foreign.url} (DynamoDB): last-visits.`)
      expect(run.stdout).toContain('In the tables: last-visits 1 row.')
      await project.write(file, topology("'found'"))
      expect(await project.result('dead-letters', 'redrive', '--all')).toMatchObject({ code: 0, stderr: '' })
      const client = localDynamoDBClient(foreign.url)
      expect((await client.send(new ScanCommand({ TableName: 'last-visits' }))).Count).toBe(2)
      client.destroy()
    } finally {
      await foreign.close()
    }
    const { code, stdout, stderr } = await dev('--table', 'last-visits=name', '--endpoint', foreign.url)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(
      /^millrace: The table last-visits cannot be made ready: .*speaks DynamoDB\. Nothing listens there: .*\n$/,
    )
  },
  timeoutMs,
)

test(
  'a save that loses the sink of a table is not taken; what --table cannot mean is one line',
  async () => {
    const run = project.run('dev', file, '--table', 'last-visits=name')
    await run.shows(/^Tables at /m)
    await project.write(file, topology("'found'").replace("'last-visits'", "'latest'"))
    await run.shows(
      /^Not reloaded, the version before keeps running: a table is bound to "last-visits", which is no sink/m,
    )
    run.signal('SIGINT')
    expect(await run.ends()).toBe(0)
    await project.write(file, topology("'found'"))
    const said = async (...flags: readonly string[]) => {
      const { code, stderr } = await project.result('dev', file, ...flags)
      return [code, stderr]
    }
    const help = '`millrace dev --help` lists what it takes.\n'
    expect(await said('--table', 'last-visits')).toEqual([
      2,
      `millrace: --table last-visits is not SINK=PARTITIONKEY[,SORTKEY]. ${help}`,
    ])
    expect(await said('--table', 'visits=name')).toEqual([
      2,
      `millrace: --table visits=name: visits is no sink of the topology: it has last-visits. ${help}`,
    ])
    expect(await said('--table', 'last-visits=name', '--table', 'last-visits=page')).toEqual([
      2,
      `millrace: --table is given twice for last-visits. ${help}`,
    ])
  },
  timeoutMs,
)
