import { MillraceProject } from './millrace-project.ts'

const timeoutMs = 240_000
let project: MillraceProject

beforeEach(async () => {
  project = await MillraceProject.create()
  await project.write('functions/hello/topology.ts', topology('Hello'))
  await project.write('functions/hello/handler.ts', handler)
})
afterEach(() => project.clear())

/** Imports without extensions, as a CommonJS project has them. */
const topology = (word: string) => `
import { Topology } from 'millrace'
import * as z from 'zod'
import { punctuation } from './punctuation'
export const hello = new Topology('hello-app')
export const names = hello.source('names', z.object({ name: z.string() }))
export const greetings = hello.sink<{ text: string }>('greetings')
names.map(({ name }) => ({ text: '${word} ' + name + punctuation })).to(greetings)
`
const handler = `
import { streamHandler } from 'millrace'
import { hello } from './topology'
export const handler = streamHandler(hello)
`
const file = 'functions/hello/topology.ts'
const greeting = (text: string) => `greetings: {"text":"${text}"}`

beforeEach(() => project.write('functions/hello/punctuation.ts', "export const punctuation = '!'\n"))

test(
  'input goes through the real handler to the sinks, bad lines to the dead letters, and --once ends the run',
  async () => {
    await project.write('events.ndjson', '{"name":"Ada"}\n\n{"name":\n{"name":"Bob"}\r\n')
    const run = await project.result('dev', file, '--input', 'events.ndjson', '--once')
    expect(run).toMatchObject({ code: 0, stderr: '' })
    const shown = run.stdout.split('\n')
    expect(shown).toEqual(expect.arrayContaining([greeting('Hello Ada!'), greeting('Hello Bob!')]))
    expect(run.stdout).toMatch(/^dead letters: [0-9a-f]{8} {2}not-json \(decode\) {2}names shardId-000000000000 \d+$/m)
    expect(run.stdout).toContain(
      'All input is processed: 3 lines sent in this run. In the streams: greetings 2, dead letters 1.',
    )
    // What a record held is shown by `dead-letters show` only.
    expect(run.stdout).not.toContain('{"name":')
  },
  timeoutMs,
)

test(
  'the next run sends only what was added, keeps the streams, and shows only what is new; --fresh starts over',
  async () => {
    await project.write('events.ndjson', '{"name":"Ada"}\n')
    await project.result('dev', file, '--input', 'names=events.ndjson', '--once')
    await project.write('events.ndjson', '{"name":"Ada"}\n{"name":"Bob"}\n')
    const second = await project.result('dev', file, '--input', 'names=events.ndjson', '--once')
    expect(second.stdout).toContain('events.ndjson: earlier runs have sent 1 line; --fresh sends all again.')
    expect(second.stdout).toContain(greeting('Hello Bob!'))
    expect(second.stdout).not.toContain(greeting('Hello Ada!'))
    expect(second.stdout).toContain('1 line sent in this run. In the streams: greetings 2, dead letters 0.')
    await project.write('events.ndjson', '{"name":"Eve"}\n')
    const changed = await project.result('dev', file, '--input', 'names=events.ndjson', '--once')
    expect(changed.stdout).toContain('events.ndjson has changed since it was sent, so all of it is sent.')
    expect(changed.stdout).toContain('In the streams: greetings 3, dead letters 0.')
    const fresh = await project.result('dev', file, '--input', 'names=events.ndjson', '--once', '--fresh')
    expect(fresh.stdout).toContain('In the streams: greetings 1, dead letters 0.')
  },
  timeoutMs,
)

