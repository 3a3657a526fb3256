import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, open, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Figure } from '../../bin/flights/report.ts'
import { WatchedRun } from './watched-run.ts'

const timeoutMs = 300_000
const data = 'node_modules/vega-datasets/data'
let directory: string
let runs: WatchedRun[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-start-'))
})
afterEach(async () => {
  await Promise.all(runs.map((run) => run.clear()))
  runs = []
  await rm(directory, { recursive: true })
})

function start(...flags: readonly string[]): WatchedRun {
  const run = WatchedRun.start(directory, flags)
  runs.push(run)
  return run
}

/** The rows of the report's table, as label, found, expected and verdict. */
function tableOf(run: WatchedRun): readonly string[][] {
  const rows = [...run.stdout.matchAll(/^ +(\S.*?) {2,}([\d,]+) +([\d,]+) {2}(equal|DIFFERENT)$/gm)]
  return rows.map(([, ...cells]) => cells)
}

async function figuresOf(file: string): Promise<{ command: string; ok: boolean; figures: readonly Figure[] }> {
  return JSON.parse(await readFile(join(directory, file), 'utf8'))
}

const number = (grouped: string | undefined): number => Number(grouped?.replaceAll(',', ''))

/** A run that is slow enough to be interrupted, on a slow machine too: ten minutes of event time in each second, for 79 of them. */
const settings = ['--limit', '3000', '--corrupt', '12', '--shards', '2'] as const
const slow = ['--speed', '600'] as const
const underWay = /\| in [1-9][\d,]*, behind [\d,]+, out [1-9]/

test(
  'the output streams hold what the batch scan says, and the figures are written',
  async () => {
    const run = start(...settings, '--json', 'figures.json')
    expect([await run.ends(), run.stderr]).toEqual([0, ''])
    expect(tableOf(run)).toEqual([
      ['records', '3,012', '3,012', 'equal'],
      ['clean', expect.any(String), expect.any(String), 'equal'],
      ['rejected', expect.any(String), expect.any(String), 'equal'],
      ['delay-too-low', expect.any(String), expect.any(String), 'equal'],
      ['unknown-destination', '1', '1', 'equal'],
      ['unknown-origin', '2', '2', 'equal'],
      ['dead letters', '9', '9', 'equal'],
      ['invalid', '3', '3', 'equal'],
      ['not-json', '3', '3', 'equal'],
      ['not-utf8', '3', '3', 'equal'],
      ['hours of airports', expect.any(String), expect.any(String), 'equal'],
      ['flights in them', expect.any(String), expect.any(String), 'equal'],
      ['late flights', expect.any(String), expect.any(String), 'equal'],
      ['states of airports', expect.any(String), expect.any(String), 'equal'],
      ['flights counted', expect.any(String), expect.any(String), 'equal'],
      ['flights delayed', expect.any(String), expect.any(String), 'equal'],
    ])
    const found = new Map(tableOf(run).map(([label = '', count]) => [label, number(count)]))
    expect(found.get('flights counted')).toBe(found.get('clean'))
    expect((found.get('flights in them') ?? 0) + (found.get('late flights') ?? 0)).toBe(found.get('clean'))
    expect(run.stdout).toContain('dead letter, not-utf8: the payload')
    expect(run.stdout).toContain('which the file gives without a zone. They are read as if they were UTC.')
    expect(run.stdout).toMatch(
      /^\S+Z \| sent [\d,]+ of 3,012 \(\d+ %\) \| in .* records\/s now \| hours: [\d,]+ closed, .* \| shards: 0 at /m,
    )
    expect(run.stdout).toMatch(/^equal: every record/m)
    const { command, ok, figures } = await figuresOf('figures.json')
    expect({ command, ok }).toEqual({ command: 'npm start -- --limit 3000 --corrupt 12 --shards 2', ok: true })
    expect(figures).toContainEqual({ name: 'records', value: 3_012, unit: 'records', goal: 3_012 })
    expect(figures).toContainEqual({ name: 'dead letters: not-json', value: 3, unit: 'records', goal: 3 })
    const clean = found.get('clean')
    expect(figures).toContainEqual({
      ...{ name: 'states of airports: flights counted', value: clean, unit: 'records', goal: clean },
    })
    expect(figures).toContainEqual({ name: 'differences', value: 0, unit: 'records', goal: 0 })
    expect(figures.find(({ name }) => name === 'throughput of this run')?.value).toBeGreaterThan(0)

    // The state can be looked at, typed by the topology that the run was started with.
    const look = WatchedRun.millrace(directory, ['state', 'get', 'by-origin', 'ATL', '--json'])
    expect([await look.ends(), look.stderr]).toEqual([0, ''])
    const { states } = JSON.parse(look.stdout)
    expect(Object.keys(states)).toContain('airport.worst')
    expect(states['airport.recent']).toHaveLength(5)

    // A second run has nothing to do and reports again; one with other flags starts over.
    const again = start(...settings)
    expect([await again.ends(), again.stderr]).toEqual([0, ''])
    expect(again.stdout).toContain('An earlier run processed everything.')
    expect(again.stdout).toContain('Nothing was left to process in this run.')
    expect(tableOf(again)).toEqual(tableOf(run))
    const other = start('--limit', '100')
    expect([await other.ends(), other.stderr]).toEqual([0, ''])
    expect(other.stdout).toContain('was complete; this one starts over.')
    expect(tableOf(other)[0]).toEqual(['records', '100', '100', 'equal'])
  },
  timeoutMs,
)

