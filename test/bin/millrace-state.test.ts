/** `millrace state` on the table of a local run, and on any table. */
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ensureStateTable, localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { MillraceProject } from './millrace-project.ts'

const timeoutMs = 240_000
let project: MillraceProject

const topology = `
import { days, epochMs, eventTimer, hours, listState, mapState, milliseconds, reducingState, Topology, valueState } from 'millrace'
import * as z from 'zod'
export const visits = new Topology('visits-app')
const schema = z.object({ guest: z.string(), room: z.string(), at: z.number() })
visits
  .source('visits', schema, { eventTime: epochMs(({ at }) => at) })
  .keyBy('by-guest', ({ guest }) => guest, { slots: 4 })
  .process('guest', {
    state: {
      last: valueState<{ room: string; at: number }>(),
      rooms: mapState<number>(),
      recent: listState<string>({ atMost: 2, ttl: { by: 'event-time', after: days(1) } }),
      cents: reducingState<bigint>((a, b) => a + b),
    },
    timers: { away: eventTimer() },
    step: ({ room, at }, { state, timers }) => {
      state.last.set({ room, at })
      state.rooms.set(room, (state.rooms.get(room) ?? 0) + 1)
      state.recent.add(room)
      state.cents.add(1250n)
      timers.away.set(at + hours(2).ms)
    },
    onTimer: { away: () => undefined },
  })
`
const handler = `
import { streamHandler } from 'millrace'
import { visits } from './topology'
export const handler = streamHandler(visits)
`
const startMs = Date.UTC(2026, 0, 1, 12)
const visit = (guest: string, room: string, minute: number) =>
  JSON.stringify({ guest, room, at: startMs + minute * 60_000 })
const file = 'functions/visits/topology.ts'

beforeAll(async () => {
  project = await MillraceProject.create()
  await project.write(file, topology)
  await project.write('functions/visits/handler.ts', handler)
  const guests = ['ann', 'bob', 'cy', "d'or\u001b", 'ann']
  const lines = guests.map((guest, minute) => visit(guest, `r${minute}`, minute))
  await project.write('visits.ndjson', [...lines, visit('ann', 'r0', 9), ''].join('\n'))
  // Not the end of the input, at which the timers would fire.
  const run = project.run('dev', file, '--input', 'visits.ndjson')
  await run.shows(/^All input is processed: /m)
  run.signal('SIGINT')
  expect([await run.ends(), run.stderr]).toEqual([0, ''])
}, timeoutMs)
afterAll(() => project.clear())

const state = (...args: readonly string[]) => project.result('state', ...args)
const jsonOf = async (...args: readonly string[]) => JSON.parse((await state(...args, '--json')).stdout)

test(
  'get shows the states of a key as steps see them',
  async () => {
    const { code, stdout } = await state('get', 'by-guest', 'ann')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^ann in stage by-guest of visits-app \(table visits-app-by-guest-state\)\nposition \d+\n\n/)
    expect(stdout.split('\n').slice(3)).toEqual([
      `guest.last: {"at":${startMs + 9 * 60_000},"room":"r0"}`,
      'guest.rooms: {"r0":2,"r4":1}',
      'guest.recent: ["r4","r0"]',
      'guest.cents: {"$bigint":"3750"}',
      '',
    ])
    expect((await jsonOf('get', 'by-guest', 'ann')).states).toEqual({
      'guest.last': { at: startMs + 9 * 60_000, room: 'r0' },
      'guest.rooms': { r0: 2, r4: 1 },
      'guest.recent': ['r4', 'r0'],
      'guest.cents': { $bigint: '3750' },
    })
    const bounded = await jsonOf('get', 'by-guest', 'ann', '--entries', '1')
    expect([bounded.states['guest.rooms'], bounded.hasMoreEntries]).toEqual([{ r0: 2 }, true])
  },
  timeoutMs,
)