test(
  'a save is picked up without losing a stream; a broken one is one line, and the version before keeps running',
  async () => {
    const run = project.run('dev', file, '--input', '-')
    await run.shows(/^hello-app runs, with Kinesis at http:\/\/127\.0\.0\.1:\d+\./m)
    await project.write(file, topology('Goodbye'))
    await run.shows(/^Reloaded\.$/m)
    await project.write('functions/hello/punctuation.ts', "export const punctuation = '?\n")
    await run.shows(/^Not reloaded, the version before keeps running: functions\/hello\/punctuation\.ts:1:30: Unterm/m)
    run.types('{"name":"Ada"}\n{"name":"Bob"}\n')
    await run.shows(/greetings: \{"text":"Goodbye Bob!"\}/)
    await project.write('functions/hello/punctuation.ts', "export const punctuation = '?'\n")
    await run.shows(/^Reloaded\.$[\s\S]*^Reloaded\.$/m)
    // A save may bring a new sink.
    const louder = "names.map(({ name }) => name.toUpperCase()).to(hello.sink<string>('shouts'))\n"
    await project.write(file, topology('Welcome') + louder)
    await run.shows(/(^Reloaded\.$[\s\S]*){3}/m)
    run.types('{"name":"Eve"}\n')
    await run.shows(/^shouts: "EVE"$/m)
    await run.shows(/^greetings: \{"text":"Welcome Eve\?"\}$/m)
    run.signal('SIGINT')
    expect([await run.ends(), run.stderr]).toEqual([0, ''])
    expect(run.stdout.match(/Not reloaded/g)).toHaveLength(1)
    // Nothing was shown twice and nothing was processed again by the versions after.
    expect(run.stdout.match(/^greetings: .*$/gm)).toEqual([
      greeting('Goodbye Ada!'),
      greeting('Goodbye Bob!'),
      greeting('Welcome Eve?'),
    ])
    const after = await project.result('dead-letters', 'list')
    expect(after.stdout).toBe('0 dead letters of hello-app (.millrace/hello-app)\n')
  },
  timeoutMs,
)

test(
  'a handler that fails is shown, and the record waits for the version that takes it',
  async () => {
    const failing = `
import { RetryableError, Topology, text } from 'millrace'
export const hello = new Topology('hello-app')
export const greetings = hello.sink<string>('greetings')
hello.source('names', text()).map((name): string => { throw new RetryableError('not yet') }).to(greetings)
`
    await project.write(file, failing)
    const run = project.run('dev', file, '--input', '-')
    run.input('Ada\n')
    await run.shows(/^shardId-000000000000 retrying: the function reported \d+/m)
    await project.write(file, failing.replace("{ throw new RetryableError('not yet') }", "'Hello ' + name"))
    await run.shows(/^greetings: "Hello Ada"$/m)
    run.signal('SIGTERM')
    expect(await run.ends()).toBe(0)
  },
  timeoutMs,
)

test(
  'what cannot start is one line',
  async () => {
    const lines = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await project.result(...args)
      return [code, stdout, stderr]
    }
    const help = '`millrace dev --help` lists what it takes.'
    expect(await lines('dev', 'none.ts')).toEqual([1, '', 'millrace: There is no file none.ts: check its path.\n'])
    expect(await lines('dev', file, '--input', 'none.ndjson')).toEqual([
      1,
      '',
      'millrace: There is no input file none.ndjson: check its path.\n',
    ])
    expect(await lines('dev', file, '--input', 'package.json', '--source', 'cities')).toEqual([
      2,
      '',
      `millrace: --source cities is no source of the topology: it has names. ${help}\n`,
    ])
    expect(await lines('dev', file, '--once')).toEqual([
      2,
      '',
      `millrace: --once waits for input: give --input. ${help}\n`,
    ])
    expect(await lines('dev', file, '--port', '70000')).toEqual([
      2,
      '',
      `millrace: --port 70000 is not a whole number from 0 to 65,535. ${help}\n`,
    ])
    const first = project.run('dev', file)
    await first.shows(/with Kinesis at/)
    expect(await lines('dev', file, '--fresh')).toEqual([
      1,
      '',
      expect.stringMatching(/^millrace: The files beside .*application\.lock are in use by process \d+: stop it.*\n$/),
    ])
    first.signal('SIGINT')
    expect(await first.ends()).toBe(0)
  },
  timeoutMs,
)