test(
  'Ctrl-C ends the run cleanly, and the next one goes on to an equal report without a repeat',
  async () => {
    const run = start(...settings, ...slow)
    await run.shows(underWay)
    run.signal('SIGINT')
    // npm sends its own copy of the signal: that is not a second Ctrl-C.
    run.signal('SIGINT')
    expect([await run.ends(), run.stderr]).toEqual([0, ''])
    const [, sent, processed] =
      /^Stopped: ([\d,]+) of 3,012 records are sent, ([\d,]+) are processed\./m.exec(run.stdout) ?? []
    expect(run.stdout).toContain('Go on with `npm start -- --limit 3000 --corrupt 12 --shards 2`.')
    expect(processed).not.toBe('0')

    const refused = start('--limit', '50')
    expect([await refused.ends(), refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toBe(
      `npm start: A run with other flags was interrupted after ${sent} records: go on with \`npm start -- --limit 3000 --corrupt 12 --shards 2\`, or add --fresh to drop it.\n`,
    )

    const next = start(...settings, '--json', 'figures.json')
    expect([await next.ends(), next.stderr]).toEqual([0, ''])
    expect(next.stdout).toContain(`Going on where the last run stopped: ${sent} of 3,012 records were sent.`)
    expect(tableOf(next)[0]).toEqual(['records', '3,012', '3,012', 'equal'])
    const { figures } = await figuresOf('figures.json')
    const left = 3_012 - number(processed)
    expect(figures).toContainEqual({ name: 'processed in this run', value: left, unit: 'records' })
    expect(figures).toContainEqual({ name: 'repeats absorbed', value: 0, unit: 'records' })
  },
  timeoutMs,
)

test(
  'Ctrl-C in a terminal reaches the workers too: what is in flight is finished, and the next run repeats nothing',
  async () => {
    const run = start(...settings, ...slow)
    await run.shows(underWay)
    // GIVEN workers that hold a batch in flight: records are in, and in the next lines still not out
    run.stopWorkers()
    const from = run.stdout.length
    const inFlight = (): number | undefined => {
      const lines = [...run.stdout.slice(from).matchAll(/\| in ([\d,]+), behind [\d,]+, out ([\d,]+)/g)].slice(1)
      return lines
        .map(([, taken, out]) => [number(taken), number(out)])
        .find(([taken = 0, out = 0]) => taken > out)?.[0]
    }
    await run.shows({ test: () => inFlight() !== undefined })
    // WHEN
    run.signalGroup('SIGINT')
    run.signalGroup('SIGCONT')
    // THEN
    expect([await run.ends(), run.stderr]).toEqual([0, ''])
    const [, processed] = /^Stopped: .* are sent, ([\d,]+) are processed\./m.exec(run.stdout) ?? []
    expect(number(processed)).toBeGreaterThanOrEqual(inFlight() ?? Number.NaN)

    const next = start(...settings, '--json', 'figures.json')
    expect([await next.ends(), next.stderr]).toEqual([0, ''])
    const { ok, figures } = await figuresOf('figures.json')
    expect(ok).toBe(true)
    expect(figures).toContainEqual({ name: 'processed in this run', value: 3_012 - number(processed), unit: 'records' })
    expect(figures).toContainEqual({ name: 'repeats absorbed', value: 0, unit: 'records' })
  },
  timeoutMs,
)

test(
  'after SIGKILL the next run goes on to an equal report, and sends nothing twice',
  async () => {
    const run = start(...settings, ...slow)
    await run.shows(underWay)
    run.signal('SIGKILL')
    expect(await run.ends()).toBe('SIGKILL')

    // The crash fell between the answer of Kinesis and the note of it.
    const progressFile = join(directory, '.millrace/flights-app/replay.json')
    const progress = JSON.parse(await readFile(progressFile, 'utf8'))
    await writeFile(progressFile, JSON.stringify({ ...progress, sent: progress.sent - Math.min(progress.sent, 40) }))

    const next = start(...settings, '--json', 'figures.json')
    expect([await next.ends(), next.stderr]).toEqual([0, ''])
    expect(tableOf(next)[0]).toEqual(['records', '3,012', '3,012', 'equal'])
    expect(next.stdout).not.toContain('are in the stream twice')
    const { ok, figures } = await figuresOf('figures.json')
    expect(ok).toBe(true)
    const clean = figures.find(({ name }) => name === 'clean')?.value
    expect(figures).toContainEqual({
      ...{ name: 'states of airports: flights counted', value: clean, unit: 'records', goal: clean },
    })
  },
  timeoutMs,
)

test(
  'a record that never reached the output makes the run fail and is named',
  async () => {
    const run = start('--limit', '200', '--speed', '600')
    await run.shows(underWay)
    run.signal('SIGINT')
    await run.ends()
    const progressFile = join(directory, '.millrace/flights-app/replay.json')
    const progress = JSON.parse(await readFile(progressFile, 'utf8'))
    await writeFile(progressFile, JSON.stringify({ ...progress, sent: progress.sent + 1 }))

    const next = start('--limit', '200', '--json', 'figures.json')
    expect(await next.ends()).toBe(1)
    expect(next.stdout).toContain('DIFFERENT: 1 outcomes differ from the batch scan:')
    expect(next.stdout).toMatch(/^ {2}clean row-\d+ is missing from the output streams$/m)
    const { ok, figures } = await figuresOf('figures.json')
    expect(ok).toBe(false)
    expect(figures).toContainEqual({ name: 'records', value: 199, unit: 'records', goal: 200 })
  },
  timeoutMs,
)

describe('bad input is one line and an exit code', () => {
  async function refusal(...flags: readonly string[]): Promise<{ code: unknown; line: string }> {
    const run = start('--limit', '20', ...flags)
    const code = await run.ends()
    expect(run.stderr.match(/\n/g)).toHaveLength(1)
    expect(run.stderr).not.toMatch(/^ +at /m)
    return { code, line: run.stderr.trimEnd() }
  }

  test('an unknown flag', async () => {
    expect(await refusal('--colour')).toEqual({
      code: 2,
      line: "npm start: Unknown option '--colour'. `npm start -- --help` lists the flags.",
    })
  })

  test('a file of figures in a directory that does not exist', async () => {
    const { code, line } = await refusal('--json', 'nowhere/figures.json')
    expect(code).toBe(2)
    expect(line).toMatch(/^npm start: --json nowhere\/figures\.json cannot be written: ENOENT/)
  })

  test('a missing data file', async () => {
    const { code, line } = await refusal('--data', directory)
    expect(code).toBe(1)
    expect(line).toMatch(/^npm start: The data file .*flights-3m\.parquet does not exist\. Get it again with `npm ci`/)
  })

  test('a corrupt data file', async () => {
    await cp(join(data, 'airports.csv'), join(directory, 'airports.csv'))
    await cp(join(data, 'flights-3m.parquet'), join(directory, 'flights-3m.parquet'))
    const file = await open(join(directory, 'flights-3m.parquet'), 'r+')
    await file.truncate(1_000_000)
    await file.close()
    const { code, line } = await refusal('--data', directory)
    expect(code).toBe(1)
    expect(line).toMatch(/^npm start: The data file .*flights-3m\.parquet cannot be read: .*`npm ci`/)
  })

  test('airports that are not those of the topology', async () => {
    const [header, first, ...rest] = (await readFile(join(data, 'airports.csv'), 'utf8')).split('\n')
    await writeFile(join(directory, 'airports.csv'), [header, first?.replace(',', ',New '), ...rest].join('\n'))
    await symlink(resolve(data, 'flights-3m.parquet'), join(directory, 'flights-3m.parquet'))
    const { code, line } = await refusal('--data', directory)
    expect(code).toBe(1)
    expect(line).toMatch(
      /^npm start: The data file .*airports\.csv differs from .*functions\/flights\/airports\.json, the copy that the topology joins: give the airports\.csv/,
    )
  })

  test('a value that begins with a dash', async () => {
    expect(await refusal('--corrupt', '-1')).toEqual({
      code: 2,
      line: 'npm start: --corrupt -1 is not a whole number from 0 to 100,000. `npm start -- --help` lists the flags.',
    })
  })

  test('a busy port', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((go) => server.once('listening', go))
    const { port } = server.address() as AddressInfo
    const { code, line } = await refusal('--port', String(port))
    await new Promise((go) => server.close(go))
    expect(code).toBe(1)
    expect(line).toMatch(
      new RegExp(`^npm start: The embedded Kinesis cannot listen on port ${port} .*give another port`),
    )
  })

  test(
    'a busy port costs no state that --fresh is to drop',
    async () => {
      const run = start('--limit', '20')
      expect(await run.ends()).toBe(0)
      const server = createServer().listen(0, '127.0.0.1')
      await new Promise((go) => server.once('listening', go))
      const { port } = server.address() as AddressInfo
      const { code, line } = await refusal('--limit', '20', '--fresh', '--port', String(port))
      await new Promise((go) => server.close(go))
      expect([code, line]).toEqual([1, expect.stringContaining('cannot listen on port')])
      const again = start('--limit', '20')
      expect(await again.ends()).toBe(0)
      expect(again.stdout).toContain('An earlier run processed everything.')
    },
    timeoutMs,
  )

  test(
    'what `millrace dev` has sent into the directory, until --fresh',
    async () => {
      await writeFile(join(directory, 'flights.ndjson'), '{"flight":"mine"}\n')
      const dev = ['dev', resolve('functions/flights/topology.ts'), '--input', 'flights.ndjson', '--once']
      const run = WatchedRun.millrace(directory, dev)
      runs.push(run)
      expect([await run.ends(), run.stderr]).toEqual([1, ''])
      expect(await refusal('--limit', '20')).toEqual({
        code: 2,
        line: "npm start: .millrace/flights-app was used by `millrace dev` last, whose input is none of this job's: add --fresh to drop it and start over.",
      })
      const fresh = start('--limit', '20', '--fresh')
      expect([await fresh.ends(), fresh.stderr]).toEqual([0, ''])
    },
    timeoutMs,
  )

  test('a damaged note of the progress', async () => {
    await mkdir(join(directory, '.millrace/flights-app'), { recursive: true })
    await writeFile(join(directory, '.millrace/flights-app/replay.json'), '{"sent":')
    const { code, line } = await refusal()
    expect(code).toBe(1)
    expect(line).toMatch(/^npm start: The file .*replay\.json is damaged: start over with --fresh\.$/)
  })

  test(
    'a stream that is gone',
    async () => {
      const run = start('--limit', '20')
      expect(await run.ends()).toBe(0)
      await rm(join(directory, '.millrace/flights-app/kinesis'), { recursive: true })
      const { code, line } = await refusal()
      expect(code).toBe(1)
      expect(line).toMatch(/^npm start: A stream of the last run is gone from .*: start over with --fresh\.$/)
    },
    timeoutMs,
  )

  test(
    'a directory that another run uses',
    async () => {
      const run = start('--limit', '3000', ...slow)
      await run.shows(underWay)
      const other = start('--limit', '3000')
      expect(await other.ends()).toBe(1)
      expect(other.stderr).toMatch(
        /^npm start: The files beside .*application\.lock are in use by process \d+: stop it.*\n$/,
      )
    },
    timeoutMs,
  )
})

test('--help prints the flags', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['bin/start.ts', '--help'])
  expect(stdout).toContain('--corrupt N')
})