test(
  'list pages through all keys, each once',
  async () => {
    const listed: string[] = []
    let after: string | undefined
    for (let pages = 0; pages < 3; pages += 1) {
      const args = after === undefined ? [] : ['--after', after]
      const page = await jsonOf('list', 'by-guest', '--limit', '2', ...args)
      listed.push(...page.keys.map(({ key }: { key: string }) => key))
      after = page.after
      if (after === undefined) break
    }
    expect(listed.toSorted()).toEqual(['ann', 'bob', 'cy', "d'or\u001b"])
    const { stdout } = await state('list', 'by-guest')
    expect(stdout).toContain('4 keys of stage by-guest of visits-app')
    expect(stdout).toContain("d'or\\u001b")
    expect((await state('list', 'by-guest', '--limit', '1')).stdout).toMatch(
      /There are more: `millrace state list by-guest --after /,
    )
  },
  timeoutMs,
)

test(
  'explain says where the key is, what was applied, what the time is and what waits',
  async () => {
    const { code, stdout } = await state('explain', 'by-guest', 'ann')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^slot {8}\d of 4$/m)
    expect(stdout).toMatch(/^partition {3}shardId-000000000000 of visits-app-by-guest$/m)
    expect(stdout).toMatch(
      /^position {4}\d+: every record of the key up to this number of the partition's log, .* is applied$/m,
    )
    expect(stdout).toMatch(/^done {8}\d+ numbers are done, up to sequence number \d{56}$/m)
    expect(stdout).toMatch(
      /^since then {2}(nothing: |1 further number is done, which did |\d+ further numbers are done, none )/m,
    )
    expect(stdout).toMatch(/^timers {6}1 timer, none due$/m)
    expect(stdout).toMatch(
      /^as of {7}20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \(UTC\): the newest entry that is done came into the stream then$/m,
    )
    expect(stdout).toMatch(/^ {12}their largest event time is 2026-01-01T12:09:00.000Z \(UTC\)$/m)
    expect(stdout).toMatch(/^ {14}visits shardId-000000000000 {2}open {2}mark 2026-01-01T12:09:00.000Z$/m)
    expect(stdout).toMatch(
      /^ {14}guest\.away {2}event-time {2}2026-01-01T14:09:00.000Z {2}waits {2}found by its due entry$/m,
    )
    expect(stdout).toMatch(/^ {14}guest\.recent {2}touched last at 2026-01-01T12:09:00.000Z of the key's time$/m)
    const { slot, partitions, timers, current } = await jsonOf('explain', 'by-guest', 'ann')
    expect(slot).toBeLessThan(4)
    expect(current).toBe('shardId-000000000000')
    const { asOf } = partitions[0].progress
    expect([new Date(asOf).toISOString(), Date.parse(asOf) <= Date.now()]).toEqual([asOf, true])
    expect(partitions[0].progress.upstreams).toEqual([
      { name: 'visits', partition: 'shardId-000000000000', state: 'open', mark: '2026-01-01T12:09:00.000Z' },
    ])
    expect(timers).toEqual([
      {
        ...{ domain: 'event-time', name: 'guest.away', isDue: false, hasDueEntry: true },
        time: '2026-01-01T14:09:00.000Z',
      },
    ])
  },
  timeoutMs,
)

test(
  'what is not there is one line that says what is',
  async () => {
    const refusal = async (...args: readonly string[]) => {
      const { code, stderr } = await state(...args)
      expect(stderr.trimEnd().split('\n')).toHaveLength(1)
      return [code, stderr.trimEnd()]
    }
    expect(await refusal('get', 'by-guest', 'eve')).toEqual([
      1,
      'millrace: There is no key "eve" in stage by-guest of visits-app (table visits-app-by-guest-state). `millrace state list by-guest --app visits-app` lists those that are there.',
    ])
    expect(await refusal('get', 'by-gest', 'ann')).toEqual([
      1,
      'millrace: topology "visits-app" has no stage "by-gest": its stages are "visits", "by-guest".',
    ])
    expect(await refusal('list', 'visits')).toEqual([
      1,
      'millrace: stage "visits" of visits-app keeps no keys: name a keyed stage: "by-guest".',
    ])
    expect(await refusal('get', 'by-guest')).toEqual([
      2,
      'millrace: `millrace state get` needs KEY. `millrace state get --help` lists what it takes.',
    ])
    expect((await refusal('list', 'by-guest', '--endpoint', 'http://127.0.0.1:1'))[0]).toBe(2)
  },
  timeoutMs,
)

test(
  'any table can be read by its name; the manifest says whose it is',
  async () => {
    const run = project.run('dev', file)
    await run.shows(/Kinesis|visits/)
    const service = JSON.parse(await project.read('.millrace/visits-app/service.json'))
    const at = ['--table', 'visits-app-by-guest-state', '--endpoint', service.dynamodb]
    const untyped = await state('get', 'by-guest', 'bob', ...at)
    expect([untyped.code, untyped.stderr]).toEqual([0, ''])
    expect(untyped.stdout).toContain('guest.recent: ["r1"]')
    expect(untyped.stdout).toContain('The topology is not at hand, so states are shown as they are stored')
    const typed = await state('get', 'by-guest', 'bob', ...at, '--topology', file)
    expect(typed.stdout).toContain('guest.rooms: {"r1":1}')
    expect((await state('explain', 'by-guest', 'bob', ...at)).stdout).toContain('say with --stream which stream')
    const foreign = await state('list', 'by-host', ...at)
    expect([foreign.code, foreign.stderr]).toEqual([
      1,
      'millrace: The table visits-app-by-guest-state holds the state of stage "by-guest" of visits-app, not of stage "by-host": name that stage, or another table.\n',
    ])
    const ofFeeding = ['--table', 'visits-app-visits-state', '--endpoint', service.dynamodb]
    const feeding = await state('list', 'visits', ...ofFeeding)
    expect([feeding.code, feeding.stderr]).toEqual([
      1,
      'millrace: The table visits-app-visits-state is that of stage "visits" of visits-app, which feeds others and keeps no keys: name a keyed stage.\n',
    ])
    const missing = await state('list', 'by-guest', '--table', 'other', '--endpoint', service.dynamodb)
    expect([missing.code, missing.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^millrace: There is no table other for stage "by-guest"\. State tables there: visits-app-by-guest-state/,
      ),
    ])
    const client = localDynamoDBClient(service.dynamodb)
    await ensureStateTable(client, systemClock, 'empty-state')
    client.destroy()
    const empty = await state('list', 'by-guest', '--table', 'empty-state', '--endpoint', service.dynamodb)
    expect([empty.code, empty.stderr]).toEqual([
      1,
      'millrace: The table empty-state holds no state: no stage has processed anything with it yet. Check its name, or wait for the first batch.\n',
    ])
    // The local run is read through the process that has it up.
    expect((await state('get', 'by-guest', 'bob')).code).toBe(0)
    run.signal('SIGINT')
    await run.ends()
  },
  timeoutMs,
)
